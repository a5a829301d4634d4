//! The house as the compiler does not check it: no room imports one that lies above it, and no file another in a circle,
//! but for the circles that are listed here and not yet opened.
//!
//! Read from the text: `use` lines, and paths that begin with `crate::` or `super::` anywhere outside of comments and
//! unit tests. A name that a folder's `mod.rs` only hands on counts as the file's that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// A crate or program: where its root file lies, and its rooms from the ground up. A room is a file or folder of the root's
/// folder, or a folder in one of those; what stands on one line are neighbours, which do not know each other.
struct House {
    root: &'static str,
    floors: &'static [&'static [&'static str]],
    /// Circles that are still there. Nobody adds to this list: a circle that is new fails the test, and so does one on the
    /// list that is gone, until it is taken off.
    circles: &'static [&'static str],
}

const HOUSES: &[House] = &[
    House {
        root: "crates/hlograd/src/lib.rs",
        floors: &[&["error"], &["array"], &["random", "graph"], &["transform"], &["import"]],
        circles: &[
            "graph::function graph::infer graph::op graph::rewrite graph::tensor",
            "import import::build import::convolution import::index import::known import::ops import::reduce",
            "transform::control transform::grad transform::jvp transform::vjp_rules",
            "transform::vmap transform::vmap_control transform::vmap_rules",
        ],
    },
    House { root: "crates/panelplot/src/lib.rs", floors: &[], circles: &[] },
    House {
        root: "src/lib.rs",
        floors: &[
            &["error"],
            &["files"],
            &["runtime", "data", "optim"],
            &["cli", "nn"],
            &["interop"],
            &["convert", "analysis"],
            &["report"],
            &["train"],
            &["report/siren", "report/sel"],
            &["report/page", "catalog", "experiment"],
            &["experiment/siren", "experiment/sel"],
        ],
        circles: &[
            "catalog catalog::choices",
            "catalog::function catalog::names",
            "runtime::buffer runtime::device runtime::executable runtime::plugin",
            "train::language::folded train::language::pretrained",
        ],
    },
    House { root: "src/bin/hlo/main.rs", floors: &[], circles: &[] },
    House { root: "src/bin/sel/main.rs", floors: &[], circles: &[] },
    House { root: "src/bin/spectrum/main.rs", floors: &[], circles: &[] },
];

/// The source of one file, and what it takes from where.
struct Module {
    file: PathBuf,
    text: String,
    /// Paths of its `use` lines and inline paths, from the crate's root.
    takes: BTreeSet<Vec<String>>,
    /// Names that it only hands on: the name, and the path that it stands for.
    hands_on: Vec<(String, Vec<String>)>,
}

/// A module's path from its crate's root.
type ModulePath = Vec<String>;
type Modules = BTreeMap<ModulePath, Module>;
/// From each module to those that it takes from.
type Arrows = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

#[test]
fn no_new_circles_and_no_arrows_upwards() {
    let mut wrong = Vec::new();
    for house in HOUSES {
        let modules = read(Path::new(house.root));
        assert!(modules.len() > 1, "{}: nothing was read", house.root);
        let arrows = arrows(&modules);
        assert!(arrows.values().any(|to| !to.is_empty()), "{}: no arrow was found", house.root);
        let circles: Vec<String> = circles(&arrows).iter().map(|circle| circle.join(" ")).collect();
        let known = || house.circles.iter().map(|circle| circle.to_string());
        let new = circles.iter().filter(|circle| !known().any(|k| k == **circle));
        wrong.extend(new.map(|circle| format!("{}: a circle: {circle}", house.root)));
        let gone = known().filter(|circle| !circles.contains(circle));
        wrong.extend(gone.map(|circle| format!("{}: take this circle off the list, it is gone: {circle}", house.root)));
        wrong.extend(upward(house, &modules, &arrows));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn circles_and_arrows_upwards_are_seen() {
    let folder = tempfile::tempdir().expect("folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("lib.rs", "pub mod low;\npub mod high;\n");
    write(
        "low.rs",
        "//! See [`crate::high`].\nfn f() { crate::high::g() }\n#[cfg(test)]\nmod tests { use crate::low; }\n",
    );
    write("high/mod.rs", "mod a;\nmod b;\npub use a::{A, g};\n");
    write("high/a.rs", "use super::b::{self, B};\npub struct A;\npub fn g() {}\n");
    write("high/b.rs", "use crate::high::A;\npub struct B;\n");
    let root = folder.path().join("lib.rs");
    let modules = read(&root);
    let arrows = arrows(&modules);
    assert_eq!(circles(&arrows), [["high::a", "high::b"]]);
    let house = House { root: "lib.rs", floors: &[&["low"], &["high"]], circles: &[] };
    assert_eq!(upward(&house, &modules, &arrows).len(), 1);
}

/// All modules below a root file, by their path.
fn read(root: &Path) -> Modules {
    let mut modules = Modules::new();
    let mut left = vec![(Vec::new(), root.to_owned(), root.parent().expect("a folder").to_owned())];
    let child = Regex::new(r"(?m)^ *(?:pub(?:\([^)]*\))? )?mod (\w+);").expect("an expression");
    while let Some((path, file, folder)) = left.pop() {
        let text = without_tests(&fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
        for name in child.captures_iter(&text).map(|c| c[1].to_owned()) {
            let flat = folder.join(format!("{name}.rs"));
            let below = folder.join(&name);
            let file = if flat.exists() { flat } else { below.join("mod.rs") };
            left.push(([path.clone(), vec![name]].concat(), file, below));
        }
        modules.insert(path.clone(), module(&path, file, text));
    }
    modules
}

/// Without comments, strings' content left as it is, and without what is compiled for tests only.
fn without_tests(text: &str) -> String {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
    let end = code.windows(2).position(|w| w[0].trim() == "#[cfg(test)]" && w[1].trim_start().starts_with("mod "));
    code[..end.unwrap_or(code.len())].join("\n")
}

fn module(path: &[String], file: PathBuf, text: String) -> Module {
    let statement = Regex::new(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]+);").expect("an expression");
    let inline = Regex::new(r"\b(?:crate|super)(?:::\w+)+").expect("an expression");
    let (mut takes, mut hands_on) = (BTreeSet::new(), Vec::new());
    for found in statement.captures_iter(&text) {
        for leaf in leaves(&found[2]) {
            let target = absolute(path, &leaf);
            match found.get(1) {
                Some(_) => hands_on.push((leaf.last().cloned().unwrap_or_default(), target)),
                None => drop(takes.insert(target)),
            }
        }
    }
    let rest = statement.replace_all(&text, "");
    let inline = inline.find_iter(&rest).map(|p| p.as_str().split("::").map(str::to_owned).collect::<Vec<_>>());
    takes.extend(inline.map(|p| absolute(path, &p)));
    Module { file, text, takes, hands_on }
}

/// `a::{b, c::{d, self}}` as `a::b`, `a::c::d`, `a::c`.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let names = path.split("::").map(|s| s.trim().to_owned()).filter(|s| s != "self" && !s.is_empty());
        return vec![names.collect()];
    };
    let inside = &tree[open + 1..tree.rfind('}').expect("braces are closed")];
    let start = leaves(tree[..open].trim_end_matches(':')).remove(0);
    let (mut depth, mut parts) = (0i32, vec![String::new()]);
    for c in inside.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("one at least").push(c),
        }
    }
    let parts = parts.iter().filter(|p| !p.trim().is_empty());
    parts.flat_map(|p| leaves(p)).map(|leaf| [start.clone(), leaf].concat()).collect()
}

/// A path as written in module `from`, from the root of the crate. Other crates' paths come out as no module's.
fn absolute(from: &[String], path: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|s| *s == "super").count();
    match path.first().map(String::as_str) {
        Some("crate") => path[1..].to_vec(),
        Some("super") => [&from[..from.len().saturating_sub(ups)], &path[ups..]].concat(),
        _ => [from, path].concat(),
    }
}

/// The module that defines what a path names; None for what is not of this crate.
fn owner(modules: &Modules, path: &[String]) -> Option<Vec<String>> {
    let known = (0..=path.len()).rev().find(|n| modules.contains_key(&path[..*n]))?;
    let (here, rest) = (path[..known].to_vec(), &path[known..]);
    let module = &modules[&here];
    let Some(name) = rest.first() else { return Some(here) };
    let handed = module.hands_on.iter().find(|(n, _)| n == name).map(|(_, target)| target);
    let globs = || module.hands_on.iter().filter(|(n, _)| n == "*").map(|(_, t)| &t[..t.len() - 1]);
    let glob = || globs().filter_map(|t| modules.get_key_value(t)).find(|(_, m)| defines(m, name)).map(|(t, _)| t);
    match handed {
        Some(target) if target != path => owner(modules, target),
        _ if defines(module, name) || name == "*" => Some(here),
        _ => glob().cloned(),
    }
}

fn defines(module: &Module, name: &str) -> bool {
    let kinds = "fn|struct|enum|trait|type|const|static|union|mod|macro_rules!";
    Regex::new(&format!(r"\b(?:{kinds}) {}\b", regex::escape(name))).is_ok_and(|r| r.is_match(&module.text))
}

fn arrows(modules: &Modules) -> Arrows {
    let to = |path: &Vec<String>, m: &Module| {
        m.takes.iter().filter_map(|t| owner(modules, t)).filter(|t| t != path).collect::<BTreeSet<_>>()
    };
    modules.iter().map(|(path, m)| (path.clone(), to(path, m))).collect()
}

/// The circles: sets of files that reach each other, each sorted.
fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reach: BTreeMap<&ModulePath, _> = arrows.keys().map(|from| (from, reached(arrows, from))).collect();
    let mut all = BTreeSet::new();
    for a in arrows.keys() {
        let circle = reach[a].iter().filter(|b| reach[*b].contains(a));
        all.insert(circle.map(|module| module.join("::")).collect());
    }
    all.into_iter().filter(|circle: &Vec<String>| !circle.is_empty()).collect()
}

/// All that a module takes from, and what those do; itself too if it is in a circle.
fn reached<'a>(arrows: &'a Arrows, from: &'a ModulePath) -> BTreeSet<&'a ModulePath> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(at) = left.pop() {
        left.extend(arrows[at].iter().filter(|to| seen.insert(*to)));
    }
    seen
}

/// The arrows that run to a higher floor or to a neighbour, a line each. Every room must have a floor.
fn upward(house: &House, modules: &Modules, arrows: &Arrows) -> Vec<String> {
    let place = |path: &[String]| {
        let names = [path.iter().take(2).cloned().collect::<Vec<_>>().join("/"), path.first().cloned()?];
        names.iter().find_map(|n| {
            let floor = house.floors.iter().position(|f| f.contains(&n.as_str()))?;
            Some((floor, n.clone()))
        })
    };
    let mut wrong = Vec::new();
    for (from, to) in arrows.iter().filter(|(from, _)| !from.is_empty() && !house.floors.is_empty()) {
        let Some((floor, room)) = place(from) else {
            wrong.push(format!("{}: {} is in no room of the list in this test", house.root, from.join("::")));
            continue;
        };
        for to in to {
            if place(to).is_some_and(|(other, name)| other > floor || (other == floor && name != room)) {
                let file = modules[from].file.display();
                wrong.push(format!(
                    "{}: {file} takes from {}, which lies above it or beside it",
                    house.root,
                    to.join("::")
                ));
            }
        }
    }
    wrong
}
