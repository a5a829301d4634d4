//! The programs in hlo/ are what the library prints today. `SINEXP_UPDATE=1 cargo test --test hlo` writes them anew.

use std::path::Path;

use sinexp::array::DType;
use sinexp::graph::{Program, Shape, Tensor, stack};
use sinexp::nn::siren::Siren;
use sinexp::train::{StepOptions, regression_step};
use sinexp::transform::{jacobian, vmap};

/// Width 16, three hidden layers, two coordinates to one value, eight samples.
fn siren() -> Siren {
    Siren::new(2, 16, 3, 1)
}

fn forward() -> Program {
    let siren = siren();
    let params = siren.inputs(DType::F32);
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[8, 2]));
    let y = siren.apply(&params, &x);
    let inputs: Vec<Tensor> = siren.parameters().iter().map(|(name, _)| params[name].clone()).chain([x]).collect();
    Program::new("siren_forward", &inputs, &[("y", y)]).expect("a program")
}

fn step() -> Program {
    let options = StepOptions { omegas: false, ..StepOptions::default() };
    regression_step(&siren(), 8, &options).expect("a program")
}

/// dh_3/dh_1 at two points, in f64.
fn hidden_jacobian() -> Program {
    let siren = Siren::new(1, 8, 3, 1);
    let params = siren.inputs(DType::F64);
    let x = Tensor::parameter("x", Shape::new(DType::F64, &[2, 1]));
    let j = vmap(&[x.clone()], &[Some(0)], |x| {
        let h = siren.layers(&params, &x[0]).activations;
        Ok(vec![jacobian(&h[3], &h[1])?])
    });
    let hidden = |name: &str| !name.ends_with(".4");
    let names = siren.parameters();
    let inputs: Vec<Tensor> =
        names.iter().filter(|(n, _)| hidden(n)).map(|(n, _)| params[n].clone()).chain([x]).collect();
    Program::new("hidden_jacobian", &inputs, &[("J", j.expect("a Jacobian")[0].clone())]).expect("a program")
}

#[test]
fn the_stored_programs_are_what_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hlo");
    for program in [forward(), step(), hidden_jacobian()] {
        let path = folder.join(format!("{}.hlo.txt", program.name));
        if std::env::var_os("SINEXP_UPDATE").is_some() {
            sinexp::files::write_bytes(&path, program.text.as_bytes()).expect("hlo/ can be written");
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == program.text, "{}: run SINEXP_UPDATE=1 cargo test --test hlo", path.display());
    }
}

/// The same graph prints the same text, whatever was built before it in the process.
#[test]
fn printing_is_deterministic() {
    let first = step().text;
    let _ = stack(&[Tensor::scalar(1f32), Tensor::scalar(2f32)], 0);
    assert_eq!(first, step().text);
    assert!(first.starts_with("HloModule regression_step, input_output_alias={ {0}: (0, {}, may-alias)"));
}
