//! What the compiler says a program needs of memory.

use sinexp::array::DType;
use sinexp::graph::{Program, Shape, Tensor, checkpoint, fori_loop};
use sinexp::runtime::memory_stats;
use sinexp::transform::grad;

fn input(name: &str, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(DType::F32, dims))
}

#[test]
fn arguments_results_and_donations_are_counted() {
    let (s, x) = (input("state", &[1000]), input("x", &[500, 2]));
    let sum = &s + x.reshape(&[1000]);
    let outputs = [("state", sum.clone()), ("first", sum.slice_in_dim(0, 0, 100))];
    let plain = Program::new("plain", &[s.clone(), x.clone()], &outputs).expect("a program");
    let donated = Program::with_donation("donated", &[s, x], &outputs, &[(0, 0)]).expect("a program");
    let (plain, donated) = (memory_stats(&plain).expect("stats"), memory_stats(&donated).expect("stats"));
    assert_eq!((plain.arguments, plain.donated, donated.arguments, donated.donated), (8000, 0, 8000, 4000));
    // 4400 bytes and the table of the results' addresses.
    assert!((4400..4480).contains(&plain.results) && donated.results == plain.results, "{plain:?}");
    assert_eq!(plain.total() - donated.total(), 4000, "{plain:?} {donated:?}");
}

/// A loop over layers that each have wide insides: kept, every layer's insides wait for the reverse pass; computed
/// again, one layer's do.
#[test]
fn rematerialisation_lowers_the_plan() {
    const LAYERS: usize = 12;
    let (x, w) = (input("x", &[256, 64]), input("w", &[64, 64]));
    let stats = |again: bool| {
        let block = |h: &[Tensor]| {
            let wide = (0..4).fold(h[0].clone(), |h, _| h.matmul(&w).sin());
            vec![&h[0] + wide]
        };
        let layer = |h: &[Tensor]| if again { checkpoint(h, block) } else { block(h) };
        let h = fori_loop(LAYERS, &[x.clone()], |_, h| layer(h)).swap_remove(0);
        let gradient = grad(&h.square().mean_all(), &[w.clone()]).expect("a gradient").swap_remove(0);
        let program = Program::new("deep", &[x.clone(), w.clone()], &[("gradient", gradient)]).expect("a program");
        memory_stats(&program).expect("stats")
    };
    let (kept, again) = (stats(false), stats(true));
    println!("kept {kept:?}, computed again {again:?}");
    assert_eq!((kept.arguments, kept.results), (again.arguments, again.results));
    // One value is 64 kB. 12 x 4 of those at least, against the 12 layers' inputs and about one layer's own.
    assert!(kept.temporaries > 48 * 65_536 && again.temporaries < kept.temporaries / 3, "{kept:?} {again:?}");
}
