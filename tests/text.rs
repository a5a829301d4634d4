//! The fetched corpus through the whole way in. Without it there is nothing to test: `./setup --data` fetches it.

use rayon::prelude::*;
use sinexp::data::datasets::folder;
use sinexp::data::text::{Corpus, Document, PACKAGE, Tokenizer, prepare};
use sinexp::error::Result;
use sinexp::random::Key;

/// The corpus, or none where it was not fetched.
fn corpus() -> Option<Corpus> {
    match folder().join("text/stamp").is_file() {
        true => Some(Corpus::package().expect("what was fetched")),
        false => {
            eprintln!("left out: no .data/text (./setup --data)");
            None
        }
    }
}

fn text(document: Document) -> String {
    document.pieces(1 << 16).map(|piece| Ok(piece?.text)).collect::<Result<String>>().expect("UTF-8")
}

#[test]
fn speeches_and_novel_have_their_size() {
    let Some(corpus) = corpus() else { return };
    assert_eq!(corpus.name(), PACKAGE);
    let documents = corpus.documents().map(|document| document.expect("readable"));
    let texts: Vec<(bool, String)> = documents.map(|d| (d.label().starts_with("sotu/"), text(d))).collect();
    let count = |speech: bool, measure: fn(&str) -> usize| -> (usize, usize) {
        let chosen: Vec<&str> = texts.iter().filter(|(s, _)| *s == speech).map(|(_, text)| text.as_str()).collect();
        (chosen.len(), chosen.into_par_iter().map(measure).sum())
    };
    assert_eq!((count(true, str::len), count(false, str::len)), ((233, 10_761_413), (1, 1_204_997)));
    // Known as 2.07 and 0.3 million.
    let tokens = |text: &str| Tokenizer::Gpt2.encode(text).len();
    assert_eq!((count(true, tokens), count(false, tokens)), ((233, 2_074_279), (1, 317_756)));
}

#[test]
fn prepared_in_two_splits() {
    let Some(corpus) = corpus() else { return };
    let cache = tempfile::tempdir().expect("temporary folder");
    let [bytes, gpt2] = Tokenizer::ALL.map(|tokenizer| {
        let data = prepare(&corpus, tokenizer, cache.path(), &mut |_, _| {}).expect("prepared");
        prepare(&corpus, tokenizer, cache.path(), &mut |_, _| panic!("made again")).expect("found");
        let batch = data.batch(Key::new(0), 0, 4, 64).expect("a batch").to_vec::<i32>().expect("i32");
        let tokens: Vec<u32> = batch[..65].iter().map(|token| *token as u32).collect();
        println!("{tokenizer}: {:?}", tokenizer.decode(&tokens));
        let sizes = data.description();
        assert_eq!((sizes.documents, sizes.bytes), (234, 11_966_410));
        [&sizes.train, &sizes.validation].map(|part| (part.tokens, part.bytes))
    });
    // Byte tokens are the text and 234 ends of it.
    assert_eq!(bytes, [(11_353_860, 11_353_637), (612_784, 612_773)]);
    assert_eq!(gpt2, [(2_274_304, 11_353_637), (118_031, 612_773)]);
}
