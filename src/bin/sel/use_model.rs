//! `sel eval`, `sel generate` and `sel fold`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use sinexp::cli::{DeviceArguments, say};
use sinexp::data::text::Tokenizer;
use sinexp::error::Error;
use sinexp::experiment::sel::DataArguments;
use sinexp::random::Key;
use sinexp::runtime::Buffer;
use sinexp::train::language::{Folded, Generator, Sampling, loss_program};

use crate::convert::{fold_inverted, inverted};

/// Measures the mean loss over the validation split, in nats per token.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub struct Eval {
    /// A run's folder, a checkpoint, folded or inverted weights
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArguments,
    /// Sequences per batch
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Batches, spread evenly over the split; fewer where it is shorter
    #[arg(long, default_value_t = 64)]
    batches: usize,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Continues a prompt, token by token.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub struct Generate {
    /// A run's folder, a checkpoint, folded or inverted weights
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Text to continue
    #[arg(long, default_value = "The ")]
    prompt: String,
    /// Tokens to write
    #[arg(long, default_value_t = 400)]
    tokens: usize,
    /// Logits are divided by it; 0 takes the likeliest token
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,
    /// Draws from the likeliest COUNT tokens only
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
    /// Texts to write
    #[arg(long, default_value_t = 1)]
    samples: u32,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Computes the effective weights once and writes them as an ordinary transformer: blocks.0.q.W, blocks.0.q.b ...
///
/// What `sel invert` made becomes the ordinary checkpoint again: its names, shapes and element types.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub struct Fold {
    /// A run's folder, a checkpoint, or a file or folder of `sel invert`
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// File to write; a folder, for a folder of `sel invert`
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    device: DeviceArguments,
}

pub fn eval(arguments: &Eval) -> Result<()> {
    for (name, value) in [("--batch", arguments.batch), ("--batches", arguments.batches)] {
        if value == 0 {
            return Err(Error::argument(name, value, "expected at least 1").into());
        }
    }
    let device = arguments.device.open()?;
    let model = Folded::open(&device, &arguments.model)?;
    let tokenizer: Tokenizer = model.origin.tokenizer.parse()?;
    let data = arguments.data.dataset(tokenizer)?;
    if data.tokenizer() != tokenizer {
        let reason = format!("the model was trained with {}", tokenizer.id());
        return Err(Error::argument("--tokenizer", data.tokenizer().id(), reason).into());
    }
    let sequence = model.origin.sequence;
    let program =
        device.compile(&loss_program(&model.origin.transformer, arguments.batch, sequence, model.origin.bf16)?)?;
    let weights = model.weights.values().map(|w| device.put(w)).collect::<sinexp::error::Result<Vec<Buffer>>>()?;
    let batches = data.validation_batches(arguments.batch, sequence, arguments.batches)?;
    let mut sum = 0.0;
    for tokens in &batches {
        let tokens = device.put(tokens)?;
        let inputs: Vec<&Buffer> = weights.iter().chain([&tokens]).collect();
        sum += program.run(&inputs)?[0].to_host()?.to_f64_vec()[0];
    }
    let loss = sum / batches.len() as f64;
    say(&format!(
        "loss {loss:.4} nats per token, perplexity {:.2}, over {} tokens of {} ({})",
        loss.exp(),
        batches.len() * arguments.batch * sequence,
        data.corpus(),
        tokenizer.id()
    ));
    Ok(())
}

pub fn generate(arguments: &Generate) -> Result<()> {
    if !(arguments.temperature >= 0.0 && arguments.temperature.is_finite()) {
        return Err(Error::argument("--temperature", arguments.temperature, "expected 0 or a positive number").into());
    }
    let device = arguments.device.open()?;
    let model = Folded::open(&device, &arguments.model)?;
    let tokenizer: Tokenizer = model.origin.tokenizer.parse()?;
    let prompt = tokenizer.encode(&arguments.prompt);
    let generator = Generator::new(&device, &model)?;
    let sampling = Sampling { temperature: arguments.temperature, top_k: arguments.top_k.map(|k| k as usize) };
    for sample in 0..arguments.samples {
        if sample > 0 {
            say("\n---");
        }
        let mut written = 0;
        let mut tokens = prompt.clone();
        let mut show = |tokens: &[u32], last: bool| {
            // A character may take several tokens: hold back what is not complete.
            let text = tokenizer.decode(tokens);
            let whole = if last { text.len() } else { text.trim_end_matches('\u{fffd}').len() };
            if whole > written && text.is_char_boundary(written) {
                let mut out = std::io::stdout().lock();
                let _ = write!(out, "{}", &text[written..whole]).and_then(|()| out.flush());
                written = whole;
            }
        };
        show(&tokens, false);
        let key = Key::new(arguments.seed).fold_in(sample);
        let all = generator.generate(&prompt, arguments.tokens, sampling, key, |token| {
            tokens.push(token);
            show(&tokens, false);
        })?;
        show(&all, true);
        say("");
    }
    Ok(())
}

pub fn fold(arguments: &Fold) -> Result<()> {
    let device = arguments.device.open()?;
    if let Some(shards) = inverted(&arguments.model) {
        return fold_inverted(&shards, &arguments.out, &device);
    }
    let model = Folded::open(&device, &arguments.model)?;
    model.write(&arguments.out)?;
    let numbers = model.origin.transformer.size();
    say(&format!("{numbers} weights of step {} written to {}", model.origin.step, arguments.out.display()));
    Ok(())
}
