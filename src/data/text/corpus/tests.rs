//! Which files a corpus takes, in which order, and what it refuses.

use super::*;

fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("folder");
        fs::write(path, content).expect("file");
    }
    folder
}

/// Labels and texts.
fn read(corpus: &Corpus) -> Result<Vec<(String, String)>> {
    corpus
        .documents()
        .map(|document| {
            let document = document?;
            let label = document.label().to_owned();
            let text = document.pieces(16).map(|piece| Ok(piece?.text)).collect::<Result<String>>()?;
            Ok((label, text))
        })
        .collect()
}

fn refused(content: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.jsonl");
    fs::write(&path, content).expect("file");
    let error = read(&Corpus::open(&path).expect("a file")).expect_err("bad content").to_string();
    error.strip_prefix(&format!("{}: ", path.display())).expect("names the file").to_owned()
}

#[test]
fn a_folder_is_read_in_the_order_of_its_paths() {
    let folder = folder_of(&[
        ("b.txt", "second"),
        ("b/z.TXT", "fourth"),
        ("b-a.txt", "first"),
        ("b/a/x.jsonl", "{\"text\": \"third, much longer than one piece of it\"}\n"),
        ("notes.md", "not taken"),
    ]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path(), folder.path().join("b/loop")).expect("link");
    let corpus = Corpus::open(folder.path()).expect("a folder");
    let documents = read(&corpus).expect("readable");
    let expected = [
        ("b-a.txt", "first"),
        ("b.txt", "second"),
        ("b/a/x.jsonl", "third, much longer than one piece of it"),
        ("b/z.TXT", "fourth"),
    ];
    assert_eq!(documents, expected.map(|(label, text)| (label.to_owned(), text.to_owned())));
    assert_eq!(Some(corpus.name()), folder.path().file_name().and_then(|n| n.to_str()));
    let single = Corpus::open(folder.path().join("notes.md")).expect("any file");
    assert_eq!((single.name(), read(&single).expect("readable").len()), ("notes.md", 1));
    let this = Path::new(env!("CARGO_MANIFEST_DIR")).file_name().expect("a name").to_string_lossy();
    assert_eq!(Corpus::open("src/..").expect("this folder").name(), this);
}

#[test]
fn json_lines_are_documents_one_at_a_time() {
    let content = "{\"id\": 1, \"text\": \"a\\nb \\u00e9\"}\n\n  {\"text\": \"\"}\r\n{\"text\": \"last\"}";
    let folder = folder_of(&[
        ("a.jsonl", content),
        ("broken.jsonl", "{\"text\": \"good\"}\n{\"text\": 1}\n{\"text\": \"after\"}"),
    ]);
    let corpus = Corpus::open(folder.path().join("a.jsonl")).expect("a file");
    let texts: Vec<String> = read(&corpus).expect("readable").into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["a\nb é", "", "last"]);
    let broken = Corpus::open(folder.path().join("broken.jsonl")).expect("a file");
    let outcomes: Vec<bool> = broken.documents().map(|d| d.is_ok()).collect();
    assert_eq!(outcomes, [true, false], "what stands before is handed out before the rest is read");
}

#[test]
fn bad_json_lines_are_named() {
    let wanted = "is not a JSON object with a string under \"text\"";
    let good = "{\"text\": \"a\"}\n";
    let case = |line: &str| refused(format!("{good}\n{line}\n").as_bytes());
    assert_eq!(case("[\"a\"]"), format!("line 3 {wanted}: it begins with '['"));
    assert_eq!(case("{\"txt\": \"a\"}"), format!("line 3 {wanted}: missing field `text` at byte 12"));
    assert!(
        case("{\"text\": 7}").starts_with(&format!("line 3 {wanted}: invalid type: integer `7`, expected a string"))
    );
    assert!(case("{\"text\": \"cut o").contains("EOF while parsing a string at byte"));
    let latin1 = refused(b"{\"text\": \"a\"}\n{\"text\": \"caf\xe9\"}\n");
    assert!(latin1.starts_with("line 2 is not UTF-8: byte 0xe9 at offset 27; convert"), "{latin1}");
}

#[test]
fn what_is_no_corpus_is_refused() {
    let folder = folder_of(&[("empty.txt", ""), ("none/a.md", "text"), ("empty/a.txt", ""), ("latin1.txt", "x")]);
    let open = |name: &str| Corpus::open(folder.path().join(name)).expect_err(name).to_string();
    assert!(open("no.txt").contains("no.txt: is not there; --corpus takes"));
    assert!(open("empty.txt").ends_with("is empty: there is no text to read"));
    assert!(open("empty").ends_with("is empty: there is no text to read"));
    assert!(open("none").ends_with("holds no .txt and no .jsonl file"));
    assert!(Corpus::open("/dev/null").expect_err("a device").to_string().contains("neither a file nor a folder"));
    fs::write(folder.path().join("latin1.txt"), b"caf\xe9").expect("file");
    let latin1 = read(&Corpus::open(folder.path().join("latin1.txt")).expect("a file")).expect_err("Latin-1");
    assert!(latin1.to_string().contains("latin1.txt: is not UTF-8: byte 0xe9 at offset 3"), "{latin1}");
}

#[test]
fn the_package_is_what_was_fetched_or_says_what_to_do() {
    let folder = folder_of(&[]);
    let missing = Corpus::package_in(folder.path()).expect_err("nothing fetched").to_string();
    assert!(missing.contains("text: has no text yet; run ./setup --data, or name your own"), "{missing}");
    let folder = folder_of(&[("text/sotu/1790.txt", "ab"), ("text/moby-dick.txt", "abc")]);
    let other = Corpus::package_in(folder.path()).expect_err("too little").to_string();
    assert!(other.contains("has 2 files of 5 bytes, not the 234 of 11966410 that were fetched"), "{other}");
}
