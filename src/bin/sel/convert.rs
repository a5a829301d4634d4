//! `sel invert`, and `sel fold` of what it makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use polars::prelude::Column;
use sinexp::analysis::weights::{Role, RoleRules};
use sinexp::cli::{DeviceArguments, Progress, say, stop_on_signal};
use sinexp::convert::{Conversion, InvertReport, Job, LayerReport, Request, fold, invert};
use sinexp::error::Error;
use sinexp::experiment::sel::SelArguments;
use sinexp::interop::safetensors::{ShardTensor, Shards};
use sinexp::nn::sel::beta_for_width;
use sinexp::report::Table;
use sinexp::runtime::Device;
use sinexp::train::language::Projection;

/// Stores the linear layers of a checkpoint as raw weights and scales of the SEL transform.
///
/// Takes any safetensors checkpoint: a file, several, an index, or a folder. Attention and feed-forward projections are
/// found by the names of LLaMA, Qwen, GPT-2, BERT, GPT-NeoX and this toolkit, or by --role; NAME becomes NAME.w, NAME.e.r
/// ..., f32; everything else is copied. Scales are those of the start of training. `sel fold` makes the ordinary checkpoint
/// again; `sel train --init` goes on training, where the network is one of `sel train`.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub struct Invert {
    /// A .safetensors file, several, an index, or a folder
    #[arg(value_name = "CHECKPOINT", required = true)]
    checkpoint: Vec<PathBuf>,
    /// A .safetensors file, or a folder: for several files one each with their names
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    sel: SelArguments,
    /// Tensors whose names match are layers of the role NAME: a built-in one (q, up, ...) or another; repeatable
    #[arg(long = "role", value_name = "NAME=REGEX")]
    roles: Vec<String>,
    /// Leaves the layers' biases as they are
    #[arg(long)]
    no_biases: bool,
    /// Where no raw weight gives a weight, takes the nearest instead of stopping
    #[arg(long)]
    nearest: bool,
    /// Seed of residuals and of scales of pattern lora
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Whether a tensor of this role is a projection of attention or feed-forward, or one that the user named.
fn is_projection(role: &Role) -> bool {
    role.is_linear() && !matches!(role, Role::Head | Role::Other)
}

/// Name of the weight that a bias of this name belongs to.
fn weight_of(bias: &str) -> Option<String> {
    let (stem, last) = bias.rsplit_once('.')?;
    match last {
        "bias" => Some(format!("{stem}.weight")),
        "b" => Some(format!("{stem}.W")),
        _ => None,
    }
}

/// Which tensors are layers.
struct Layers<'a> {
    shards: &'a Shards,
    rules: RoleRules,
    biases: bool,
}

impl Layers<'_> {
    /// The role of a tensor that is to be inverted.
    fn role(&self, tensor: &ShardTensor) -> Option<String> {
        let role = self.rules.place(&tensor.name, &tensor.dims).role;
        if is_projection(&role) && tensor.dims.len() == 2 {
            return Some(role.to_string());
        }
        let weight = self.shards.find(&weight_of(&tensor.name).filter(|_| self.biases && role == Role::Bias)?)?;
        let of_layer = is_projection(&self.rules.place(&weight.name, &weight.dims).role) && weight.dims.len() == 2;
        of_layer.then(|| "bias".to_owned())
    }

    /// The number of inputs that most layers have: the model's width.
    fn width(&self) -> Option<usize> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for tensor in self.shards.tensors().iter().filter(|t| t.dims.len() == 2 && self.role(t).is_some()) {
            if let Some(fans) = self.rules.place(&tensor.name, &tensor.dims).fans {
                *counts.entry(fans.inputs).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(width, count)| (*count, std::cmp::Reverse(*width))).map(|(width, _)| width)
    }
}

pub fn run(arguments: &Invert) -> Result<()> {
    let shards = Shards::open(&arguments.checkpoint)?;
    let shapes = shards.tensors().iter().map(|t| (t.name.as_str(), t.dims.as_slice()));
    let rules = RoleRules::new(&arguments.roles, shapes)?;
    let layers = Layers { shards: &shards, rules, biases: !arguments.no_biases };
    let Some(width) = layers.width() else {
        let reason = "no tensor of it is known as a linear layer: name them with --role NAME=REGEX";
        return Err(Error::file(&shards.files()[0].path, reason).into());
    };
    let sel =
        SelArguments { beta: arguments.sel.beta.or_else(|| Some(beta_for_width(width))), ..arguments.sel.clone() };
    let Projection::Sel(sel) = sel.projection(width)? else {
        return Err(Error::argument("--mode", "standard", "weights are ordinary already; give a mode of SEL").into());
    };
    let device = arguments.device.open()?;
    let total = shards.tensors().iter().map(ShardTensor::byte_len).sum();
    say(&format!("{}: width {width}, mode {}, beta {:.4}", shards.files()[0].path.display(), sel.mode, sel.beta));
    let request =
        Request { sel: &sel, seed: arguments.seed, layer: &|tensor| layers.role(tensor), nearest: arguments.nearest };
    let (report, files) = watched("invert", total, |job| invert(&shards, &request, &arguments.out, &device, job))?;
    say(&table(&report)?.to_string());
    let missing = report.unrepresented();
    if missing > 0 {
        say(&format!("{missing} weights have no preimage; the nearest weights stand for them"));
    }
    say(&format!("{} layers inverted, {} tensors copied", report.layers.len(), report.copied));
    files.iter().for_each(|file| say(&format!("Written to {}", file.display())));
    Ok(())
}

/// `model`, if `sel invert` made it.
pub fn inverted(model: &Path) -> Option<Shards> {
    let shards = Shards::open(&[model.to_owned()]).ok()?;
    let ours = matches!(Conversion::of(model, &shards.files()[0].metadata), Ok(Some(_)) | Err(_));
    ours.then_some(shards)
}

/// Folds what `sel invert` made.
pub fn fold_inverted(shards: &Shards, out: &Path, device: &Device) -> Result<()> {
    let total = shards.tensors().iter().map(ShardTensor::byte_len).sum();
    let report = watched("fold", total, |job| fold(shards, out, device, job))?;
    say(&format!("{} layers folded ({} weights), {} tensors copied", report.layers, report.weights, report.copied));
    report.files.iter().for_each(|file| say(&format!("Written to {}", file.display())));
    Ok(())
}

/// Does long work over `total` bytes with progress by hundredths; Ctrl-C stops it.
fn watched<T>(label: &str, total: usize, work: impl FnOnce(&mut Job) -> sinexp::error::Result<T>) -> Result<T> {
    let stop = stop_on_signal()?;
    let mut progress = Progress::new(label, 100);
    let (mut done, mut shown) = (0usize, 0usize);
    let mut step = |bytes: usize, name: &str| {
        done += bytes;
        while shown < (100 * done).checked_div(total).unwrap_or(100).min(100) {
            shown += 1;
            progress.step(name);
        }
    };
    let made = work(&mut Job { progress: &mut step, stop: &stop })?;
    progress.finish("all written");
    Ok(made)
}

/// One row per role.
fn table(report: &InvertReport) -> Result<Table> {
    let mut roles: BTreeMap<&str, Vec<&LayerReport>> = BTreeMap::new();
    for layer in report.layers.values() {
        roles.entry(&layer.role).or_default().push(layer);
    }
    let rows: Vec<Vec<&LayerReport>> = roles.values().cloned().collect();
    let largest = |f: fn(&LayerReport) -> f64| -> Vec<f64> {
        rows.iter().map(|layers| layers.iter().map(|l| f(l)).fold(0.0, f64::max)).collect()
    };
    let sum = |f: fn(&LayerReport) -> usize| -> Vec<i64> {
        rows.iter().map(|layers| layers.iter().map(|l| f(l) as i64).sum()).collect()
    };
    let columns = vec![
        Column::new("role".into(), roles.keys().copied().collect::<Vec<_>>()),
        Column::new("layers".into(), rows.iter().map(|l| l.len() as i64).collect::<Vec<_>>()),
        Column::new("weights".into(), sum(|l| l.count)),
        Column::new("largest".into(), largest(|l| l.largest)),
        Column::new("worst error".into(), largest(|l| l.worst)),
        Column::new("relative".into(), largest(|l| l.worst_relative)),
        Column::new("no preimage".into(), sum(|l| l.missing)),
    ];
    let title = "Weights made from the leaves against those given, in f32 as training makes them";
    Ok(Table::new(title, columns)?.digits("worst error", 2).digits("relative", 2))
}
