//! Texts of our own printer: read and printed again they are the same, or compute the same.

use sinexp::array::{Array, DType};
use sinexp::catalog::{Choices, entries};
use sinexp::graph::*;

use super::common::check::{Stream, close};
use super::common::cpu;

/// Reads the program's text and prints it again.
fn again(program: &Program) -> Program {
    Program::from_hlo_text(&program.text).unwrap_or_else(|e| panic!("{e}\n{}", program.text))
}

fn same_text(text: &str) {
    let printed = Program::from_hlo_text(text).unwrap_or_else(|e| panic!("{e}")).text;
    for (i, (a, b)) in text.lines().zip(printed.lines()).enumerate() {
        assert_eq!(a, b, "line {}", i + 1);
    }
    assert_eq!(text, printed);
}

/// Every program of the toolkit prints again as it is; those with loops, whose bodies come in another order, compute the same.
#[test]
fn the_stored_programs_print_again_as_they_are() {
    for entry in entries() {
        let program = entry.build(&Choices::default()).unwrap_or_else(|e| panic!("{}: {e}", entry.name)).program;
        if program.text.contains(" while(") {
            same_numbers(&program);
        } else {
            same_text(&program.text);
        }
    }
}

/// Numbers of both programs on the same random arguments, bit for bit.
fn same_numbers(program: &Program) {
    let read = again(program);
    assert_eq!(program.inputs, read.inputs);
    assert_eq!(program.aliases, read.aliases);
    let mut stream = Stream::new(11);
    let values: Vec<Array> =
        program.inputs.iter().map(|(_, s)| stream.array(&s.dims, 0.3, 2.4).cast(s.dtype)).collect();
    let run = |p: &Program| {
        let executable = cpu().compile(p).unwrap_or_else(|e| panic!("{e}\n{}", p.text));
        executable.call(&values.iter().collect::<Vec<_>>()).expect("a run")
    };
    for (i, (a, b)) in run(program).iter().zip(run(&read)).enumerate() {
        assert_eq!((a.dtype(), a.dims()), (b.dtype(), b.dims()));
        assert!(a.bytes() == b.bytes(), "{}: result {i}: {a:?} and {b:?}", program.name);
    }
}

fn program(name: &str, inputs: &[Tensor], outputs: &[Tensor]) -> Program {
    let named: Vec<(&str, Tensor)> = outputs.iter().map(|t| ("y", t.clone())).collect();
    Program::new(name, inputs, &named).expect("a program")
}

fn input(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(dtype, dims))
}

#[test]
fn elementwise_operations() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let (x, y) = (input("a.x", dtype, &[3, 4]), input("b", dtype, &[3, 4]));
        let mut all: Vec<Tensor> = Unary::ALL
            .into_iter()
            .filter(|op| !matches!(op, Unary::Not | Unary::PopulationCount))
            .map(|op| Tensor::apply1(Op::Unary(op), vec![x.clone()]))
            .collect();
        all.extend([&x + &y, &x - &y, &x * &y, &x / &y, x.maximum(&y), x.minimum(&y), x.pow(&y), &x % &y]);
        all.extend([x.atan2(&y), x.lt(&y), x.ge(&y), x.eq(&y).select(&x, &y), x.clamp(&y, &y), x.convert(DType::I32)]);
        let program = program("elementwise", &[x, y], &all);
        same_text(&program.text);
        same_numbers(&program);
    }
    let (a, b) = (input("a", DType::U32, &[5]), input("b", DType::U32, &[5]));
    let bits = vec![a.bitwise_and(&b), a.bitwise_or(&b), a.bitwise_xor(&b).logical_not(), a.population_count()];
    let shifts = vec![a.shift_left(&b), a.shift_right_logical(&b), a.bitcast_convert(DType::F32)];
    same_text(&program("bits", &[a, b], &[bits, shifts].concat()).text);
}

#[test]
fn structure_reductions_and_places() {
    let (x, y) = (input("x", DType::F32, &[4, 6]), input("y", DType::F32, &[4, 6]));
    let i = input("i", DType::I32, &[3]);
    let padding = [Padding { low: 1, high: -1, interior: 1 }, Padding::default()];
    let window = [Window { size: 3, stride: 2, low: 1, high: 0, base_dilation: 2, window_dilation: 1 }, Window::ONE];
    let rows = x.take(&i, 0);
    let start = i.slice(&[0], &[1], &[1]).reshape(&[]);
    let updates = ScatterDims {
        update_window_dims: vec![1],
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0],
        ..ScatterDims::default()
    };
    let indices = i.reshape(&[3, 1]);
    let mut all = vec![
        x.t(),
        x.reverse(&[1]),
        x.pad(&Tensor::scalar(2f32), &padding),
        concatenate(&[&x, &y].map(Tensor::clone), 1),
    ];
    all.extend([x.slice(&[0, 1], &[4, 6], &[2, 3]), x.reshape(&[24]), x.sum(&[0]), x.max(&[1]), x.min(&[0, 1])]);
    all.extend([x.argmax(1), x.argmin(0), x.reduce_window(Combine::Max, &window), x.cumsum(1), x.matmul(&y.t())]);
    all.extend([x.gt(&y).all(&[0]), x.gt(&y).any(&[1]), x.sort(1), x.argsort(0), rows.clone()]);
    all.extend(x.sort_by_key(&[y.clone(), x.clone()], 1, true));
    all.push(x.take_along_axis(&x.argsort(1), 1));
    all.push(x.scatter(ScatterKind::Add, &indices, &rows, updates.clone()));
    all.push(x.scatter(ScatterKind::Set, &indices, &rows, updates));
    all.extend([x.dynamic_index(&start), x.dynamic_update_index(&y.index_in_dim(0, 1), &start)]);
    all.extend(optimization_barrier(&[x.clone(), y.clone()]));
    let (state, bits) = Tensor::constant(Array::from_slice(&[2], &[3u64, 4]))
        .rng_bits(RngAlgorithm::Philox, Shape::new(DType::U32, &[5]));
    all.extend([state, bits, x.all_reduce(Combine::Add)]);
    let program = program("places", &[x, y, i], &all);
    same_text(&program.text);
    same_numbers(&program);
}

/// Scans are read as scans, other loops as loops; a loop with a gradient computes the same after reading.
#[test]
fn loops_and_branches() {
    let (x, w, k) = (input("x", DType::F64, &[5, 3]), input("w", DType::F64, &[3, 3]), input("k", DType::I32, &[]));
    let h = x.index_in_dim(0, 0);
    let (carry, ys) = scan(&[h.clone()], &[x.clone()], None, true, |c, r| {
        let h = (c[0].reshape(&[1, 3]).matmul(&w).reshape(&[3]) + &r[0]).tanh();
        (vec![h.clone()], vec![h.sin(), &r[0] * 2.0])
    });
    let loss = carry[0].sum_all() + ys[0].sum_all();
    let gradient = sinexp::transform::grad(&loss, &[w.clone(), x.clone()]).expect("a gradient");
    let open = while_loop(&[h.clone()], |s| s[0].sum_all().lt(&Tensor::scalar(50f64)), |s| vec![&s[0] * 1.5 + &h]);
    let branches = switch(
        &k,
        vec![Box::new(|a| vec![a[0].sin()]), Box::new(|a| vec![&a[0] * &h]), Box::new(|_| vec![h.clone()])],
        &[h.clone()],
    );
    let all = [carry, ys, gradient, open, branches].concat();
    same_numbers(&program("loops", &[x, w, k], &all));
}

/// Donation survives, and so do names of parameters and scopes of instructions.
#[test]
fn names_scopes_and_donation() {
    let (w, x) = (input("blocks.0['attn']/\"q\" \\weight", DType::F32, &[2, 2]), input("x", DType::F32, &[2, 2]));
    let y = name_scope("blocks", || name_scope("0", || w.matmul(&x).sin()));
    let program = Program::with_donation("step", &[w.clone(), x], &[("loss", y.sum_all()), ("w", &w - &y)], &[(1, 0)])
        .expect("a program");
    same_text(&program.text);
    let read = again(&program);
    assert_eq!(read.inputs[0].0, "blocks.0['attn']/\"q\" \\weight");
    assert_eq!(read.aliases, [(1, 0)]);
}

/// The instructions of a text written by hand, without those the graph cannot say.
#[test]
fn a_text_written_by_hand() {
    let text = super::text("by_hand.hlo.txt");
    let f = Imported::from_hlo_text(&text).unwrap_or_else(|e| panic!("{e}"));
    let x = Stream::new(3).array(&[4, 8], -2.0, 2.0).cast(DType::F32);
    let values = [x, Array::scalar(1i32)];
    let outputs: Vec<Tensor> = f.outputs.iter().map(|(_, t)| t.clone()).collect();
    let got = super::common::evaluate(&f.inputs, &outputs, &values);
    // XLA's own reading of the same text.
    let names = |all: &[(String, Tensor)]| all.iter().map(|(n, t)| (n.clone(), t.shape().clone())).collect();
    let raw = Program {
        name: "raw".into(),
        inputs: f.inputs.iter().map(|t| (t.name().to_string(), t.shape().clone())).collect(),
        outputs: names(&f.outputs),
        aliases: vec![],
        text: text.replace(", input_output_alias={ {0}: (0, {}, may-alias) }", ""),
    };
    let want = cpu().compile(&raw).expect("XLA reads it").call(&values.iter().collect::<Vec<_>>()).expect("a run");
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        close(&format!("result {i}"), &g.to_f64_vec(), &w.to_f64_vec(), 1e-6);
    }
}
