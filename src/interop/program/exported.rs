//! Functions of `jax.export` as programs.
//!
//! The module inside takes the index of the platform first, where the file is for several, and leaves out arguments that do
//! not matter. Here it becomes a program of exactly the function's arguments, for one platform.

use super::{Foreign, Format, Signature, of_stablehlo, printed, without_attribute};
use crate::error::{Error, Result};
use crate::graph::Shape;
use crate::interop::jax_export::{Aval, Exported};
use crate::runtime::translate::hlo_text_to_proto;

/// The function as a program for `platform`; without one for the CPU, or what comes first in a file that is not for it.
///
/// **Errors** when the file is not for the platform, needs what [`Exported::check_runnable`] refuses, or its module does
/// not fit its signature.
pub(super) fn foreign(exported: Exported, platform: Option<&str>) -> Result<Foreign> {
    exported.check_runnable()?;
    let several = exported.platforms.len() > 1;
    let index = match platform {
        Some(platform) => exported.platform_index(platform)?,
        None => exported.platform_index("cpu").unwrap_or(several.then_some(0)),
    };
    let (_, text) = printed(of_stablehlo(&exported.module)?)?;
    let found = Signature::of(&text)?;
    let leading = usize::from(several);
    let kept: Vec<&Aval> = exported.kept.iter().map(|i| &exported.in_avals[*i]).collect();
    fits(&exported, "arguments", found.inputs.iter().skip(leading).map(|p| p.shape()), &kept)?;
    if found.inputs.len() != leading + kept.len() {
        return Err(unfit(&exported, "arguments"));
    }
    fits(
        &exported,
        "results",
        found.outputs.iter().map(|p| p.shape()),
        &exported.out_avals.iter().collect::<Vec<_>>(),
    )?;
    // JAX puts its names of arguments, `params['w']`, into the module; the pytree has only their places.
    let mut names = exported.in_tree.argument_paths();
    let given: Vec<&str> = found.inputs[leading..].iter().map(|p| p.name.as_str()).collect();
    if given.iter().all(|name| !name.starts_with("Arg_") && !name.starts_with("input.")) {
        exported.kept.iter().zip(given).for_each(|(i, name)| names[*i] = name.to_owned());
    }
    let text = rewritten(&text, &exported, index, &names)?;
    let (module, text) = printed(hlo_text_to_proto(&text)?)?;
    let mut signature = Signature::of(&text)?;
    signature.name = exported.name.clone();
    signature.inputs.iter_mut().zip(names).for_each(|(port, name)| port.name = name);
    signature.outputs.iter_mut().zip(exported.out_tree.paths("result")).for_each(|(port, name)| port.name = name);
    Ok(Foreign { format: Format::JaxExport, module, text, signature, exported: Some(Box::new(exported)) })
}

fn unfit(exported: &Exported, what: &str) -> Error {
    Error::numeric(format!("function `{}`", exported.name), format!("its module has other {what} than its signature"))
}

/// **Errors** when shapes of the module are not those of the signature. Types that this toolkit lacks are left to the call.
fn fits(
    exported: &Exported,
    what: &str,
    found: impl ExactSizeIterator<Item = Result<Shape>>,
    wanted: &[&Aval],
) -> Result<()> {
    let differs = |(a, b): (Result<Shape>, &&Aval)| matches!((a, b.shape()), (Ok(a), Ok(b)) if a != b);
    if found.len() != wanted.len() || found.zip(wanted).any(differs) {
        return Err(unfit(exported, what));
    }
    Ok(())
}

/// The HLO text with a parameter for each argument, in order and by name, and the platform's index as a constant.
fn rewritten(text: &str, exported: &Exported, index: Option<usize>, names: &[String]) -> Result<String> {
    let unknown = || Error::numeric("entry", "XLA prints this module in a form that is not known here");
    let (before, entry) = text.split_once("\nENTRY ").ok_or_else(unknown)?;
    let (header, computations) = before.split_once('\n').unwrap_or((before, ""));
    let (first, body) = entry.split_once('\n').ok_or_else(unknown)?;
    let (body, after) = body.split_once("\n}").ok_or_else(unknown)?;
    let header = ["entry_computation_layout", "input_output_alias", "buffer_donor"]
        .iter()
        .fold(header.to_owned(), |header, attribute| without_attribute(&header, attribute));
    let leading = usize::from(exported.platforms.len() > 1);
    let metadata = |i: usize| format!("metadata={{op_name={:?}}}", names[i].replace(['"', '\\'], "'"));
    let mut out = format!("{header}\n{computations}\nENTRY {first}\n");
    for (i, aval) in exported.in_avals.iter().enumerate() {
        if exported.kept.binary_search(&i).is_err() {
            let shape = aval.shape().map_err(|e| Error::tensor(&names[i], e))?;
            let dims: Vec<String> = shape.dims.iter().map(usize::to_string).collect();
            let shape = format!("{}[{}]", shape.dtype.hlo_name(), dims.join(","));
            out += &format!("  ignored_argument.{i} = {shape} parameter({i}), {}\n", metadata(i));
        }
    }
    for line in body.lines() {
        let parameter = line.split_once(" parameter(").and_then(|(instruction, rest)| {
            let number = rest.split(')').next()?.parse::<usize>().ok()?;
            (instruction.matches('=').count() == 1).then_some((instruction, number))
        });
        out += &match parameter {
            Some((instruction, 0)) if leading == 1 => format!("{instruction} constant({})", index.unwrap_or(0)),
            Some((instruction, number)) => {
                let i = *exported.kept.get(number - leading).ok_or_else(unknown)?;
                format!("{instruction} parameter({i}), {}", metadata(i))
            }
            None => line.to_owned(),
        };
        out.push('\n');
    }
    Ok(format!("{out}}}{after}"))
}
