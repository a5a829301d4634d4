//! The split, the cache, and what is refused.

use super::*;

/// A corpus of numbered lines, so that every piece of text is found once; `files` of them in a folder.
fn lines(folder: &Path, files: usize, per_file: usize) -> Corpus {
    let folder = folder.join("corpus");
    fs::create_dir_all(&folder).expect("folder");
    for file in 0..files {
        let text: String = (0..per_file).map(|i| format!("line {i:05} of file {file:03} é\n")).collect();
        fs::write(folder.join(format!("{file:03}.txt")), text).expect("file");
    }
    Corpus::open(folder).expect("a corpus")
}

fn tokens(file: &super::super::TokenFile) -> Vec<u32> {
    let mut tokens = Vec::new();
    file.read(0, file.tokens() as usize, &mut tokens).expect("whole");
    tokens.into_iter().map(|t| t as u32).collect()
}

fn prepared(corpus: &Corpus, tokenizer: Tokenizer, cache: &Path) -> Dataset {
    prepare(corpus, tokenizer, cache, &mut |_, _| {}).expect("prepared")
}

#[test]
fn each_line_is_in_one_split_and_whole() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let corpus = lines(folder.path(), 3, 4000);
    for tokenizer in Tokenizer::ALL {
        let dataset = prepared(&corpus, tokenizer, folder.path());
        let end = tokenizer.end_of_text().expect("both have one");
        let [train, validation] = [dataset.train(), dataset.validation()].map(tokens);
        let ends = |tokens: &[u32]| tokens.iter().filter(|t| **t == end).count();
        assert_eq!(ends(&train) + ends(&validation), 3, "one for each document");
        let text = |tokens: &[u32]| {
            let text: Vec<u32> = tokens.iter().copied().filter(|t| *t != end).collect();
            tokenizer.decode(&text)
        };
        let [train, validation] = [text(&train), text(&validation)];
        let mut all: Vec<&str> = train.lines().chain(validation.lines()).collect();
        all.sort_unstable();
        let repeated = all.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!((all.len(), repeated), (12_000, None), "{tokenizer}");
        let share = validation.len() as f64 / (train.len() + validation.len()) as f64;
        assert!((0.03..0.07).contains(&share), "{share}");
        let description = dataset.description();
        assert_eq!(
            (description.train.bytes, description.validation.bytes),
            (train.len() as u64, validation.len() as u64)
        );
        assert_eq!((description.documents, description.bytes), (3, (train.len() + validation.len()) as u64));
        assert_eq!(description.piece_bytes, description.bytes / 40);
    }
}

#[test]
fn the_split_is_every_twentieth_piece() {
    // Sixty documents of 2 KiB, each smaller than a piece: 20, 40 and 60 are validation.
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.jsonl");
    let document = |i: usize| format!("{{\"text\": \"{}\"}}\n", format!("{i:02}").repeat(1024));
    fs::write(&path, (1..=60).map(document).collect::<String>()).expect("file");
    let corpus = Corpus::open(&path).expect("a corpus");
    let dataset = prepared(&corpus, Tokenizer::Bytes, &folder.path().join("tokens"));
    let mut seen: Vec<String> =
        Tokenizer::Bytes.decode(&tokens(dataset.validation())).split_terminator('\0').map(str::to_owned).collect();
    seen.iter_mut().for_each(|text| text.truncate(2));
    assert_eq!(seen, ["20", "40", "60"]);
    assert_eq!(dataset.train().tokens(), 57 * 2049);
}

#[test]
fn tokens_are_made_once() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let cache = folder.path().join("tokens");
    let corpus = lines(folder.path(), 2, 2000);
    let mut told = Vec::new();
    let first = prepare(&corpus, Tokenizer::Bytes, &cache, &mut |done, all| told.push((done, all))).expect("made");
    assert_eq!(told.last(), Some(&(first.description().bytes, first.description().bytes)));
    let train = first.train().path().to_owned();
    let content = fs::read(&train).expect("there");
    let again = prepare(&corpus, Tokenizer::Bytes, &cache, &mut |_, _| panic!("made again")).expect("found");
    assert_eq!(again.description(), first.description());

    // A part that is missing is made again, to the same bytes.
    fs::remove_file(&train).expect("there");
    prepared(&corpus, Tokenizer::Bytes, &cache);
    assert_eq!(fs::read(&train).expect("made again"), content);

    // A changed text is another one, under its own name.
    fs::write(corpus.path().join("000.txt"), "other\n".repeat(20_000)).expect("changed");
    let changed = prepared(&corpus, Tokenizer::Bytes, &cache);
    assert_ne!(changed.train().path(), train);
    assert_ne!(changed.description().corpus_sha256, first.description().corpus_sha256);
    assert_eq!(fs::read_dir(&cache).expect("folder").count(), 2);
}

#[test]
fn two_at_once_write_the_same() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let corpus = lines(folder.path(), 2, 2000);
    let cache = folder.path().join("tokens");
    let descriptions: Vec<Description> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| prepared(&corpus, Tokenizer::Bytes, &cache).description().clone())).collect();
        runs.into_iter().map(|run| run.join().expect("no panic")).collect()
    });
    assert!(descriptions.iter().all(|d| *d == descriptions[0]));
    let made = fs::read_dir(&cache).expect("folder").next().expect("one").expect("entry").path();
    let mut names: Vec<_> = fs::read_dir(made).expect("folder").map(|e| e.expect("entry").file_name()).collect();
    names.sort();
    assert_eq!(names, [DESCRIPTION, TRAIN, VALIDATION], "nothing is left over");
}

#[test]
fn damaged_and_stale_tokens_are_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let corpus = lines(folder.path(), 2, 2000);
    let cache = folder.path().join("tokens");
    let made = prepared(&corpus, Tokenizer::Bytes, &cache);
    let home = made.train().path().parent().expect("a folder").to_owned();
    let damage = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = home.join(name);
        let whole = fs::read(&path).expect("there");
        let mut bytes = whole.clone();
        change(&mut bytes);
        write_bytes(&path, &bytes).expect("damaged");
        let refused = prepare(&corpus, Tokenizer::Bytes, &cache, &mut |_, _| {}).expect_err(name).to_string();
        write_bytes(&path, &whole).expect("mended");
        assert!(refused.starts_with(&path.display().to_string()) && refused.lines().count() == 1, "{refused}");
        assert!(refused.contains("remove this file to have"), "{refused}");
        refused
    };
    let cut_off = damage(VALIDATION, &|bytes| bytes.truncate(bytes.len() - 1));
    assert!(cut_off.contains("bytes, not the "), "{cut_off}");
    assert!(damage(TRAIN, &|bytes| bytes[1000] ^= 1).contains("has another checksum than dataset.json says"));
    assert!(damage(DESCRIPTION, &|bytes| bytes.truncate(40)).contains("is not a description of tokens: EOF"));
    let replace = |from: &'static str, to: &'static str| {
        move |bytes: &mut Vec<u8>| *bytes = String::from_utf8_lossy(bytes).replacen(from, to, 1).into_bytes()
    };
    assert!(damage(DESCRIPTION, &replace("\"format\": 1", "\"format\": 0")).contains("is of format 0, not 1"));
    let stale = damage(DESCRIPTION, &replace("\"corpus_sha256\": \"", "\"corpus_sha256\": \"0"));
    assert!(stale.contains("is about other tokens (bytes of corpus)"), "{stale}");
    prepared(&corpus, Tokenizer::Bytes, &cache);
}

#[test]
fn too_little_text_is_refused_with_its_size() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let cache = folder.path().join("tokens");
    let path = folder.path().join("small.txt");
    let attempt = |content: &str| {
        fs::write(&path, content).expect("file");
        prepare(&Corpus::open(&path).expect("text"), Tokenizer::Bytes, &cache, &mut |_, _| {})
    };
    let small = attempt(&"abcdefg\n".repeat(2000)).expect_err("16 pieces").to_string();
    let expected = "is too small to train on: its 16000 bytes of text make 16 pieces of up to 1024 bytes; training and validation \
                    take 20, so at least 20480 bytes";
    assert!(small.ends_with(expected), "{small}");
    attempt(&"abcdefg\n".repeat(2560)).expect("20 pieces");
    let empty = folder.path().join("empty.jsonl");
    fs::write(&empty, "{\"text\": \"\"}\n").expect("file");
    let empty = prepare(&Corpus::open(empty).expect("a file"), Tokenizer::Bytes, &cache, &mut |_, _| {});
    assert!(empty.expect_err("no text").to_string().ends_with("has documents, but all are empty: there is no text"));
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("file");
    let corpus = Corpus::open(&path).expect("text");
    let refused = prepare(&corpus, Tokenizer::Bytes, &file, &mut |_, _| {}).expect_err("a file").to_string();
    assert!(refused.contains("cannot be made for tokens: not a directory; SINEXP_DATA=FOLDER"), "{refused}");
}
