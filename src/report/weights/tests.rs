//! Figures of a small checkpoint: what each panel must name, and checkpoints of which little can be drawn.

use std::collections::BTreeMap;

use super::*;
use crate::analysis::weights::{Distances, Role, RoleRules, Survey, Wanted, survey};
use crate::array::{Array, DType};
use crate::interop::safetensors::{Shards, Tensors, write};
use crate::random::Key;

fn found(tensors: Vec<(&str, Array)>) -> (Survey, Wanted) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.safetensors");
    let tensors = tensors.into_iter().map(|(n, a)| (n.to_owned(), a)).collect();
    write(&path, &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
    let shards = Shards::open(&[path]).expect("opens");
    let wanted = Wanted {
        percents: vec![50.0],
        thresholds: vec![0.1],
        tail: 0.01,
        stable_rank: 1 << 20,
        curve: vec![0.001, 0.01, 0.1, 1.0],
        fine_percents: vec![1.0, 50.0, 99.0, 100.0],
        bins: 21,
    };
    let rules = RoleRules::new(&[], []).expect("rules");
    let found = survey(&shards, &rules, &wanted, |_, _| true, Role::is_linear, |_| ()).expect("statistics");
    (found, wanted)
}

fn draw(seed: u64, dims: &[usize], scale: f64) -> Array {
    Array::from_ndarray(&Key::new(seed).normal::<f64>(dims).mapv(|z| scale * z * z * z)).cast(DType::F32)
}

#[test]
fn every_panel_of_the_captions_is_there() {
    let (mut survey, wanted) = found(vec![
        ("layers.0.q_proj.weight", draw(0, &[40, 40], 0.1)),
        ("layers.1.q_proj.weight", draw(1, &[40, 40], 0.1)),
        ("layers.1.up_proj.weight", draw(2, &[80, 40], 0.1)),
        ("pooler.weight", draw(3, &[40, 40], 0.01)),
    ]);
    let all = survey.all.take().expect("matrices");
    let says = |svg: String, texts: &[&str]| {
        for text in texts {
            assert!(svg.contains(text), "{text} is missing");
        }
    };
    let svg = |figure: crate::report::Figure| figure.to_svg().expect("draws");
    says(
        svg(gap_figure(&survey, &all, &wanted, "Note.")),
        &[
            "share of weights per bin",
            "share of |w| above it",
            "growth per matrix",
            "Xavier max",
            "pretrained",
            "Note.",
        ],
    );
    let sorted: Vec<f32> = (0..2_000_000).map(|i| i as f32 / 2e6).chain([9.0]).collect();
    let distances = Distances { sorted, every: 1 };
    says(
        svg(distance_figure(&distances, 0.001, "Note.")),
        &["|w − w₀|", "rank, the farthest first", "least steps", "average", "leaves out 2 weights beyond 1.0"],
    );
    says(
        svg(tail_figure(&survey, &all, &wanted, "Note.")),
        &[
            "growth of the max per layer",
            "correlation r = ",
            "standard deviation",
            "percentile",
            "layer (2: in no layer)",
        ],
    );
    let table = claims(&all, &survey.tensors, (0, 0.1)).expect("a table").to_string();
    for text in ["4 matrices, 8000 weights", "30 ×", "1.7 ×", "0.05 %"] {
        assert!(table.contains(text), "{text} in {table}");
    }
}

#[test]
fn zeros_and_single_weights_still_make_figures() {
    let zero = Array::full(DType::F32, &[4, 4], 0.0);
    for tensors in [
        vec![("a.q_proj.weight", zero.clone())],
        vec![("a.q_proj.weight", Array::full(DType::F32, &[1, 1], 0.5))],
        vec![("a.q_proj.weight", Array::full(DType::F32, &[2, 2], f32::NAN.into())), ("b.weight", zero)],
    ] {
        let (survey, wanted) = found(tensors);
        let all = survey.all.as_ref().expect("matrices");
        for figure in [
            gap_figure(&survey, all, &wanted, ""),
            tail_figure(&survey, all, &wanted, ""),
            distance_figure(&Distances::default(), 0.1, ""),
            distance_figure(&Distances { sorted: vec![0.0], every: 1 }, 0.1, ""),
        ] {
            assert!(figure.to_svg().expect("draws").contains("</svg>"));
        }
        assert!(claims(all, &survey.tensors, (0, 0.1)).is_ok());
        assert_eq!(all.heights.iter().sum::<u64>(), all.summary.count);
    }
}
