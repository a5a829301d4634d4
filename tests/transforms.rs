//! What transforms refuse, and with which words; what the program text must and must not contain.

mod common;

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

use common::evaluate;
use hlograd::error::Result;
use sinexp::array::{Array, DType};
use sinexp::graph::*;
use sinexp::transform::{grad, jvp, vjp};

fn input(name: &str, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(DType::F64, dims))
}

fn error<T>(result: Result<T, impl std::fmt::Display>) -> String {
    match result {
        Ok(_) => panic!("not refused"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn a_parameter_that_the_loss_does_not_reach_is_named() {
    let (x, y) = (input("x", &[3]), input("blocks.0.weight", &[2, 2]));
    let text = error(grad(&x.sin().sum_all(), &[x.clone(), y]));
    assert!(text.contains("does not depend on parameter `blocks.0.weight` float64[2,2]"), "{text}");
    for cut in [x.stop_gradient(), x.floor(), x.convert(DType::I32).convert(DType::F64), x.sign()] {
        let text = error(grad(&cut.sum_all(), &[x.clone()]));
        assert!(text.contains("no gradient reaches parameter `x`"), "{text}");
    }
}

#[test]
fn operations_without_a_rule_are_named() {
    let x = input("x", &[]);
    let y = while_loop(&[x.clone()], |s| s[0].lt(&s[0].full_like(9.0)), |s| vec![&s[0] * 2.0]);
    let text = error(grad(&y[0], &[x.clone()]));
    assert!(
        text.contains("while") && text.contains("use scan or fori_loop") && text.contains("transforms.rs"),
        "{text}"
    );
    let y = Tensor::custom_call("mystery", "", &[x.clone()], &[Shape::new(DType::F64, &[])]);
    for text in [error(grad(&y[0], &[x.clone()])), error(jvp(&y, &[x.clone()], &[x.ones_like()]).map(|_| ()))] {
        assert!(text.contains("custom-call") && text.contains("transforms.rs"), "{text}");
    }
}

/// Message and place of the panic that `f` must end in.
fn panic_of<T>(f: impl FnOnce() -> T) -> (String, String) {
    thread_local!(static PLACE: RefCell<Option<String>> = const { RefCell::new(None) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
            // Only where a panic is awaited; any other is reported as ever.
            match PLACE.with_borrow_mut(|p| p.as_mut().map(|p| *p = place.unwrap_or_default())) {
                Some(()) => {}
                None => usual(info),
            }
        }));
    });
    PLACE.set(Some(String::new()));
    let caught = std::panic::catch_unwind(AssertUnwindSafe(f));
    let place = PLACE.take().unwrap_or_default();
    let Err(payload) = caught else { panic!("no panic") };
    let message = payload.downcast_ref::<String>().cloned();
    (message.or(payload.downcast_ref::<&str>().map(|m| m.to_string())).unwrap_or_default(), place)
}

/// A shape mistake panics with the operation, both shapes and the caller's line.
#[test]
fn shape_mistakes_say_what_and_where() {
    let (a, b) = (input("a", &[2, 3]), input("b", &[4, 3]));
    let (i, c) = (Tensor::parameter("i", Shape::new(DType::I32, &[2, 3])), input("c", &[5]));
    let mut wrong = Vec::new();
    macro_rules! check {
        ($mistake:expr, $($said:expr),+) => {
            let (message, place) = panic_of(|| $mistake);
            let complete = [$($said),+].iter().all(|said| message.contains(said));
            if !complete || message.contains('\n') || place != format!("{}:{}", file!(), line!()) {
                wrong.push(format!("{} at line {}: {message} ({place})", stringify!($mistake), line!()));
            }
        };
    }
    check!(a.matmul(&b), "dot", "[2,3]", "[4,3]");
    check!(&a + &b, "add", "[2,3]", "[4,3]");
    check!(&a * &b, "multiply", "[2,3]", "[4,3]");
    check!(a.maximum(&b), "maximum", "[2,3]", "[4,3]");
    check!(a.gt(&b), "compare", "[2,3]", "[4,3]");
    check!(a.gt(&a).select(&a, &c), "select", "[2,3]", "[5]");
    check!(a.broadcast_to(&[2, 4]), "broadcast", "[2,3]", "[2, 4]");
    check!(a.broadcast_to(&[3]), "broadcast", "[2,3]", "[3]");
    let (many, few) = (input("many", &[5, 2, 3]), input("few", &[4, 3, 2]));
    check!(many.matmul(&few), "matmul", "[5,2,3]", "[4,3,2]");
    check!(&a - &i, "subtract", "float64[2,3]", "int32[2,3]");
    check!(a.reshape(&[7]), "reshape", "[2,3]", "[7]");
    check!(a.transpose(&[0, 0]), "transpose", "[2,3]", "[0, 0]");
    check!(concatenate(&[a.clone(), b.clone()], 1), "concatenate", "[2,3]", "[4,3]");
    check!(stack(&[a.clone(), b.clone()], 0), "concatenate", "[1,2,3]", "[1,4,3]");
    check!(a.slice(&[0, 0], &[2, 4], &[1, 1]), "slice", "[2,3]", "[0:4:1]");
    check!(a.sum(&[2]), "reduce", "[2,3]", "2");
    check!(i.sin(), "sine", "int32[2,3]");
    check!(a.take(&c, 0), "gather", "float64[5", "int");
    let body = |s: &[Tensor], x: &[Tensor]| (vec![x[0].clone()], vec![s[0].clone()]);
    check!(scan(&[c.clone()], &[a.clone()], None, false, body), "scan", "[5]", "[3]");
    check!(cond(&c.sum_all().gt(&c.sum_all()), |v| vec![v[0].clone()], |v| vec![v[0].sum_all()], &[c.clone()]), "[5]");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn count(program: &Program, what: &str) -> usize {
    program.text.matches(what).count()
}

#[test]
fn a_checkpoint_computes_again_behind_a_barrier() {
    let x = input("x", &[5]);
    let body = |v: &[Tensor]| vec![v[0].sin().exp().sin()];
    let program = |y: Tensor| {
        let g = grad(&y.sum_all(), &[x.clone()]).expect("a gradient");
        Program::new("g", &[x.clone()], &[("g", g[0].clone())]).expect("a program")
    };
    let kept = program(body(&[x.clone()]).swap_remove(0));
    let again = program(checkpoint(&[x.clone()], body).swap_remove(0));
    assert_eq!((count(&kept, "opt-barrier("), count(&again, "opt-barrier(")), (0, 1));
    // The loss itself is not a result, so the forward pass is there only as far as the reverse pass reads it: behind the
    // barrier in one, in the open in the other.
    let after = again.text.split("opt-barrier(").nth(1).expect("a barrier");
    assert!(after.contains(" sine(") && after.contains(" exponential("));
    let value = Array::from_slice(&[5], &[0.1, 0.2, 0.3, -2.0, 5.0]);
    let run = |p: &Program| common::cpu().compile(p).expect("compiles").call(&[&value]).expect("a run")[0].to_f64_vec();
    common::check::close("the same gradient", &run(&again), &run(&kept), 1e-14);
}

/// The gradient of a scan is one loop forward and one back.
#[test]
fn the_forward_loop_of_a_scan_runs_once() {
    let (h, x) = (input("h", &[3]), input("x", &[7, 3]));
    let (last, ys) =
        scan(&[h.clone()], &[x.clone()], None, false, |c, x| (vec![(&c[0] + &x[0]).sin()], vec![c[0].sum_all()]));
    let loss = last[0].sum_all() + ys[0].square().sum_all();
    let g = grad(&loss, &[h.clone(), x.clone()]).expect("gradients");
    let outputs = [("loss", loss), ("dh", g[0].clone()), ("dx", g[1].clone())];
    let program = Program::new("scan", &[h, x], &outputs).expect("a program");
    assert_eq!(count(&program, " while("), 2, "{}", program.text);
}

#[test]
fn safe_forms_at_their_edges() {
    let x = input("x", &[2, 3]);
    let zero = Array::full(DType::F64, &[2, 3], 0.0);
    let norm = grad(&x.norm(&[1]).sum_all(), &[x.clone()]).expect("a gradient");
    assert_eq!(evaluate(&[x.clone()], &norm, &[zero])[0].to_f64_vec(), [0.0; 6]);
    let low = Array::from_slice(&[2, 3], &[f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY, 1e3, 1e3, 1e3]);
    let got = evaluate(&[x.clone()], &[x.logsumexp(1)], &[low])[0].to_f64_vec();
    assert!(got[0] == f64::NEG_INFINITY && (got[1] - (1e3 + 3f64.ln())).abs() < 1e-12, "{got:?}");
    // 1000 ones in bf16: added up in bf16 the sum would stop at 256.
    let ones = Tensor::full(DType::BF16, &[1000], 1.0);
    assert_eq!(evaluate(&[], &[ones.sum_all()], &[])[0].to_f64_vec(), [1000.0]);
}

/// A branch that is not taken may be NaN or infinite in value: the gradient of the one that is taken stays, where its
/// arguments are safe (the usual double `select`), and the plain form has JAX's NaN.
#[test]
fn a_dead_branch_does_not_poison_the_value() {
    let x = input("x", &[4]);
    let zero = x.full_like(0.0);
    let positive = x.gt(&zero);
    let value = Array::from_slice(&[4], &[-1.0, 0.0, 0.25, 4.0]);
    let safe = positive.select(&x, &x.full_like(1.0));
    let y = positive.select(&safe.sqrt(), &zero);
    let g = grad(&y.sum_all(), &[x.clone()]).expect("a gradient");
    let got = evaluate(&[x.clone()], &[y, g[0].clone()], &[value.clone()]);
    assert_eq!(got[0].to_f64_vec(), [0.0, 0.0, 0.5, 2.0]);
    assert_eq!(got[1].to_f64_vec(), [0.0, 0.0, 1.0, 0.25]);
    // A dead branch that is NaN but does not depend on x, or has a finite derivative there, is harmless as it is.
    let y = positive.select(&x.square(), &(&x * 3.0 + f64::NAN));
    let g = grad(&y.sum_all(), &[x.clone()]).expect("a gradient");
    assert_eq!(evaluate(&[x.clone()], &g, &[value.clone()])[0].to_f64_vec(), [3.0, 3.0, 0.5, 8.0]);
    // 0 times an infinite or undefined derivative is NaN, as in JAX.
    let y = positive.select(&x.sqrt(), &zero);
    let g = grad(&y.sum_all(), &[x.clone()]).expect("a gradient");
    let got = evaluate(&[x], &g, &[value])[0].to_f64_vec();
    assert!(got[0].is_nan() && got[1].is_nan() && got[2..] == [1.0, 0.25], "{got:?}");
}

#[test]
fn scopes_are_in_the_text() {
    let x = input("x", &[2]);
    let y = name_scope("blocks/3", || name_scope("attn", || x.sin()));
    let g = grad(&y.sum_all(), &[x.clone()]).expect("a gradient");
    let program = Program::new("scopes", &[x], &[("y", y), ("g", g[0].clone())]).expect("a program");
    assert!(program.text.contains("op_name=\"blocks/3/attn/sine\""), "{}", program.text);
    assert!(program.text.contains("op_name=\"blocks/3/attn/cosine\""), "a reverse rule keeps the scope");
}

/// 20,000 operations in a row: built, differentiated and dropped without recursion.
#[test]
fn long_chains_do_not_overflow_the_stack() {
    let x = input("x", &[]);
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.sin();
    }
    let g = vjp(&[y.clone()], &[y.ones_like()], &[x.clone()]).expect("a gradient");
    let g = g[0].clone().expect("x is reached");
    let t = jvp(&[y.clone()], &[x.clone()], &[x.ones_like()]).expect("a tangent");
    let outputs = [("y", y), ("g", g), ("t", t[0].clone())];
    let program = Program::new("chain", &[x], &outputs).expect("a program");
    assert!(count(&program, " sine(") >= 20_000 && count(&program, " cosine(") >= 20_000);
    drop(outputs);
}
