//! What can be done with a trained model: metrics, losses, folding, text.

use std::collections::BTreeSet;

use sinexp::interop::safetensors;
use sinexp::nn::language_model::LanguageModel;
use sinexp::nn::parameterization::Standard;
use sinexp::nn::transformer::PROJECTIONS;
use sinexp::train::language::Checkpoint;

use super::common::cli::{numbers, table};
use super::{LAST, corpus, folder, sel, succeeds, whole};

#[test]
fn metrics_have_what_was_measured_and_null_elsewhere() {
    let metrics = table(&whole().join("metrics.parquet"));
    let tracked: Vec<String> =
        PROJECTIONS.iter().flat_map(|role| ["e_w", "l_w", "m"].map(|scale| format!("{role}.{scale}"))).collect();
    let names: BTreeSet<String> = metrics.get_column_names_owned().into_iter().map(|n| n.to_string()).collect();
    let fixed = ["step", "loss", "grad_norm", "learning_rate", "eval_loss", "tokens_per_second"].map(str::to_owned);
    assert_eq!(names, fixed.into_iter().chain(tracked.clone()).collect());
    let expected: Vec<f64> = (0..=300).map(f64::from).collect();
    assert_eq!(numbers(&metrics, "step"), expected);
    let measured = |name: &str, at: &dyn Fn(usize) -> bool| {
        let values = numbers(&metrics, name);
        for (step, value) in values.iter().enumerate() {
            assert_eq!(value.is_finite(), at(step), "{name} of step {step} is {value}");
        }
        assert_eq!(metrics.column(name).expect("a column").null_count(), (0..=300).filter(|s| !at(*s)).count());
        values
    };
    let evaluated = |step: usize| step.is_multiple_of(60);
    let losses = measured("loss", &|step| step > 0);
    measured("grad_norm", &|step| step > 0);
    let rates = measured("learning_rate", &|step| step > 0);
    let eval = measured("eval_loss", &evaluated);
    measured("tokens_per_second", &|step| step > 0 && evaluated(step));
    // Warm-up over 10 steps to 1e-3, then linearly down: 1/290 of it is left for the last.
    assert!((rates[1] - 1e-4).abs() < 1e-12 && (rates[11] - 1e-3).abs() < 1e-12, "{rates:?}");
    assert!((rates[300] - 1e-3 / 290.0).abs() < 1e-12, "{rates:?}");
    // 256 tokens at first; it has learnt something of both splits.
    let uniform = 256f64.ln();
    assert!((eval[0] - uniform).abs() < 0.2 && (losses[1] - uniform).abs() < 0.2, "{} {}", eval[0], losses[1]);
    assert!(eval[300] < eval[0] - 1.0 && losses[300] < losses[1] - 1.0, "{} {}", eval[300], losses[300]);
    for name in &tracked {
        let values = measured(name, &evaluated);
        assert!((values[0] - 1.0).abs() < 1e-5, "{name} starts at {}", values[0]);
        assert!(values[60] != values[0], "{name} does not train");
    }
}

fn loss(model: &str) -> String {
    let said = succeeds(&mut sel(&["eval", model, "--corpus", &corpus().display().to_string()]));
    assert!(said.contains(" nats per token, perplexity ") && said.contains("of whales.txt (bytes)"), "{said}");
    said
}

fn written(model: &str, options: &[&str]) -> String {
    succeeds(sel(&["generate", model, "--tokens", "60"]).args(options))
}

#[test]
fn a_folded_model_is_the_same_model() {
    let folder = folder();
    let run = whole().display().to_string();
    let folded = folder.path().join("folded.safetensors").display().to_string();
    let said = succeeds(&mut sel(&["fold", &run, "--out", &folded]));
    assert!(said.contains("of step 300 written to"), "{said}");

    // Exactly the tensors of a baseline of this size, and no others.
    let checkpoint = Checkpoint::read(&whole().join(LAST)).expect("a checkpoint");
    let baseline = LanguageModel::new(checkpoint.config.transformer, Standard);
    let start = baseline.initial(Default::default(), sinexp::random::Key::new(0)).expect("a start");
    let shapes = |tensors: &sinexp::nn::language_model::Weights| -> Vec<(String, Vec<usize>)> {
        tensors.iter().map(|(n, t)| (n.clone(), t.dims().to_vec())).collect()
    };
    let tensors = safetensors::read(&folded).expect("whole").tensors;
    assert_eq!(shapes(&tensors), shapes(&baseline.split(&start).expect("blocks")));

    assert_eq!(loss(&run), loss(&folded), "the same numbers as printed, four decimals");

    let text = written(&run, &["--seed", "3"]);
    assert!(text.starts_with("The ") && text.ends_with('\n'), "{text:?}");
    assert_eq!(written(&folded, &["--seed", "3"]), text);
    assert_ne!(written(&run, &["--seed", "4"]), text);
    let likeliest = written(&run, &["--temperature", "0", "--seed", "3"]);
    assert_eq!(written(&folded, &["--temperature", "0", "--seed", "4"]), likeliest);
    // Characters of several bytes, also where a token is one byte; and several samples.
    let prompt = "naïve 鯨 — ";
    let text = written(&folded, &["--prompt", prompt, "--samples", "2", "--top-k", "5"]);
    let samples: Vec<&str> = text.split("\n\n---\n").collect();
    let samples: Vec<&str> = if samples.len() == 2 { samples } else { text.split("\n---\n").collect() };
    assert!(samples.len() == 2 && samples.iter().all(|s| s.starts_with(prompt)), "{text:?}");
    assert_ne!(samples[0].trim(), samples[1].trim());
}
