//! The command line of a language run: sizes by preset, optimisation, data.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Progress;
use crate::data::text::{Corpus, Dataset, Tokenizer, default_cache, prepare};
use crate::error::Result;
use crate::experiment::preset::Preset;
use crate::nn::language_model::{Start, Target};
use crate::nn::transformer::Transformer;
use crate::optim::{AdamW, Decay, Schedule};
use crate::train::language::{LanguageConfig, Projection, StepSettings};

/// Deepest model whose blocks are printed one after another: on CPU that runs a little faster than a loop, whose stacks
/// are copied, but compiling takes longer with every block, and rematerialisation saves memory in a loop only.
const UNROLLED_DEPTH: usize = 6;

/// What a preset settles and the command line can change.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageSizes {
    /// d.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Dimension of a head.
    pub head_dim: usize,
    /// Tokens predicted per sequence.
    pub sequence: usize,
    /// Sequences per forward pass.
    pub batch: usize,
    /// Forward passes per update.
    pub accumulation: usize,
    /// Updates.
    pub steps: usize,
    /// Updates of warm-up.
    pub warmup: usize,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Tokens.
    pub tokenizer: Tokenizer,
    /// Updates between evaluations.
    pub eval_every: usize,
    /// Batches of an evaluation.
    pub eval_batches: usize,
    /// bf16 activations.
    pub bf16: bool,
    /// Rematerialised blocks.
    pub remat: bool,
}

impl LanguageSizes {
    /// The sizes of a preset. `paper` is 2607.09967, Section 5.1, at width 1024 and depth 12 (250,000 steps); batch and
    /// learning rate are not in the paper.
    pub fn of(preset: Preset) -> Self {
        let cpu = LanguageSizes {
            width: 128,
            depth: 4,
            head_dim: 32,
            sequence: 128,
            batch: 8,
            accumulation: 1,
            steps: 2000,
            warmup: 250,
            learning_rate: 3e-4,
            tokenizer: Tokenizer::Bytes,
            eval_every: 100,
            eval_batches: 16,
            bf16: false,
            remat: false,
        };
        match preset {
            Preset::Smoke => LanguageSizes {
                width: 32,
                depth: 2,
                head_dim: 16,
                sequence: 32,
                batch: 4,
                steps: 40,
                warmup: 10,
                learning_rate: 1e-3,
                eval_every: 10,
                eval_batches: 4,
                ..cpu
            },
            Preset::Cpu => cpu,
            Preset::Paper => LanguageSizes {
                width: 1024,
                depth: 12,
                head_dim: 64,
                sequence: 1024,
                batch: 16,
                accumulation: 4,
                steps: 250_000,
                tokenizer: Tokenizer::Gpt2,
                eval_every: 1000,
                eval_batches: 32,
                bf16: true,
                remat: true,
                ..cpu
            },
        }
    }
}

/// Where text comes from.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Data")]
pub struct DataArguments {
    /// Text: a UTF-8 file, a folder of them, or .jsonl with a `text` key [default: the corpus of ./setup --data]
    #[arg(long, value_name = "PATH")]
    pub corpus: Option<PathBuf>,
    /// Tokens: bytes or gpt2 [default: the preset's]
    #[arg(long, value_name = "NAME")]
    pub tokenizer: Option<Tokenizer>,
}

impl DataArguments {
    /// The corpus as tokens, made now where they were not made before.
    pub fn dataset(&self, default: Tokenizer) -> Result<Dataset> {
        let corpus = Corpus::given(self.corpus.as_deref())?;
        let tokenizer = self.tokenizer.unwrap_or(default);
        let mut progress: Option<Progress> = None;
        let mut shown = 0;
        prepare(&corpus, tokenizer, default_cache(), &mut |done, total| {
            if shown == 0 && done == total {
                return; // all at once
            }
            let bar = progress.get_or_insert_with(|| Progress::new("tokens", 100));
            let percent = (100 * done).checked_div(total).unwrap_or(100);
            while shown < percent {
                shown += 1;
                bar.step(tokenizer.id());
            }
        })
    }
}

/// Options of a language run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub struct LanguageArguments {
    /// How large: `paper` has the paper's sizes, `cpu` fits two cores, `smoke` takes seconds
    #[arg(long, value_enum, default_value = "cpu")]
    pub preset: Preset,
    /// Width d [default: the preset's, as all that follow]
    #[arg(long, value_name = "D")]
    pub width: Option<usize>,
    /// Blocks
    #[arg(long, value_name = "COUNT")]
    pub depth: Option<usize>,
    /// Attention heads [default: width / head dimension of the preset]
    #[arg(long, value_name = "COUNT")]
    pub heads: Option<usize>,
    /// Tokens per sequence
    #[arg(long, value_name = "TOKENS")]
    pub sequence: Option<usize>,
    /// Sequences per forward pass
    #[arg(long, value_name = "COUNT")]
    pub batch: Option<usize>,
    /// Forward passes whose gradients make one update
    #[arg(long, value_name = "COUNT")]
    pub accumulation: Option<usize>,
    /// Updates of the whole run
    #[arg(long, value_name = "COUNT")]
    pub steps: Option<usize>,
    /// Highest learning rate
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Updates of linear warm-up
    #[arg(long, value_name = "COUNT")]
    pub warmup: Option<usize>,
    /// After the warm-up: linear, cosine or constant
    #[arg(long, value_name = "KIND", default_value = "linear")]
    pub decay: Decay,
    /// Decoupled weight decay
    #[arg(long, value_name = "RATE", default_value_t = 0.01)]
    pub weight_decay: f64,
    /// Largest global norm of the gradient
    #[arg(long, value_name = "NORM", default_value_t = 1.0)]
    pub clip: f64,
    /// T of k(t) in updates [default: the whole run]
    #[arg(long, value_name = "COUNT")]
    pub anneal_steps: Option<usize>,
    /// Updates between evaluations
    #[arg(long, value_name = "COUNT")]
    pub eval_every: Option<usize>,
    /// Batches of the validation split per evaluation
    #[arg(long, value_name = "COUNT")]
    pub eval_batches: Option<usize>,
    /// Activations in bf16 (f32 otherwise); parameters, moments, norms, softmax and loss stay f32
    #[arg(long, value_name = "BOOL")]
    pub bf16: Option<bool>,
    /// Computes each block again in the reverse pass instead of keeping its values
    #[arg(long, value_name = "BOOL")]
    pub remat: Option<bool>,
    /// Loops over stacked blocks (true) or prints them one after another [default: loops from depth 7 on, and where
    /// blocks are computed again]
    #[arg(long, value_name = "BOOL")]
    pub looped: Option<bool>,
    /// The output head is the embedding
    #[arg(long)]
    pub tied: bool,
    /// Xavier normal instead of uniform targets
    #[arg(long)]
    pub xavier_normal: bool,
    /// Biases start uniform on +-1/sqrt(d_in) instead of at 0
    #[arg(long)]
    pub uniform_biases: bool,
    /// Devices that share the batch
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub replicas: usize,
}

impl LanguageArguments {
    /// The preset's sizes with what the command line changes.
    pub fn sizes(&self, preset: LanguageSizes) -> LanguageSizes {
        let width = self.width.unwrap_or(preset.width);
        let head_dim = match self.heads {
            Some(heads) => width / heads.max(1),
            None => preset.head_dim.min(width),
        };
        let steps = self.steps.unwrap_or(preset.steps);
        LanguageSizes {
            width,
            depth: self.depth.unwrap_or(preset.depth),
            head_dim,
            sequence: self.sequence.unwrap_or(preset.sequence),
            batch: self.batch.unwrap_or(preset.batch),
            accumulation: self.accumulation.unwrap_or(preset.accumulation),
            steps,
            warmup: self.warmup.unwrap_or(preset.warmup.min(steps / 2)),
            learning_rate: self.learning_rate.unwrap_or(preset.learning_rate),
            eval_every: self.eval_every.unwrap_or(preset.eval_every),
            eval_batches: self.eval_batches.unwrap_or(preset.eval_batches),
            bf16: self.bf16.unwrap_or(preset.bf16),
            remat: self.remat.unwrap_or(preset.remat),
            ..preset
        }
    }

    /// The resolved configuration.
    ///
    /// **Errors** as [`LanguageConfig::check`].
    pub fn config(
        &self,
        sizes: &LanguageSizes,
        projection: Projection,
        seed: u64,
        data: &Dataset,
    ) -> Result<LanguageConfig> {
        let description = data.description();
        let corpus = format!("{}, sha256 {}", description.corpus, &description.corpus_sha256[..12]);
        let text = (corpus, description.tokenizer.clone());
        self.config_for(sizes, projection, seed, data.tokenizer().vocabulary(), text)
    }

    /// The resolved configuration for a vocabulary of this size, with the names of corpus and tokenizer.
    ///
    /// **Errors** as [`LanguageConfig::check`].
    pub(super) fn config_for(
        &self,
        sizes: &LanguageSizes,
        projection: Projection,
        seed: u64,
        vocabulary: usize,
        (corpus, tokenizer): (String, String),
    ) -> Result<LanguageConfig> {
        let mut transformer = Transformer::new(vocabulary, sizes.width, sizes.depth);
        transformer.heads = self.heads.unwrap_or((sizes.width / sizes.head_dim.max(1)).max(1));
        transformer.tied = self.tied;
        transformer.looped = self.looped.unwrap_or(sizes.depth > UNROLLED_DEPTH || sizes.remat);
        transformer.remat = sizes.remat;
        let target = if self.xavier_normal { Target::XavierNormal } else { Target::XavierUniform };
        let step = StepSettings {
            batch: sizes.batch,
            sequence: sizes.sequence,
            accumulation: sizes.accumulation,
            optimizer: AdamW { weight_decay: self.weight_decay, ..AdamW::default() },
            clip: self.clip,
            schedule: Schedule {
                peak: sizes.learning_rate,
                warmup: sizes.warmup,
                total: sizes.steps,
                decay: self.decay,
            },
            anneal_steps: self.anneal_steps.unwrap_or(sizes.steps),
            bf16: sizes.bf16,
            replicas: self.replicas,
        };
        let config = LanguageConfig {
            transformer,
            projection,
            start: Start { target, uniform_biases: self.uniform_biases },
            init: None,
            step,
            seed,
            corpus,
            tokenizer,
            eval_every: sizes.eval_every,
            eval_batches: sizes.eval_batches,
        };
        config.check()?;
        Ok(config)
    }
}
