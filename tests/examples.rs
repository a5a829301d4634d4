//! The examples for newcomers print what they say. `cargo test` builds them beside this test.

use std::process::Command;

/// What an example prints, called with `arguments`.
fn printed(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().expect("this test's path");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps").join("examples");
    let path = folder.join(name);
    assert!(path.is_file(), "{} is not built: cargo build --examples", path.display());
    let output = Command::new(path).args(arguments).output().expect("starts");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn jacobian() {
    // 2 (cos 30°, sin 30°); the columns are the unit vectors of the polar coordinates, the second times the radius.
    let want = "point 1.7321 1.0000\nJ [0.8660 -1.0000; 0.5000 1.7321]\ndeterminant 2.0000\n";
    assert_eq!(printed("jacobian", &[]), want);
}

#[test]
fn custom_activation() {
    let (s, c) = 1f64.sin_cos();
    // d/da (sin²(a x) / a) at a = 1 is x sin(2x) - sin²(x).
    let want = [0.5 + 0.5f64.sin().powi(2), 1.0 + s, 0.5 * s - 0.5f64.sin().powi(2), 2.0 * c];
    let names = ["y", "dy/dx", "dy/da", "d2y/dx2"];
    let lines: String = names.iter().zip(want).map(|(name, value)| format!("{name} {value:.6}\n")).collect();
    assert_eq!(printed("custom_activation", &[]), lines);
}

#[test]
fn custom_parameterization() {
    // 3 v² at v = 0.1 and 0.5; six projections, each with a matrix and a bias.
    let want = "weights 0.001 0.125 move at 0.03 0.75\n12 tensors of projections are stored as cube roots\n";
    assert_eq!(printed("custom_parameterization", &[]), want);
}

#[test]
fn training_loop() {
    let text = printed("training_loop", &[]);
    // Before the first step a and b are 0: the loss is the mean of 9, 1, 1, 9 and 25.
    assert!(text.starts_with("step 0: loss 9.000000\n"), "{text}");
    assert!(text.ends_with("a 2.000, b 1.000\n"), "{text}");
}

#[test]
fn jax_program_in() {
    let want = "root 2.000 3.000 4.000\nslope 0.250 0.167 0.125\n";
    let text = printed("jax_program_in", &[]);
    assert!(text.starts_with("jit_while_newton: f32[3] -> f32[3]\n") && text.ends_with(want), "{text}");
}

#[test]
fn jax_program_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("f.jax_export");
    let text = printed("jax_program_out", &[file.to_str().expect("UTF-8")]);
    assert_eq!(text, "f takes args[0]['w'] and args[1]\nderivative inside\n");
    assert!(file.is_file());
}
