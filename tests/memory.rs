//! What the compiler says a program needs of memory.

use sinexp::array::DType;
use sinexp::graph::{Program, Shape, Tensor, checkpoint};
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

/// A deep chain of wide layers: kept, every layer's values wait for the reverse pass; computed again, one layer's do.
#[test]
fn rematerialisation_lowers_the_plan() {
    const LAYERS: usize = 12;
    let (x, w) = (input("x", &[256, 64]), input("w", &[64, 64]));
    let stats = |again: bool| {
        let layer = |h: &Tensor| {
            let block = |h: &[Tensor]| {
                let wide = (0..4).fold(h[0].clone(), |h, _| h.matmul(&w).sin());
                vec![&h[0] + wide]
            };
            if again { checkpoint(&[h.clone()], block) } else { block(&[h.clone()]) }.swap_remove(0)
        };
        let loss = (0..LAYERS).fold(x.clone(), |h, _| layer(&h)).square().mean_all();
        let gradient = grad(&loss, &[w.clone()]).expect("a gradient").swap_remove(0);
        let program = Program::new("deep", &[x.clone(), w.clone()], &[("gradient", gradient)]).expect("a program");
        memory_stats(&program).expect("stats")
    };
    let (kept, again) = (stats(false), stats(true));
    println!("kept {kept:?}, computed again {again:?}");
    assert_eq!((kept.arguments, kept.results), (again.arguments, again.results));
    // One value is 64 kB. All 4 x 12 sines' arguments and results, against the 12 layers' inputs and one layer's own.
    assert!(kept.temporaries > 48 * 65_536 && again.temporaries < kept.temporaries / 2, "{kept:?} {again:?}");
}
