//! What the command line of `sel train` says, and where two configurations differ.

use clap::CommandFactory;
use clap::parser::ValueSource;
use serde_json::Value;

/// The options of `sel train` that stand on the command line.
pub fn given() -> Vec<String> {
    let matches = crate::Arguments::command().get_matches();
    let Some(matches) = matches.subcommand_matches("train") else { return Vec::new() };
    let given = |id: &clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    // Groups of options have names as types do.
    let option = |id: &clap::Id| id.as_str().starts_with(|c: char| c.is_ascii_lowercase());
    matches.ids().filter(|id| option(id) && given(id)).map(|id| id.as_str().to_owned()).collect()
}

/// The first choice in which two configurations differ: its name, and both values.
pub fn first_difference(name: &str, a: &Value, b: &Value) -> Option<(String, String, String)> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            let below = |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            a.iter().zip(b.values()).find_map(|((key, a), b)| first_difference(&below(key), a, b))
        }
        _ if a == b => None,
        _ => Some((name.to_owned(), a.to_string(), b.to_string())),
    }
}
