//! How the methods of the two papers look: one name, colour, dash and marker each, the same in every figure. What is general
//! about looks comes from [`panelplot::style`].
//!
//! ```
//! use sinexp::report::style::{label, method};
//! let (name, _line) = method("uniform-mm").unwrap();
//! assert_eq!(label("uniform-mm"), name);
//! assert!(method("no such method").is_none());
//! ```

pub use panelplot::style::*;

/// The label and style of a method, by its command-line name (`uniform-mm`, `cvp26-s0`, `sel-mismatch` ...); the same in every
/// figure. `None` for a name that no figure knows.
pub fn method(name: &str) -> Option<(&'static str, LineStyle)> {
    use Dash::*;
    use Marker::{Circle, Cross, Diamond, Down, Square, Star, Triangle};
    const GRAY: Color = Color(0x77, 0x77, 0x77);
    Some(match name {
        "uniform-mm" => ("uniform-phase MM", LineStyle::new(PALETTE[0], Solid, Circle)),
        "cvp26-s0" => ("CVP26 σₐ = 0", LineStyle::new(PALETTE[1], Dashed, Square)),
        "cvp26-s1" => ("CVP26 σₐ = 1", LineStyle::new(PALETTE[4], DashDot, Triangle)),
        "sm20" => ("SM20", LineStyle::new(PALETTE[2], LongDash, Diamond)),
        "sm20-repo" => ("SM20 (code)", LineStyle::new(PALETTE[2], Dotted, Cross)),
        "tanh-pe" => ("tanh, PE, Xavier", LineStyle::new(PALETTE[3], Dashed, Down)),
        "relu" => ("ReLU", LineStyle::new(PALETTE[6], Dotted, Triangle)),
        "silu" => ("SiLU", LineStyle::new(PALETTE[5], DashDot, Square)),
        "gelu" => ("GELU", LineStyle::new(GRAY, LongDash, Circle)),
        "baseline" => ("baseline", LineStyle::new(GRAY, Dashed, Square)),
        "sel-mismatch" => ("SEL mismatch", LineStyle::new(PALETTE[0], Solid, Circle)),
        "sel-mismatch-plus" => ("SEL mismatch + offset, LoRA", LineStyle::new(PALETTE[3], Solid, Diamond)),
        "sel-congruent" => ("SEL congruent", LineStyle::new(PALETTE[1], DashDot, Triangle)),
        "sel-congruent-plus" => ("SEL congruent + offset, LoRA", LineStyle::new(PALETTE[4], LongDash, Down)),
        "sel-exp-only" => ("SEL exponential only", LineStyle::new(PALETTE[2], Dotted, Cross)),
        "sel-fixed" => ("SEL fixed multipliers", LineStyle::new(PALETTE[1], Dashed, Triangle)),
        "sel-absorbed" => ("SEL β absorbed", LineStyle::new(PALETTE[5], LongDash, Cross)),
        "sel-normalized" => ("SEL normalized by m", LineStyle::new(PALETTE[4], Dotted, Triangle)),
        "sel-combined" => ("SEL β absorbed, normalized", LineStyle::new(PALETTE[6], Solid, Star)),
        "sel-sinh" => ("SEL sinh", LineStyle::new(PALETTE[2], DashDot, Circle)),
        "sel-damped" => ("SEL damped", LineStyle::new(PALETTE[5], LongDash, Square)),
        _ => return None,
    })
}

/// The label of a method, or the name itself where no figure knows it.
pub fn label(name: &str) -> &str {
    method(name).map_or(name, |(label, _)| label)
}

/// Name and style of curve `i` of `n`; a name that no method has gets a style by its place.
pub(super) fn named(id: &str, i: usize, n: usize) -> (&str, LineStyle) {
    method(id).map_or_else(|| (id, sequence(i, n)), |(label, style)| (label, style))
}

#[cfg(test)]
mod tests {
    use ab_glyph::{Font as _, FontRef};

    use super::*;

    #[test]
    fn methods_differ_without_colour() {
        let siren = ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "sm20-repo", "tanh-pe", "relu", "silu", "gelu"];
        let sel = [
            "baseline",
            "sel-mismatch",
            "sel-mismatch-plus",
            "sel-congruent",
            "sel-congruent-plus",
            "sel-exp-only",
            "sel-fixed",
            "sel-absorbed",
            "sel-normalized",
            "sel-combined",
            "sel-sinh",
            "sel-damped",
        ];
        for names in [&siren[..], &sel] {
            for (i, a) in names.iter().enumerate() {
                for b in &names[..i] {
                    let (a, b) = (method(a).expect("known"), method(b).expect("known"));
                    assert_ne!(a.0, b.0);
                    assert_ne!((a.1.dash, a.1.marker), (b.1.dash, b.1.marker), "{} and {}", a.0, b.0);
                }
            }
        }
        assert!(method("nonsense").is_none());
    }

    #[test]
    fn the_font_has_every_glyph_the_labels_use() {
        let font = FontRef::try_from_slice(dejavu::sans::regular()).expect("a font");
        for name in ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "sm20-repo", "tanh-pe"] {
            let (label, _) = method(name).expect("known");
            assert!(label.chars().all(|c| font.glyph_id(c).0 != 0), "{label}");
        }
    }
}
