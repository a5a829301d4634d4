//! The ways to store projections that the SEL experiments compare, by name.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::nn::sel::{Mode, Offset, Pattern, Scale, Sel};
use crate::optim::Anneal;
use crate::report::style::label;
use crate::train::language::Projection;

/// A way to store projections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Ordinary weights.
    Baseline,
    /// Congruent combination.
    Congruent,
    /// Congruent with offset n and residual.
    CongruentPlus,
    /// Mismatch combination: the paper's main variant, and what the following change.
    Mismatch,
    /// Mismatch with offset n and residual.
    MismatchPlus,
    /// Without the linear pathway.
    ExpOnly,
    /// Learning-rate multipliers that stay at k0: Table 5.
    Fixed,
    /// m = exp(mu) takes beta in: Table 6.
    Absorbed,
    /// Both pathways divided by m: Table 6.
    Normalized,
    /// Both of these: the best of Table 6, which the paper leaves to future work for the main comparison.
    Combined,
    /// e_w sinh(beta m w) + l_w w (Section 6), smooth at 0.
    Sinh,
    /// Eq. 17, with an offset n that starts at [`damped_offset`].
    Damped,
}

/// Rank of the residual ("LoRA-style"; the paper does not say).
pub const RESIDUAL_RANK: usize = 8;

/// Start of n in Eq. 17, where the paper gives none: ln(1 + 1 / beta).
///
/// At small w Eq. 17 is exp(-n) w of the exponential pathway plus (1 - exp(-n)) w of the linear one: slope 1 whatever n.
/// n = 0 has no linear pathway. Here the two have the shares that they have in Eq. 13, 1 to 1 / beta. (Eq. 13 itself has
/// slope 1 + 1 / beta, so that the weights start smaller than their targets, by the factor beta / (beta + 1).)
pub fn damped_offset(beta: f64) -> f64 {
    (1.0 / beta).ln_1p()
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 12] = [
        Variant::Baseline,
        Variant::Mismatch,
        Variant::MismatchPlus,
        Variant::Congruent,
        Variant::CongruentPlus,
        Variant::ExpOnly,
        Variant::Fixed,
        Variant::Absorbed,
        Variant::Normalized,
        Variant::Combined,
        Variant::Sinh,
        Variant::Damped,
    ];

    /// Those of the main comparison (Tables 1 and 2).
    pub const MAIN: [Variant; 3] = [Variant::Baseline, Variant::Mismatch, Variant::MismatchPlus];

    /// Those of the comparison of combinations (Tables 3 and 4).
    pub const COMBINATIONS: [Variant; 5] =
        [Variant::Baseline, Variant::Congruent, Variant::CongruentPlus, Variant::Mismatch, Variant::MismatchPlus];

    /// Those of Table 5: multipliers annealed and fixed.
    pub const MULTIPLIERS: [Variant; 2] = [Variant::Mismatch, Variant::Fixed];

    /// Those of Table 6: the baseline, then beta fixed and absorbed, not normalised and normalised.
    pub const CURVATURES: [Variant; 5] =
        [Variant::Baseline, Variant::Mismatch, Variant::Normalized, Variant::Absorbed, Variant::Combined];

    /// Name in figures' styles, in files and on command lines.
    pub fn id(self) -> &'static str {
        match self {
            Variant::Baseline => "baseline",
            Variant::Congruent => "sel-congruent",
            Variant::CongruentPlus => "sel-congruent-plus",
            Variant::Mismatch => "sel-mismatch",
            Variant::MismatchPlus => "sel-mismatch-plus",
            Variant::ExpOnly => "sel-exp-only",
            Variant::Fixed => "sel-fixed",
            Variant::Absorbed => "sel-absorbed",
            Variant::Normalized => "sel-normalized",
            Variant::Combined => "sel-combined",
            Variant::Sinh => "sel-sinh",
            Variant::Damped => "sel-damped",
        }
    }

    /// The parameterisation. All start from the raw weights that Eq. 13 gives for Xavier targets.
    pub fn projection(self, beta: f64) -> Projection {
        let base = Sel::new(beta);
        let sel = match self {
            Variant::Baseline => return Projection::Standard,
            Variant::Congruent => base.with_mode(Mode::Congruent),
            Variant::CongruentPlus => base.with_mode(Mode::Congruent).with_offset_and_residual(RESIDUAL_RANK),
            Variant::Mismatch => base,
            Variant::MismatchPlus => base.with_offset_and_residual(RESIDUAL_RANK),
            Variant::ExpOnly => base.with_mode(Mode::ExpOnly),
            Variant::Fixed => fixed(base),
            Variant::Absorbed => Sel { absorb_beta: true, ..base },
            Variant::Normalized => Sel { normalize_by_inner_mult: true, ..base },
            Variant::Combined => Sel { absorb_beta: true, normalize_by_inner_mult: true, ..base },
            Variant::Sinh => base.with_mode(Mode::Sinh),
            Variant::Damped => {
                let scale = Scale { pattern: Pattern::Col, multiplier: Anneal::ONE, decay: false };
                let offset = Some(Offset { scale, initial: damped_offset(beta) });
                Sel { offset, ..base.with_mode(Mode::Damped) }
            }
        };
        Projection::Sel(sel)
    }

    /// `variants` with the baseline in front, where it is not among them: what differences are taken to.
    pub fn with_baseline(variants: &[Variant]) -> Vec<Variant> {
        let rest = variants.iter().copied().filter(|v| *v != Variant::Baseline);
        std::iter::once(Variant::Baseline).chain(rest).collect()
    }
}

/// k(t) = k0 for all scales.
fn fixed(sel: Sel) -> Sel {
    let at_start = |scale: Scale| Scale { multiplier: Anneal::constant(scale.multiplier.start), ..scale };
    Sel {
        exp_scale: at_start(sel.exp_scale),
        linear_scale: at_start(sel.linear_scale),
        inner: at_start(sel.inner),
        ..sel
    }
}

impl ValueEnum for Variant {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.id()).help(label(self.id())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::method;

    fn sel(variant: Variant) -> Sel {
        match variant.projection(4.0) {
            Projection::Sel(sel) => sel,
            Projection::Standard => panic!("{variant:?} is the baseline"),
        }
    }

    #[test]
    fn every_variant_is_found_by_its_name_and_has_a_style() {
        for (i, variant) in Variant::ALL.into_iter().enumerate() {
            assert_eq!(Variant::from_str(variant.id(), false), Ok(variant));
            assert!(method(variant.id()).is_some(), "{}", variant.id());
            assert!(Variant::ALL[..i].iter().all(|v| v.projection(4.0) != variant.projection(4.0)));
            assert!(variant == Variant::Baseline || sel(variant).check().is_ok());
        }
        assert!(Variant::from_str("mismatch", false).is_err());
        let with = Variant::with_baseline(&[Variant::Sinh, Variant::Baseline]);
        assert_eq!(with, [Variant::Baseline, Variant::Sinh]);
    }

    #[test]
    fn fixed_multipliers_stay_where_the_annealed_start() {
        let (annealed, fixed) = (sel(Variant::Mismatch), sel(Variant::Fixed));
        for (a, f) in [
            (annealed.exp_scale, fixed.exp_scale),
            (annealed.linear_scale, fixed.linear_scale),
            (annealed.inner, fixed.inner),
        ] {
            assert_ne!(a.multiplier.end, a.multiplier.start);
            assert_eq!(f.multiplier, Anneal::constant(a.multiplier.start));
            assert_eq!(Scale { multiplier: a.multiplier, ..f }, a);
        }
    }

    /// The four of Table 6 start at the same function.
    #[test]
    fn curvatures_start_alike() {
        let at = |v: Variant, w: f64| sel(v).value(&sel(v).initial_point(), w);
        for w in [-0.3, -1e-3, 1e-3, 0.2] {
            for v in &Variant::CURVATURES[2..] {
                assert!((at(*v, w) / at(Variant::Mismatch, w) - 1.0).abs() < 1e-12, "{v:?} at {w}");
            }
        }
    }

    #[test]
    fn damped_starts_with_a_linear_pathway_and_slope_one() {
        let damped = sel(Variant::Damped);
        let point = damped.initial_point();
        let w = 1e-6;
        assert!((damped.value(&point, w) / w - 1.0).abs() < 1e-5);
        // Shares beta and 1 of beta + 1.
        assert!((f64::exp(-point.n) - 4.0 / 5.0).abs() < 1e-12, "{}", point.n);
        assert_eq!(damped.value(&point, -0.3), -damped.value(&point, 0.3));
    }
}
