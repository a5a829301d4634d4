//! What a tensor of a checkpoint is to the model, by its name: LLaMA and Qwen, GPT-2, BERT, GPT-NeoX, our own.

use std::fmt;

use regex::Regex;

use crate::error::{Error, Result};

/// What a tensor is to the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Role {
    Embed,
    Q,
    K,
    V,
    /// Query, key and value in one matrix.
    Qkv,
    /// Output projection of an attention.
    O,
    Gate,
    Up,
    /// Gate and up projection in one matrix.
    GateUp,
    Down,
    Head,
    Norm,
    Bias,
    /// A scale that belongs to a weight: of a quantised matrix, or of SEL.
    Scale,
    /// Of an optimiser.
    State,
    Other,
    /// One of the user's.
    Named(String),
}

const BUILT_IN: [Role; 16] = [
    Role::Embed,
    Role::Q,
    Role::K,
    Role::V,
    Role::Qkv,
    Role::O,
    Role::Gate,
    Role::Up,
    Role::GateUp,
    Role::Down,
    Role::Head,
    Role::Norm,
    Role::Bias,
    Role::Scale,
    Role::State,
    Role::Other,
];

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Embed => "embed",
            Role::Q => "q",
            Role::K => "k",
            Role::V => "v",
            Role::Qkv => "qkv",
            Role::O => "o",
            Role::Gate => "gate",
            Role::Up => "up",
            Role::GateUp => "gate+up",
            Role::Down => "down",
            Role::Head => "head",
            Role::Norm => "norm",
            Role::Bias => "bias",
            Role::Scale => "scale",
            Role::State => "state",
            Role::Other => "other",
            Role::Named(name) => name,
        })
    }
}

impl Role {
    /// The role of this name: a built-in one, as it is printed, or one of the user's.
    pub fn named(name: &str) -> Role {
        BUILT_IN.into_iter().find(|r| r.to_string() == name).unwrap_or_else(|| Role::Named(name.to_owned()))
    }

    /// Whether a tensor of this role with two or more dimensions is the weight of a linear layer (or convolution): all but
    /// embeddings, norms, biases, scales and optimiser states.
    pub fn is_linear(&self) -> bool {
        !matches!(self, Role::Embed | Role::Norm | Role::Bias | Role::Scale | Role::State)
    }
}

/// How names become roles: the user's patterns in their order, then the built-in ones.
#[derive(Debug)]
pub struct RoleRules {
    rules: Vec<(Role, Regex)>,
    stored_inputs_first: bool,
}

/// The built-in patterns, of which the first that matches counts. `^` and `.` stand where a component of the name begins.
const PATTERNS: &[(Role, &str)] = &[
    (Role::State, r"^optimizer\."),
    (Role::Scale, r"(_scale|_scale_inv|\.scales|\.absmax)$|^(.*\.)?blocks\.\d+\.\w+\.W\.[^wv]"),
    (
        Role::Norm,
        r"(?i)(^|[._])(layer_?norm|rms_?norm|norm|ln|batch_?norm|bn)\d*(_\w+|[f\d]+)?(\.|$)|(_norm|_layernorm|LayerNorm)(\.|$)|\.(qn|kn)$|(^|\.)(ln_\w+)\.",
    ),
    (Role::Bias, r"(^|[._])bias$|\.b(\.\w+)?$|bias_ih|bias_hh"),
    (
        Role::Embed,
        r"(^|\.)(embed_tokens|embed_positions|embed_in|wte|wpe|tok_embeddings|emb)(\.|$)|(^|\.|_)embeddings?(\.|$)",
    ),
    (Role::Head, r"(^|\.)(lm_head|embed_out|head|score)(\.|$)|^output\.weight$|predictions\.decoder"),
    (Role::Qkv, r"(^|\.)(c_attn|qkv_proj|query_key_value|Wqkv|qkv|in_proj_weight|in_proj|qkvw)(\.|$)"),
    (Role::Q, r"(^|\.)(q_proj|query|q|wq|q_lin|query_proj)(\.|$)"),
    (Role::K, r"(^|\.)(k_proj|key|k|wk|k_lin|key_proj)(\.|$)"),
    (Role::V, r"(^|\.)(v_proj|value|v|wv|v_lin|value_proj)(\.|$)"),
    (
        Role::O,
        r"(^|\.)(o_proj|out_proj|wo|o|out_lin)(\.|$)|(attn|attention)\.(c_proj|dense|proj)(\.|$)|attention\.output\.dense",
    ),
    (Role::GateUp, r"(^|\.)(gate_up_proj|ff1)(\.|$)"),
    (Role::Gate, r"(^|\.)(gate_proj|w1|wi_0)(\.|$)"),
    (Role::Up, r"(^|\.)(up_proj|w3|c_fc|fc1|fc_in|lin1|wi|wi_1|dense_h_to_4h)(\.|$)|intermediate\.dense"),
    (Role::Down, r"(^|\.)(down_proj|w2|ff2|fc2|fc_out|lin2|dense_4h_to_h)(\.|$)|mlp\.c_proj(\.|$)|(^|\.)output\.dense"),
];

/// A tensor's role and place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What it is.
    pub role: Role,
    /// The first number in its name: its layer.
    pub layer: Option<usize>,
    /// Inputs and outputs of the linear map or convolution; `None` below two dimensions.
    pub fans: Option<Fans>,
}

/// How many inputs reach an output and back, as `jax.nn.initializers` and PyTorch count them: for a convolution
/// `(out, in, ...)` times the size of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fans {
    pub inputs: usize,
    pub outputs: usize,
    /// Whether the matrix is stored `[in, out]` (GPT-2's Conv1D) instead of `[out, in]`.
    pub inputs_first: bool,
}

impl Fans {
    /// Largest weight of Xavier's uniform law: sqrt(6 / (inputs + outputs)).
    pub fn xavier_max(&self) -> f64 {
        (6.0 / (self.inputs as f64 + self.outputs as f64)).sqrt()
    }

    /// Its standard deviation: sqrt(2 / (inputs + outputs)).
    pub fn xavier_std(&self) -> f64 {
        (2.0 / (self.inputs as f64 + self.outputs as f64)).sqrt()
    }
}

impl RoleRules {
    /// The user's `NAME=REGEX` rules before the built-in ones. `shapes` are names and shapes of all tensors, from which it
    /// is seen how GPT-2's matrices are stored: as `[in, out]`, if a `c_attn` or `c_fc` has more columns than rows.
    ///
    /// **Errors** when a rule has no `=`, an empty part, or is no regular expression.
    pub fn new<'a>(rules: &[String], shapes: impl IntoIterator<Item = (&'a str, &'a [usize])>) -> Result<RoleRules> {
        let mut all = Vec::new();
        for rule in rules {
            let fail = |reason: String| Error::argument("--role", rule, reason);
            let parts = rule.split_once('=').filter(|(name, pattern)| !name.trim().is_empty() && !pattern.is_empty());
            let (name, pattern) = parts.ok_or_else(|| fail("expected NAME=REGEX, such as q=\\.wq\\.".into()))?;
            all.push((Role::named(name.trim()), regex("--role", rule, pattern)?));
        }
        for (role, pattern) in PATTERNS {
            all.push((role.clone(), regex("pattern", pattern, pattern)?));
        }
        let wide =
            |(name, dims): (&str, &[usize])| conv1d(name) && !projection(name) && dims.len() == 2 && dims[0] < dims[1];
        Ok(RoleRules { rules: all, stored_inputs_first: shapes.into_iter().any(wide) })
    }

    /// Role and layer of a tensor, and the fans of a matrix.
    pub fn place(&self, name: &str, dims: &[usize]) -> Placed {
        let role = self.rules.iter().find(|(_, r)| r.is_match(name)).map_or(Role::Other, |(role, _)| role.clone());
        let layer = name.split('.').find_map(|part| part.parse().ok());
        let inputs_first = self.stored_inputs_first && conv1d(name) && dims.len() == 2;
        Placed { role, layer, fans: fans(name, dims, inputs_first) }
    }
}

/// A regular expression the user typed.
///
/// **Errors** name the option.
pub fn regex(option: &str, value: &str, pattern: &str) -> Result<Regex> {
    // The last line of the message is the reason; those before it draw the place.
    Regex::new(pattern).map_err(|e| {
        let text = e.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::argument(option, value, format!("no regular expression: {reason}"))
    })
}

fn conv1d(name: &str) -> bool {
    name.split('.').any(|part| matches!(part, "c_attn" | "c_fc" | "c_proj" | "q_attn"))
}

/// Whether the matrix may well be square, so that its shape says nothing.
fn projection(name: &str) -> bool {
    name.split('.').any(|part| part == "c_proj")
}

fn fans(name: &str, dims: &[usize], inputs_first: bool) -> Option<Fans> {
    if dims.len() < 2 || dims.contains(&0) {
        return None;
    }
    // A stack of experts' matrices is no convolution.
    let dims = if dims.len() == 3 && name.split('.').any(|part| part == "experts") { &dims[1..] } else { dims };
    let window: usize = dims[2..].iter().product();
    let (outputs, inputs) = if inputs_first { (dims[1], dims[0]) } else { (dims[0], dims[1]) };
    Some(Fans { inputs: inputs * window, outputs: outputs * window, inputs_first })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> (String, Option<usize>) {
        let placed = RoleRules::new(&[], []).expect("rules").place(name, &[8, 8]);
        (placed.role.to_string(), placed.layer)
    }

    #[test]
    fn names_of_the_known_families() {
        for (names, layer) in [
            ("q model.layers.3.self_attn.q_proj.weight", 3),
            ("k model.layers.3.self_attn.k_proj.weight", 3),
            ("v language_model.model.layers.12.self_attn.v_proj.weight", 12),
            ("o model.layers.0.self_attn.o_proj.weight", 0),
            ("gate model.layers.0.mlp.gate_proj.weight", 0),
            ("up model.layers.0.mlp.up_proj.weight", 0),
            ("down model.layers.0.mlp.down_proj.weight", 0),
            ("gate model.layers.2.mlp.experts.17.gate_proj.weight", 2),
            ("other model.layers.2.mlp.gate.weight", 2),
            ("norm model.layers.0.input_layernorm.weight", 0),
            ("norm model.layers.0.post_attention_layernorm.weight", 0),
            ("norm model.layers.0.self_attn.q_norm.weight", 0),
            ("norm model.layers.0.self_attn.k_norm.weight", 0),
            ("bias model.layers.0.self_attn.q_proj.bias", 0),
            ("scale model.layers.0.self_attn.q_proj.weight_scale_inv", 0),
            ("qkv h.11.attn.c_attn.weight", 11),
            ("qkv transformer.h.11.attn.c_attn.weight", 11),
            ("o h.11.attn.c_proj.weight", 11),
            ("up h.11.mlp.c_fc.weight", 11),
            ("down h.11.mlp.c_proj.weight", 11),
            ("bias h.11.mlp.c_proj.bias", 11),
            ("norm h.11.ln_1.weight", 11),
            ("norm h.11.ln_2.bias", 11),
            ("bias h.0.attn.bias", 0),
            ("q bert.encoder.layer.4.attention.self.query.weight", 4),
            ("k encoder.layer.4.attention.self.key.weight", 4),
            ("v encoder.layer.4.attention.self.value.weight", 4),
            ("o encoder.layer.4.attention.output.dense.weight", 4),
            ("norm encoder.layer.4.attention.output.LayerNorm.weight", 4),
            ("norm encoder.layer.4.output.LayerNorm.bias", 4),
            ("up encoder.layer.4.intermediate.dense.weight", 4),
            ("down encoder.layer.4.output.dense.weight", 4),
            ("bias encoder.layer.4.output.dense.bias", 4),
            ("qkv gpt_neox.layers.5.attention.query_key_value.weight", 5),
            ("o gpt_neox.layers.5.attention.dense.weight", 5),
            ("up gpt_neox.layers.5.mlp.dense_h_to_4h.weight", 5),
            ("down gpt_neox.layers.5.mlp.dense_4h_to_h.weight", 5),
            ("q blocks.7.q.W", 7),
            ("k blocks.7.k.W.w", 7),
            ("v blocks.7.v.W", 7),
            ("o blocks.7.o.W", 7),
            ("gate+up blocks.7.ff1.W", 7),
            ("down blocks.7.ff2.W", 7),
            ("bias blocks.7.ff2.b", 7),
            ("scale blocks.7.q.W.log_m", 7),
            ("norm blocks.7.norm1", 7),
            ("norm blocks.7.qn", 7),
            ("state optimizer.m.blocks.7.q.W", 7),
        ] {
            let (want, name) = names.split_once(' ').expect("a pair");
            assert_eq!(role(name), (want.to_owned(), Some(layer)), "{name}");
        }
        for pair in [
            "embed model.embed_tokens.weight",
            "embed wte.weight",
            "embed transformer.wpe.weight",
            "embed embeddings.word_embeddings.weight",
            "embed embeddings.token_type_embeddings.weight",
            "embed emb",
            "norm embeddings.LayerNorm.weight",
            "norm model.norm.weight",
            "norm transformer.ln_f.weight",
            "norm normf",
            "head lm_head.weight",
            "head head",
            "other pooler.dense.weight",
            "other conv1.weight",
        ] {
            let (want, name) = pair.split_once(' ').expect("a pair");
            assert_eq!(role(name), (want.to_owned(), None), "{name}");
        }
    }

    #[test]
    fn the_users_rules_come_first() {
        let rules = ["q=^a\\.".to_owned(), "router=gate$".to_owned()];
        let rules = RoleRules::new(&rules, []).expect("rules");
        let of = |name: &str| rules.place(name, &[2, 2]).role;
        assert_eq!(of("a.k_proj.weight"), Role::Q);
        assert_eq!(of("x.gate"), Role::Named("router".into()));
        assert_eq!(of("b.k_proj.weight"), Role::K);
        for (bad, why) in [("q", "NAME=REGEX"), ("=x", "NAME=REGEX"), ("q=", "NAME=REGEX"), ("q=(", "unclosed group")] {
            let message = RoleRules::new(&[bad.to_owned()], []).expect_err("refused").to_string();
            assert!(message.contains(why) && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn fans_follow_the_way_a_matrix_is_stored() {
        let plain = RoleRules::new(&[], []).expect("rules");
        let fans = |rules: &RoleRules, name: &str, dims: &[usize]| {
            rules.place(name, dims).fans.map(|f| (f.inputs, f.outputs, f.inputs_first))
        };
        assert_eq!(fans(&plain, "q_proj.weight", &[4, 6]), Some((6, 4, false)));
        assert_eq!(fans(&plain, "conv.weight", &[4, 6, 3, 3]), Some((54, 36, false)));
        assert_eq!(fans(&plain, "layers.0.experts.up_proj", &[8, 4, 6]), Some((6, 4, false)));
        assert_eq!(fans(&plain, "norm.weight", &[4]), None);
        assert_eq!(fans(&plain, "w", &[0, 4]), None);
        // GPT-2 stores [in, out]; the square one tells by its neighbours.
        let shapes = [("h.0.attn.c_attn.weight", &[4usize, 12][..]), ("h.0.attn.c_proj.weight", &[4, 4])];
        let gpt2 = RoleRules::new(&[], shapes).expect("rules");
        assert_eq!(fans(&gpt2, "h.0.attn.c_attn.weight", &[4, 12]), Some((4, 12, true)));
        assert_eq!(fans(&gpt2, "h.0.mlp.c_proj.weight", &[16, 4]), Some((16, 4, true)));
        assert_eq!(fans(&gpt2, "lm_head.weight", &[50, 4]), Some((4, 50, false)));
        let linear = RoleRules::new(&[], [("h.0.attn.c_attn.weight", &[12usize, 4][..])]).expect("rules");
        assert_eq!(fans(&linear, "h.0.attn.c_attn.weight", &[12, 4]), Some((4, 12, false)));
        let x = plain.place("w", &[4, 2]).fans.expect("a matrix");
        assert_eq!((x.xavier_max(), x.xavier_std()), (1.0, (1.0f64 / 3.0).sqrt()));
    }
}
