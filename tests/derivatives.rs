//! Every operation's JVP, VJP and vmap rule, one case each, with random non-uniform cotangents in f64.

mod common;

use common::check::{Case, Stream};
use sinexp::array::{Array, DType};
use sinexp::graph::*;

fn random(seed: u64, dims: &[usize]) -> Array {
    Stream::new(seed).array(dims, -1.5, 1.5)
}

fn positive(seed: u64, dims: &[usize]) -> Array {
    Stream::new(seed).array(dims, 0.3, 2.5)
}

fn ints(dims: &[usize], values: &[i32]) -> Array {
    Array::from_slice(dims, values)
}

#[test]
fn unary() {
    for op in Unary::ALL {
        use Unary::*;
        let x = match op {
            Log | Sqrt | Rsqrt | Cbrt => positive(1, &[3, 4]),
            Log1p => Stream::new(2).array(&[3, 4], -0.8, 2.0),
            Not | PopulationCount => continue, // integers only: see `integers`
            _ => random(3, &[3, 4]),
        };
        Case::new(op.hlo_name(), vec![x], move |a| vec![Tensor::apply1(Op::Unary(op), vec![a[0].clone()])]).check();
    }
}

#[test]
fn binary() {
    use Binary::*;
    for op in [Add, Sub, Mul, Div, Max, Min, Pow, Rem, Atan2] {
        let (a, b) = (positive(4, &[2, 3]), positive(5, &[2, 3]));
        Case::new(op.hlo_name(), vec![a, b], move |a| vec![Tensor::apply1(Op::Binary(op), a.to_vec())]).check();
    }
    let args = vec![random(6, &[2, 1, 3]), random(7, &[4, 1])];
    Case::new("broadcasting", args, |a| vec![&a[0] * &a[1] - &a[1] / 3.0, 2.0 - &a[0]]).check();
}

#[test]
fn integers() {
    let a = ints(&[4], &[5, -3, 12, 7]);
    let b = ints(&[4], &[1, 2, 3, 4]);
    Case::new("integer ops", vec![a, b, random(8, &[4])], |a| {
        let bits = a[0].bitwise_and(&a[1]).bitwise_or(&a[1].bitwise_xor(&a[0])).logical_not();
        let shifted = a[0].shift_left(&a[1]) + a[0].shift_right_arithmetic(&a[1]) + a[0].shift_right_logical(&a[1]);
        let count = a[0].population_count() + bits + shifted;
        vec![count.convert(DType::F64) * &a[2], &a[0] % &a[1]]
    })
    .check();
}

#[test]
fn choices() {
    let args = vec![random(9, &[3, 4]), random(10, &[3, 4]), random(11, &[3, 4])];
    Case::new("select", args.clone(), |a| vec![a[0].gt(&a[1]).select(&a[2].sin(), &a[1].exp())]).check();
    let (low, high) = (Stream::new(12).array(&[3, 4], -1.0, -0.2), Stream::new(13).array(&[3, 4], 0.2, 1.0));
    Case::new("clamp", vec![args[0].clone(), low, high], |a| vec![a[0].clamp(&a[1], &a[2])]).check();
    for (name, d) in [("eq", 0), ("ne", 1), ("lt", 2), ("le", 3), ("gt", 4), ("ge", 5)] {
        Case::new(name, args.clone(), move |a| {
            let p = match d {
                0 => a[0].eq(&a[1]),
                1 => a[0].ne(&a[1]),
                2 => a[0].lt(&a[1]),
                3 => a[0].le(&a[1]),
                4 => a[0].gt(&a[1]),
                _ => a[0].ge(&a[1]),
            };
            vec![p.convert(DType::F64) * &a[2]]
        })
        .check();
    }
}

#[test]
fn structure() {
    let x = random(14, &[2, 3, 4]);
    let one =
        |name, f: fn(&Tensor) -> Tensor| Case::new(name, vec![random(14, &[2, 3, 4])], move |a| vec![f(&a[0])]).check();
    one("broadcast_in_dim", |x| x.broadcast_in_dim(&[0, 2, 3], &[2, 5, 3, 4]));
    one("reshape", |x| x.reshape(&[6, 4]).sin());
    one("transpose", |x| x.transpose(&[2, 0, 1]));
    one("reverse", |x| x.reverse(&[0, 2]).square());
    one("slice", |x| x.slice(&[0, 1, 0], &[2, 3, 4], &[1, 1, 3]));
    one("slice to nothing", |x| x.slice(&[1, 1, 4], &[1, 3, 4], &[1, 1, 3]));
    one("split", |x| x.split(2, 2)[1].clone());
    one("moveaxis", |x| x.moveaxis(0, 2));
    let config = [
        Padding { low: 1, high: -1, interior: 2 },
        Padding { low: -1, high: 2, interior: 0 },
        Padding { low: 0, high: 1, interior: 1 },
    ];
    Case::new("pad", vec![x.clone(), random(15, &[])], move |a| vec![a[0].pad(&a[1], &config)]).check();
    let args = vec![x.clone(), random(16, &[2, 1, 4]), random(17, &[2, 2, 4])];
    Case::new("concatenate", args, |a| vec![concatenate(a, 1)]).check();
    Case::new("stack", vec![x, random(18, &[2, 3, 4])], |a| vec![stack(a, 2)]).check();
}

#[test]
fn dots() {
    let args = || vec![random(19, &[2, 3, 4, 5]), random(20, &[4, 6, 2, 3])];
    let dims = DotDims { lhs_batch: vec![0], rhs_batch: vec![2], lhs_contract: vec![2, 1], rhs_contract: vec![0, 3] };
    Case::new("dot_general", args(), move |a| {
        vec![a[0].dot_general(&a[1], dims.clone(), Precision::Highest, DType::F64)]
    })
    .check();
    Case::new("tensordot", args(), |a| vec![a[0].tensordot(&a[1], &[1], &[3])]).check();
    let shapes: [(&[usize], &[usize]); 6] =
        [(&[3], &[3]), (&[2, 3], &[3]), (&[3], &[3, 2]), (&[2, 3], &[3, 4]), (&[5, 2, 3], &[3, 4]), (&[3], &[5, 3, 2])];
    for (a, b) in shapes {
        Case::new("matmul", vec![random(21, a), random(22, b)], |a| vec![a[0].matmul(&a[1])]).check();
    }
}

#[test]
fn reductions() {
    let one =
        |name, f: fn(&Tensor) -> Tensor| Case::new(name, vec![random(23, &[3, 4, 2])], move |a| vec![f(&a[0])]).check();
    one("sum", |x| x.sum(&[0, 2]).sin());
    one("mean", |x| x.mean(&[1]).square());
    one("max", |x| x.max(&[1, 2]));
    one("min", |x| x.min(&[0]));
    one("argmax", |x| x.argmax(1).convert(DType::F64) * x.sum(&[1]));
    one("argmin", |x| x.argmin(2).convert(DType::F64) * x.sum(&[2]));
    one("all", |x| x.gt(&x.full_like(-1.0)).all(&[1]).convert(DType::F64) * x.sum(&[1]));
    one("any", |x| x.gt(&x.full_like(1.0)).any(&[1]).convert(DType::F64) * x.sum(&[1]));
    one("norm", |x| x.norm(&[1]));
    one("var", |x| x.var(&[0, 1]));
    one("logsumexp", |x| x.logsumexp(1));
    one("softmax", |x| x.softmax(1));
    one("cumsum", |x| x.cumsum(1));
    one("sort", |x| x.sort(1));
    one("gelu", |x| x.gelu(true) + x.gelu(false));
    one("silu, relu", |x| x.silu() + x.relu());
    one("integer_pow", |x| x.integer_pow(3) + x.integer_pow(-2) + x.integer_pow(0));
    one("all_reduce", |x| x.all_reduce(Combine::Add).square());
    one("barrier", |x| optimization_barrier(&[x.sin(), x.cos()])[1].clone());
    let args = vec![random(24, &[3, 4]), random(25, &[3, 4])];
    Case::new("sort_by_key", args, |a| a[0].sort_by_key(&[a[1].clone()], 1, true)).check();
}

#[test]
fn windows() {
    let plain =
        [Window { size: 2, stride: 1, low: 1, ..Window::ONE }, Window { size: 3, stride: 2, high: 1, ..Window::ONE }];
    let dilated = [
        Window { size: 2, stride: 2, low: 2, high: 1, base_dilation: 3, window_dilation: 2 },
        Window { size: 3, stride: 1, low: 0, high: 3, base_dilation: 2, window_dilation: 1 },
    ];
    for window in [plain, dilated] {
        for kind in [Combine::Add, Combine::Max, Combine::Min] {
            if kind != Combine::Add && window == dilated {
                continue; // windows of nothing but padding have no maximum
            }
            let x = vec![random(26, &[4, 5])];
            Case::new("reduce_window", x, move |a| vec![a[0].reduce_window(kind, &window)]).check();
        }
    }
}

#[test]
fn indexing() {
    let x = random(27, &[5, 4]);
    let i = ints(&[3], &[4, 0, 4]);
    Case::new("take rows", vec![x.clone(), i.clone()], |a| vec![a[0].take(&a[1], 0)]).check();
    Case::new("take columns", vec![x.clone(), ints(&[2, 2], &[1, 3, 3, 0])], |a| vec![a[0].take(&a[1], 1)]).check();
    let far = ints(&[3], &[-7, 2, 99]);
    Case::new("take out of range", vec![x.clone(), far.clone()], |a| vec![a[0].take(&a[1], 0)]).check();
    let at = ints(&[5, 2], &[0, 3, 1, 1, 2, 0, 3, 3, 0, 1]);
    Case::new("take_along_axis", vec![x.clone(), at], |a| vec![a[0].take_along_axis(&a[1], 1)]).check();
    let dims = GatherDims { offset_dims: vec![0, 2], start_index_map: vec![1, 0], ..GatherDims::default() };
    let pairs = ints(&[3, 2], &[0, 1, 2, 3, 9, -1]);
    Case::new("gather windows", vec![x.clone(), pairs.clone()], move |a| {
        vec![a[0].gather(&a[1], dims.clone(), &[2, 3])]
    })
    .check();
    for kind in [ScatterKind::Add, ScatterKind::Set] {
        let dims = ScatterDims {
            update_window_dims: vec![1],
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            ..ScatterDims::default()
        };
        // Unique for Set; one row is out of range and dropped.
        let rows = if kind == ScatterKind::Add { ints(&[3, 1], &[1, 1, 7]) } else { ints(&[3, 1], &[1, 4, 7]) };
        let args = vec![x.clone(), rows, random(28, &[3, 4])];
        Case::new("scatter", args, move |a| vec![a[0].scatter(kind, &a[1], &a[2], dims.clone())]).check();
    }
    let scalar = |v: i32| ints(&[], &[v]);
    for start in [1, 4, -3] {
        let args = vec![x.clone(), scalar(start), scalar(1)];
        Case::new("dynamic_slice", args, |a| vec![a[0].dynamic_slice(&a[1..], &[2, 3])]).check();
        let args = vec![x.clone(), random(29, &[2, 3]), scalar(start), scalar(1)];
        Case::new("dynamic_update_slice", args, |a| vec![a[0].dynamic_update_slice(&a[1], &a[2..])]).check();
    }
    let args = vec![x, scalar(3), random(30, &[4])];
    Case::new("dynamic_index", args, |a| vec![a[0].dynamic_index(&a[1]), a[0].dynamic_update_index(&a[2], &a[1])])
        .check();
    Case::new("one_hot", vec![ints(&[3], &[0, 2, 5]), random(31, &[3, 4])], |a| {
        vec![a[0].one_hot(4, DType::F64) * &a[1]]
    })
    .check();
}

#[test]
fn loops() {
    let args = || vec![random(32, &[3]), random(33, &[4, 3]), random(34, &[3, 3])];
    for reverse in [false, true] {
        Case::new("scan", args(), move |a| {
            let (carry, ys) = scan(&[a[0].clone()], &[a[1].clone()], None, reverse, |c, x| {
                let h = (c[0].matmul(&a[2]) + &x[0]).tanh();
                (vec![h.clone()], vec![h.square().sum(&[0]), &h * &x[0]])
            });
            [carry, ys].concat()
        })
        .check();
    }
    Case::new("fori_loop", args(), |a| {
        fori_loop(3, &[a[0].clone(), a[1].clone()], |i, s| {
            vec![s[0].sin() + i.convert(DType::F64), s[1].clone() * &s[0] + &a[1]]
        })
    })
    .check();
    Case::new("scan of nothing", vec![random(35, &[0, 2]), random(36, &[2])], |a| {
        let (c, ys) = scan(&[a[1].clone()], &[a[0].clone()], None, false, |c, x| (vec![c[0].sin()], vec![x[0].cos()]));
        [c, ys].concat()
    })
    .check();
    Case::new("while", vec![positive(37, &[2]), ints(&[], &[3])], |a| {
        while_loop(
            &[a[0].clone(), a[1].clone()],
            |s| s[1].gt(&Tensor::scalar(0i32)),
            |s| vec![(&s[0] * &a[0]).sin() + 0.1, &s[1] - &Tensor::scalar(1i32)],
        )
    })
    .forward_only()
    .check();
    Case::new("while on values", vec![positive(38, &[])], |a| {
        while_loop(&[a[0].clone()], |s| s[0].lt(&s[0].full_like(10.0)), |s| vec![s[0].square() + 1.0])
    })
    .forward_only()
    .check();
}

#[test]
fn branches_and_calls() {
    for index in [0, 1, 2, 9, -1] {
        let args = vec![ints(&[], &[index]), random(39, &[3]), random(40, &[3])];
        Case::new("switch", args, |a| {
            let (x, y) = (&a[1], &a[2]);
            let branches: Vec<Branch> = vec![
                Box::new(|v| vec![v[0].sin() * y, v[0].sum(&[0])]),
                Box::new(|v| vec![v[0].exp(), y.sum(&[0])]),
                Box::new(|v| vec![v[0].zeros_like(), v[0].full_like(2.0).sum(&[0])]),
            ];
            switch(&a[0], branches, &[x.clone()])
        })
        .check();
    }
    Case::new("cond", vec![random(41, &[3]), random(42, &[])], |a| {
        cond(&a[1].gt(&a[1].zeros_like()), |v| vec![v[0].sin()], |v| vec![v[0].cos() * &a[1]], &[a[0].clone()])
    })
    .check();
    let args = || vec![random(43, &[3]), random(44, &[3])];
    Case::new("call", args(), |a| call(&[a[0].clone()], |v| vec![(v[0].sin() * &a[1]).exp(), v[0].cos()])).check();
    Case::new("checkpoint", args(), |a| checkpoint(&[a[0].clone()], |v| vec![(v[0].sin() * &a[1]).exp(), v[0].cos()]))
        .check();
    Case::new("scan of checkpoint of cond", args(), |a| {
        let (c, _) = scan(&[a[0].clone()], &[a[1].clone()], None, false, |c, x| {
            let h = checkpoint(&[c[0].clone()], |v| {
                let up = x[0].gt(&x[0].zeros_like());
                cond(&up, |w| vec![w[0].sin() * &x[0]], |w| vec![w[0].cos()], v)
            });
            (h, vec![])
        });
        c
    })
    .check();
}
