//! `report` as it is called: one file that holds everything, damaged results, wrong calls; and the book's table.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use sinexp::report::page::{find, readme};

fn report(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("starts")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("UTF-8")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn copy(from: &str, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
    for entry in fs::read_dir(from).expect("results").flatten().filter(|e| e.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

#[test]
fn the_committed_results_make_one_file_that_needs_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("r.html");
    let output = report(&["figures", "--out", path(&out), "--title", "A <b> & c"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = text(&out);
    assert!(page.contains("<title>A &lt;b&gt; &amp; c</title>"));
    // Ours beside the paper's, and where it comes from.
    for part in [
        "uniform-phase MM",
        "10.28 dB, the best",
        "Table 2, Figure 4",
        "<b>Seeds</b> 0, 1, 2, 3, 4",
        "<b>Device</b> cpu",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    // A sweep in RGB begins at the first picture in RGB.
    assert!(page.contains("data-start=\"4\"") && page.contains("data-start=\"7\""));
    // Before the library only our own markup: nothing in it is loaded from elsewhere.
    let ours = &page[..page.find("plotly.js v").expect("the library")];
    for link in ["src=\"http", "href=\"http", "url(http", "@import", "<link rel=\"stylesheet", "<script src"] {
        assert!(!ours.contains(link), "{link}");
    }
    let names = |extension: &str| -> usize {
        let all = Command::new("git").args(["ls-files", "figures"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        let all = String::from_utf8(all.expect("git").stdout).expect("UTF-8");
        all.lines().filter(|l| l.ends_with(extension)).count()
    };
    if names(".png") > 0 {
        assert_eq!(page.matches("<img ").count(), names(".png"));
        assert_eq!(page.matches("class=\"chart\"").count(), names(".curves.parquet"));
    }
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs of <i>mine</i>");
    copy("figures/siren-table2/cpu", &runs.join("siren-table2/cpu"));
    copy("figures/siren-table3/cpu", &runs.join("siren-table3/cpu"));
    let of = |name: &str| runs.join("siren-table2/cpu").join(name);
    fs::write(of("run.json"), "{\"program\": \"sinexp <script>\", ").expect("written");
    for name in ["table.parquet", "losses.curves.parquet", "fig4.png"] {
        let whole = fs::read(of(name)).expect("there");
        fs::write(of(name), &whole[..whole.len() / 2]).expect("written");
    }
    fs::write(of("other.md"), "no table\n").expect("written");
    fs::write(of("evil.md"), "# <script>alert(1)</script>\n\n| <img src=x> |\n|---|\n| \"><b>x |\n").expect("written");
    let out = folder.path().join("r.html");
    let output = report(&[path(&runs), "--out", path(&out)]);
    let warnings = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{warnings}");
    for name in ["run.json", "table.parquet", "losses.curves.parquet", "fig4.png", "other.md"] {
        let lines: Vec<&str> = warnings.lines().filter(|l| l.contains(name)).collect();
        assert!(matches!(lines[..], [line] if line.starts_with("warning: left out: ")), "{name}: {warnings}");
    }
    assert_eq!(warnings.lines().count(), 5, "{warnings}");
    let page = text(&out);
    assert_eq!(page.matches("Could not be read").count(), 5);
    assert!(page.contains("not recorded") && page.contains("Table 3, grayscale"));
    for raw in ["<script>alert", "<img src=x>", "\"><b>x", "<i>mine", "sinexp <script>"] {
        assert!(!page.contains(raw), "{raw} is not escaped");
    }
}

#[test]
fn wrong_calls_are_one_line_and_leave_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty");
    fs::create_dir_all(empty.join("deep")).expect("folders");
    let out = folder.path().join("r.html");
    fs::write(&out, "old").expect("written");
    let nowhere = folder.path().join("nowhere/r.html");
    let cases: [(&[&str], &str); 6] = [
        (&["no/such/folder"], "is not a folder"),
        (&["README.md"], "is not a folder"),
        (&[path(&empty)], "no run.json, table or figure"),
        (&["figures", "--out", path(&nowhere)], "no such file or directory"),
        (&["figures", "--readme=LICENSE-MIT"], "expected the lines"),
        (&["figures", "--bogus"], "unexpected argument"),
    ];
    for (arguments, said) in cases {
        let more: &[&str] = if arguments.len() == 1 { &["--out", path(&out)] } else { &[] };
        let output = report(&[arguments, more].concat());
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.starts_with("error: ") && error.lines().count() == 1 && error.contains(said), "{error}");
    }
    assert_eq!((text(&out).as_str(), nowhere.exists()), ("old", false));
}

/// `sel train` and `fit` leave their losses as numbers.
#[test]
fn losses_of_single_runs_become_charts() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    fs::create_dir(&run).expect("a folder");
    let columns = vec![
        polars::prelude::Column::new("step".into(), [1i64, 2, 3]),
        polars::prelude::Column::new("loss".into(), [3.0, 2.0, 1.5]),
    ];
    let table = sinexp::report::Table::new("losses", columns).expect("fits");
    table.write(run.join("losses.parquet"), sinexp::report::TableFormat::Parquet).expect("written");
    let out = folder.path().join("r.html");
    assert!(report(&[path(&run), "--out", path(&out)]).status.success());
    let page = text(&out);
    assert!(page.contains("\"y\":[3.0,2.0,1.5]") && page.contains("class=\"chart\""));
}

/// The book's table is what `report --readme` writes for the committed results.
#[test]
fn the_book_has_the_table_of_the_committed_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runs = find(&[root.join("figures")]).expect("results");
    let page = root.join(readme::PAGE);
    let text = text(&page);
    let folder = page.parent().expect("a folder");
    let new = readme::replaced(&text, &readme::table(&runs, folder)).expect("markers");
    assert!(new == text, "{} is not up to date: cargo run --bin report -- --readme", readme::PAGE);
    let row = new.lines().find(|l| l.starts_with("| [siren-table2](")).expect("a row");
    assert!(row.contains("0, 1, 2, 3, 4") && row.contains("10.28 dB") && row.contains("8.12 ± 0.38"), "{row}");
    // Another folder, another table; the rest of the file stays.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("R.md");
    fs::write(&file, format!("before\n{}\n{}\nafter\n", readme::BEGIN, readme::END)).expect("written");
    let output = report(&["figures/siren-audio", &format!("--readme={}", path(&file))]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let new = fs::read_to_string(&file).expect("there");
    assert!(new.starts_with("before\n") && new.ends_with("\nafter\n") && new.contains("every-8th"), "{new}");
    assert_eq!(new.lines().filter(|l| l.starts_with("| [")).count(), 2);
}
