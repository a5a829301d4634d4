//! What the report knows of each experiment: its place in the papers, what it shows, captions.

use super::grid::Grid;
use super::headline;

/// The uniform-phase SIREN paper.
const SIREN: &str = "arXiv 2609.30633";
/// The SEL paper.
const SEL: &str = "arXiv 2607.09967";

/// An experiment of one of the papers.
#[derive(Debug)]
pub struct Experiment {
    /// The program that runs it.
    pub program: &'static str,
    /// Heading.
    pub heading: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Where in it.
    pub place: &'static str,
    /// What is shown, in a sentence or two.
    pub about: &'static str,
    /// Whether its tables rest on training runs, which the call that wrote them may have found done.
    pub trains: bool,
    /// Captions of its figures by the beginning of their names.
    pub captions: &'static [(&'static str, &'static str)],
    /// The main numbers, ours.
    pub ours: fn(&[Grid]) -> Option<String>,
    /// And the paper's.
    pub printed: &'static str,
}

/// The experiment of a program.
pub fn named(program: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|e| e.program == program)
}

/// Its place in the order of the papers.
pub fn position(experiment: &Experiment) -> usize {
    EXPERIMENTS.iter().position(|e| e.program == experiment.program).unwrap_or(EXPERIMENTS.len())
}

impl Experiment {
    /// The caption of the figure `stem`.
    pub fn caption(&self, stem: &str) -> Option<&'static str> {
        let exact = self.captions.iter().find(|(name, _)| *name == stem);
        let begins =
            || self.captions.iter().find(|(name, _)| stem.strip_prefix(name).is_some_and(|r| r.starts_with('-')));
        exact.or_else(begins).map(|(_, caption)| *caption)
    }
}

const LOSSES: &str = "Training error against step, one curve per initialisation, first seed. No figure of the paper.";
const FIGURE2: &str =
    "Figure 2: test error against ω₀, a panel per picture. The level is uniform-phase, which has no ω₀ to choose.";
const SWEEP: &str = "Each picture is fitted once from the uniform-phase moment-matched (MM) initialisation, and from three others at \
                     many values of ω₀; the table has the best of each. Below 1, MM without any search beats the best of the searches.";
const SWEEP_PRINTED: &str = "MM best on 5 of 8 gray and RGB pictures, within 19 % on the others; in CIELAB on all";

/// All of them, in the papers' order.
pub const EXPERIMENTS: [Experiment; 21] = [
    Experiment {
        program: "spectrum",
        heading: "Singular values of a deep sine network's Jacobian",
        paper: SIREN,
        place: "Theorem 1, Figure 3",
        about: "How J = ∂h_L/∂h_1 spreads with depth under four initialisations. Theorem 1: the mean squared singular value of \
                the uniform-phase initialisation is one at every width and depth.",
        trains: false,
        captions: &[("fig3", "Figure 3: singular values against rank, a panel per initialisation, a curve per depth.")],
        ours: headline::spectrum,
        printed: "uniform-phase: 1 at any depth",
    },
    Experiment {
        program: "siren-table1",
        heading: "Cameraman by wide networks",
        paper: SIREN,
        place: "Table 1, Figure 1",
        about: "One picture, every initialisation, wide networks.",
        trains: true,
        captions: &[
            (
                "fig1",
                "Figure 1: the picture and its fits: training grid, evaluation grid, the part in the red square enlarged.",
            ),
            ("losses", LOSSES),
        ],
        ours: headline::cameraman,
        printed: "MM lowest by a small margin, then CVP26 σₐ = 0",
    },
    Experiment {
        program: "siren-table2",
        heading: "Cameraman by narrow networks",
        paper: SIREN,
        place: "Table 2, Figure 4",
        about: "The same picture by networks of 16 neurons a layer, where the initialisation decides.",
        trains: true,
        captions: &[
            (
                "fig4",
                "Figure 4: the picture and its fits: training grid, evaluation grid, the part in the red square enlarged.",
            ),
            ("losses", LOSSES),
        ],
        ours: headline::cameraman,
        printed: "MM 10.28 dB, the best; CVP26 6.8 dB below",
    },
    Experiment {
        program: "siren-audio",
        heading: "Seven seconds of Bach",
        paper: SIREN,
        place: "Figure 5",
        about: "A sound as a function of time, by every initialisation.",
        trains: true,
        captions: &[
            ("fig5", "Figure 5: the sound (gray) and its reconstructions (blue); left all of it, right its beginning."),
            ("losses", LOSSES),
        ],
        ours: headline::audio,
        printed: "SM20 31.15 dB, MM 29.33, CVP26 nearly 20 below MM, ReLU near 0",
    },
    Experiment {
        program: "siren-table3",
        heading: "ω₀ sweep, grayscale",
        paper: SIREN,
        place: "Table 3, Figures 2 and 7",
        about: SWEEP,
        trains: true,
        captions: &[("fig2", FIGURE2), ("fig7", "Figure 7: the pictures and the best fit of each initialisation.")],
        ours: headline::sweep,
        printed: SWEEP_PRINTED,
    },
    Experiment {
        program: "siren-table4",
        heading: "ω₀ sweep, RGB",
        paper: SIREN,
        place: "Table 4, Figures 2 and 8",
        about: SWEEP,
        trains: true,
        captions: &[("fig2", FIGURE2), ("fig8", "Figure 8: the pictures and the best fit of each initialisation.")],
        ours: headline::sweep,
        printed: SWEEP_PRINTED,
    },
    Experiment {
        program: "siren-table5",
        heading: "ω₀ sweep, CIELAB",
        paper: SIREN,
        place: "Table 5, Figures 2 and 9",
        about: SWEEP,
        trains: true,
        captions: &[("fig2", FIGURE2), ("fig9", "Figure 9: the pictures and the best fit of each initialisation.")],
        ours: headline::sweep,
        printed: "MM best on all; 3.0 to 5.2 times on all but Hubble",
    },
    Experiment {
        program: "siren-mup",
        heading: "Learning rates across widths",
        paper: SIREN,
        place: "Figure 6",
        about: "Mean training error against the learning rate for several widths, under standard scaling and two kinds of μP.",
        trains: true,
        captions: &[(
            "fig6",
            "Figure 6: time average of the training error against the learning rate; a curve per width.",
        )],
        ours: headline::mup,
        printed: "a figure without printed numbers",
    },
    Experiment {
        program: "weights",
        heading: "Pretrained weights against Xavier's law",
        paper: SEL,
        place: "Figures 1, 13, 14",
        about: "How far the weights of a trained checkpoint are from the law they started from.",
        trains: false,
        captions: &[
            (
                "fig1",
                "Figure 1: histogram and tail of the weights against Xavier's, and growth of the largest by matrix.",
            ),
            ("fig13", "Figure 13: how far each weight is from its start, and the least steps that takes, by rank."),
            (
                "fig14",
                "Figure 14: growth by layer, largest weights and standard deviations against Xavier's, percentiles.",
            ),
        ],
        ours: headline::weights,
        printed: "Qwen3-4B: largest 1.23 / 0.04 = 30 ×",
    },
    Experiment {
        program: "sel-curves",
        heading: "The symmetric-exponential transform by itself",
        paper: SEL,
        place: "Figures 2, 3, 10, 11",
        about: "The transform from raw to effective weight, without any training.",
        trains: false,
        captions: &[
            (
                "fig2",
                "Figure 2: symexp against the identity, and how the exponential pathway changes with n and with β.",
            ),
            ("fig3", "Figure 3: congruent and mismatch, and the difference of the two."),
            ("fig10", "Figure 10: the transform over a grid of β and n."),
            ("fig11", "Figure 11: standard symexp beside SEL's symmetric-exponential pathway."),
            ("modes", "The modes side by side. No figure of the paper."),
        ],
        ours: |_| None,
        printed: "figures of a formula",
    },
    Experiment {
        program: "sel-table1",
        heading: "Baseline against SEL on a grid of sizes",
        paper: SEL,
        place: "Table 1, Figure 4",
        about: "Final evaluation loss of ordinary weights and of the better SEL variant; the speed-up is in steps to the baseline's \
                final loss.",
        trains: true,
        captions: &[("fig4", "Figure 4: evaluation loss against step, without the first tenth of the steps.")],
        ours: headline::table1,
        printed: "Δ −0.038 to −0.052 nats; speed-up 1.32 to 1.49",
    },
    Experiment {
        program: "sel-table2",
        heading: "The variants on that grid",
        paper: SEL,
        place: "Table 2",
        about: "Final evaluation loss of each variant, and its difference to the baseline seed by seed.",
        trains: true,
        captions: &[],
        ours: headline::variants,
        printed: "offset and residual better at width 1024, not always above",
    },
    Experiment {
        program: "sel-table3",
        heading: "Congruent and mismatch",
        paper: SEL,
        place: "Table 3",
        about: "Congruent and mismatch, without and with offset and residual.",
        trains: true,
        captions: &[],
        ours: headline::variants,
        printed: "mismatch ahead at every depth, with offset and residual more so",
    },
    Experiment {
        program: "sel-table4",
        heading: "Congruent and mismatch, wider",
        paper: SEL,
        place: "Table 4",
        about: "Congruent and mismatch, without and with offset and residual.",
        trains: true,
        captions: &[],
        ours: headline::variants,
        printed: "mismatch without offset best of the four",
    },
    Experiment {
        program: "sel-fig5",
        heading: "The exponential pathway alone",
        paper: SEL,
        place: "Figure 5",
        about: "The full transform against one without its linear pathway.",
        trains: true,
        captions: &[("fig5", "Figure 5: training loss against step.")],
        ours: headline::variants_named,
        printed: "3.870 alone, 3.142 full, at 31k steps",
    },
    Experiment {
        program: "sel-table5",
        heading: "Annealed and fixed multipliers",
        paper: SEL,
        place: "Table 5, Figure 6",
        about: "Learning-rate multipliers of the scales that fall during training, or stay.",
        trains: true,
        captions: &[("fig6", "Figure 6: evaluation loss, and the scales over training relative to their start.")],
        ours: headline::multipliers,
        printed: "annealed 2.894, fixed 2.899",
    },
    Experiment {
        program: "sel-table6",
        heading: "Curvature: β absorbed, pathways divided",
        paper: SEL,
        place: "Table 6",
        about: "Where the curvature β is kept, and whether the pathways are divided by m.",
        trains: true,
        captions: &[],
        ours: headline::variants_named,
        printed: "β absorbed and normalized best of the four",
    },
    Experiment {
        program: "sel-table7",
        heading: "What a step costs",
        paper: SEL,
        place: "Table 7",
        about: "Milliseconds of forward, backward and optimizer, baseline and SEL in turn.",
        trains: false,
        captions: &[],
        ours: headline::cost,
        printed: "5.5 % overhead, 1.37 times faster to the same loss (H200)",
    },
    Experiment {
        program: "sel-mismatch",
        heading: "Weights against their targets at the start",
        paper: SEL,
        place: "Figure 12",
        about: "In mismatch mode negative weights start short of their targets; what that does to the matrix.",
        trains: false,
        captions: &[
            ("fig12", "Figure 12: target against actual weight, densities of both, and actual over target by sign."),
            ("singular_values", "Singular values of targets and actual weights. No figure of the paper."),
        ],
        ours: headline::mismatch,
        printed: "75 to 80 % of the target",
    },
    Experiment {
        program: "sel-shapes",
        heading: "Learned scales and transforms",
        paper: SEL,
        place: "Figures 6, 8, 9",
        about: "What training made of the transforms of one run, by role.",
        trains: false,
        captions: &[
            ("fig6", "Figure 6: evaluation loss, and the scales over training relative to their start."),
            ("fig8", "Figure 8: learned transforms by role: the median and the range of 5 to 95 %."),
            ("fig9", "Figure 9: learned transforms by role out to 0.1 and 99.9 %, and those of the largest weights."),
        ],
        ours: headline::shapes,
        printed: "e_w 1.38, l_w 0.54, m 0.98 of their start",
    },
    Experiment {
        program: "sel-weights",
        heading: "Effective weights after training",
        paper: SEL,
        place: "Figure 7",
        about: "Weights of the baseline and effective weights of SEL, at the start and after training.",
        trains: false,
        captions: &[
            (
                "fig7",
                "Figure 7: densities of the weights of baseline and SEL, at the start (left) and after training (right).",
            ),
            ("fig7_roles", "Figure 7 by role, after training."),
        ],
        ours: headline::growth,
        printed: "a figure without printed numbers",
    },
];
