//! What is refused, and with which words.

use sinexp::graph::Imported;
use sinexp::transform::grad;

use super::text;

fn error(text: &str) -> String {
    match Imported::from_hlo_text(text) {
        Ok(_) => panic!("not refused: {text}"),
        Err(e) => e.to_string(),
    }
}

fn has(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert!(!message.contains('\n'), "more than one line: {message}");
}

#[test]
fn jax_functions_that_the_graph_cannot_say() {
    has(&error(&text("fft.hlo.txt")), &["fft `fft.1`", "line 6", "no complex numbers"]);
    has(&error(&text("svd.hlo.txt")), &["custom-call `svd.", "`lapack_sgesdd_ffi`", "platform"]);
    has(&error(&text("cholesky.hlo.txt")), &["custom-call `cholesky.", "`lapack_spotrf_ffi`"]);
    has(&error(&text("scatter_multiply.hlo.txt")), &["scatter `", "unique_indices=true"]);
    has(&error(&text("sort_two_keys.hlo.txt")), &["sort `", "num_keys=1"]);
    has(&error(&text("max_pool_gradient.hlo.txt")), &["select-and-scatter `", "not of its gradient"]);
}

/// Reverse mode of a loop whose end is not known says which loops have it.
#[test]
fn reverse_mode_of_an_open_loop() {
    let f = Imported::from_hlo_text(&text("while_newton.hlo.txt")).expect("a graph");
    let message = grad(&f.outputs[0].1.sum_all(), &f.inputs).expect_err("no reverse rule").to_string();
    has(&message, &["while", "use scan or fori_loop"]);
}

/// An entry of these instructions.
fn entry(body: &str) -> String {
    format!("HloModule m\n\nENTRY main {{\n{body}\n}}\n")
}

#[test]
fn mistakes_name_the_line_and_the_instruction() {
    for (body, parts) in [
        ("  x = f32[3] parameter(0)\n  ROOT y = f32[3] frobnicate(x)", &["line 5", "frobnicate `y`"][..]),
        ("  x = f32[3] parameter(0)\n  ROOT y = f32[4] sine(x)", &["sine `y`", "float32[4]", "float32[3]"]),
        ("  x = f32[3] parameter(0)\n  ROOT y = f32[3] add(x)", &["add `y`", "takes 2 operands, 1 given"]),
        ("  ROOT y = f32[3] sine(x)\n  x = f32[3] parameter(0)", &["sine `y`", "`x` is not defined before it"]),
        ("  x = f32[<=3] parameter(0)\n  ROOT y = f32[<=3] sine(x)", &["line 4", "fix the shapes"]),
        ("  x = f32[99999999999,99999999999] parameter(0)", &["line 4", "larger than any memory"]),
        ("  x = c64[3] parameter(0)", &["line 4", "c64", "not supported"]),
        ("  ROOT x = f32[300] constant({...})", &["constant `x`", "left out", "print_large_constants"]),
        ("  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}", &["sharding={devices=[2]<=[2]}", "one device"]),
        ("  x = f32[2] parameter(0)\n  ROOT y = f32[2] sine(x), colour=blue", &["colour=blue"]),
        ("  x = f32[2] parameter(1)", &["parameter(1)"]),
        (
            "  x = u64[2] parameter(0)\n  ROOT y = (u64[2], u32[3]) rng-bit-generator(x), algorithm=rng_default",
            &["rng_default", "rng_three_fry"],
        ),
        (
            "  x = f32[2] parameter(0)\n  ROOT y = f32[2] reduce-precision(x), exponent_bits=8, mantissa_bits=7",
            &["8 + 7 bits"],
        ),
        ("  ROOT y = f32[2] call(), to_apply=main", &["calls itself"]),
        ("  ROOT y = f32[2] call(), to_apply=nobody", &["no computation `nobody`"]),
    ] {
        has(&error(&entry(body)), parts);
    }
    has(&error("module @jit_f {}"), &["StableHLO", "as_hlo_text"]);
    has(&error(""), &["HloModule"]);
    has(&error("HloModule m\n"), &["ENTRY"]);
    has(&error("HloModule m, num_partitions=2\nENTRY e { x = f32[] parameter(0) }"), &["num_partitions=2"]);
    has(
        &error("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\nENTRY e { x = f32[] parameter(0) }"),
        &["input_output_alias"],
    );
}

/// Computations that double at each call, or call each other in a circle, end in an error soon.
#[test]
fn endless_texts() {
    let mut bomb = String::from("HloModule m\n\nf0 {\n  x = f32[] parameter(0)\n  ROOT y = f32[] add(x, x)\n}\n");
    for i in 1..30 {
        let f = format!("to_apply=f{}", i - 1);
        bomb.push_str(&format!(
            "f{i} {{\n  x = f32[] parameter(0)\n  a = f32[] call(x), {f}\n  ROOT b = f32[] call(a), {f}\n}}\n"
        ));
    }
    bomb.push_str("ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f29\n}\n");
    has(&error(&bomb), &["more than 1000000 instructions"]);
    let circle = "HloModule m\na { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=b }\n\
                  b { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=a }\n\
                  ENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=a }";
    has(&error(circle), &["calls itself"]);
    let mut deep = String::from("HloModule m\n");
    for i in 0..200 {
        let call = if i == 0 { "sine(x)".into() } else { format!("call(x), to_apply=f{}", i - 1) };
        deep.push_str(&format!("f{i} {{ x = f32[] parameter(0) ROOT y = f32[] {call} }}\n"));
    }
    deep.push_str("ENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=f199 }");
    has(&error(&deep), &["deep"]);
    let shallower = deep.replace("to_apply=f199", "to_apply=f37");
    Imported::from_hlo_text(&shallower).unwrap_or_else(|e| panic!("{e}"));
    let nested = entry(&format!("  x = {}f32[]{} parameter(0)", "(".repeat(50_000), ")".repeat(50_000)));
    has(&error(&nested), &["nested too deeply"]);
    has(&error(&entry(&format!("  ROOT x = f32[2] constant({}", "{".repeat(50_000)))), &["bracket"]);
}
