//! The fetched corpus through the whole way in. Without it there is nothing to test: `./setup --data` fetches it.

use std::time::Instant;

use sinexp::data::datasets::folder;
use sinexp::data::text::{Corpus, PACKAGE, Tokenizer, prepare};
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

#[test]
fn speeches_and_novel_have_their_size() {
    let Some(corpus) = corpus() else { return };
    assert_eq!(corpus.name(), PACKAGE);
    let (mut speeches, mut bytes) = (0, [0, 0]);
    for document in corpus.documents() {
        let document = document.expect("readable");
        let speech = document.label().starts_with("sotu/");
        speeches += usize::from(speech);
        bytes[usize::from(speech)] += document.pieces(1 << 16).map(|p| p.expect("UTF-8").text.len()).sum::<usize>();
    }
    assert_eq!((speeches, bytes), (233, [1_204_997, 10_761_413]));
}

#[test]
fn prepared_in_two_splits() {
    let Some(corpus) = corpus() else { return };
    let cache = tempfile::tempdir().expect("temporary folder");
    for tokenizer in Tokenizer::ALL {
        let start = Instant::now();
        let data = prepare(&corpus, tokenizer, cache.path(), &mut |_, _| {}).expect("prepared");
        println!("{tokenizer}: {:.2} s, {:#?}", start.elapsed().as_secs_f64(), data.description());
        let start = Instant::now();
        prepare(&corpus, tokenizer, cache.path(), &mut |_, _| panic!("made again")).expect("found");
        println!("{tokenizer}: {:.2} s when it is there", start.elapsed().as_secs_f64());
        let start = Instant::now();
        for step in 0..1000 {
            data.batch(Key::new(0), step, 16, 256).expect("a batch");
        }
        println!("{tokenizer}: {:.1} us per batch of 16 x 256", start.elapsed().as_secs_f64() * 1e3);
    }
}
