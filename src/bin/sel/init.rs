//! `sel train --init`: the configuration of a run that starts from given weights.

use clap::{Args, Command};
use serde_json::json;
use sinexp::error::{Error, Result};
use sinexp::experiment::sel::{LanguageSizes, SelArguments};
use sinexp::nn::sel::{Scale, Sel};
use sinexp::optim::Anneal;
use sinexp::train::language::{LanguageConfig, Pretrained, Projection};

use crate::options::{first_difference, given};

/// Puts the network's sizes and the tokenizer in place of the preset's.
pub fn init_sizes(sizes: &mut LanguageSizes, init: &Pretrained) -> Result<()> {
    let t = &init.origin.transformer;
    (sizes.width, sizes.depth, sizes.head_dim) = (t.width, t.depth, t.head_dim());
    sizes.tokenizer = init.origin.tokenizer.parse()?;
    Ok(())
}

/// What was asked for, starting from these weights: their network and transform, with the multipliers k(t) that were
/// asked for.
///
/// **Errors** name the option that does not go with the weights.
pub fn starting_from(init: &Pretrained, mut config: LanguageConfig) -> Result<LanguageConfig> {
    if config.tokenizer != init.origin.tokenizer {
        let reason = format!("the weights of --init were trained with {}", init.origin.tokenizer);
        return Err(Error::argument("--tokenizer", config.tokenizer, reason));
    }
    let (network, asked) = (&init.origin.transformer, &mut config.transformer);
    if asked.tied && !network.tied {
        let reason = "the weights of --init have a head of their own: leave the option out";
        return Err(Error::argument("--tied", true, reason));
    }
    (asked.tied, asked.hidden) = (network.tied, network.hidden);
    for (name, of_file, asked) in [
        ("--width", network.width, asked.width),
        ("--depth", network.depth, asked.depth),
        ("--heads", network.heads, asked.heads),
    ] {
        if of_file != asked {
            let reason = format!("the weights of --init have {of_file}: leave the option out");
            return Err(Error::argument(name, asked, reason));
        }
    }
    let of_transform = SelArguments::augment_args(Command::new("sel"));
    let known: Vec<String> = of_transform.get_arguments().map(|a| a.get_id().to_string()).collect();
    let chosen = given().iter().any(|id| known.contains(id));
    config.projection = match (&init.projection, config.projection) {
        (Projection::Standard, Projection::Standard) => Projection::Standard,
        (Projection::Standard, Projection::Sel(asked)) => {
            let reason = "the weights of --init are ordinary: `sel invert` makes raw weights of them, or train them with --mode standard";
            return Err(Error::argument("--mode", asked.mode, reason));
        }
        (Projection::Sel(_), Projection::Standard) => {
            let reason = "the weights of --init are raw weights: `sel fold` makes ordinary ones of them";
            return Err(Error::argument("--mode", "standard", reason));
        }
        (Projection::Sel(sel), Projection::Sel(_)) if !chosen => Projection::Sel(sel.clone()),
        (Projection::Sel(sel), Projection::Sel(asked)) => {
            if let Some((name, of_file, asked)) = first_difference("", &json!(function(sel)), &json!(function(&asked)))
            {
                let reason = format!(
                    "the weights of --init were inverted with {of_file}: leave the option out, or invert them again"
                );
                return Err(Error::argument(name, asked, reason));
            }
            Projection::Sel(asked)
        }
    };
    config.init = Some(init.name.clone());
    config.check()?;
    Ok(config)
}

/// The transform without what only training looks at: multipliers and decay.
fn function(sel: &Sel) -> Sel {
    let plain = |scale: &Scale| Scale { multiplier: Anneal::ONE, decay: false, ..*scale };
    let mut sel = sel.clone();
    for scale in [&mut sel.exp_scale, &mut sel.linear_scale, &mut sel.inner] {
        *scale = plain(scale);
    }
    for offset in [&mut sel.shift, &mut sel.offset].into_iter().flatten() {
        offset.scale = plain(&offset.scale);
    }
    if let Some(residual) = &mut sel.residual {
        residual.multiplier = 1.0;
    }
    sel
}
