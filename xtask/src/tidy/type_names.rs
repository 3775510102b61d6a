//! One word for one thing: a name of a type is not given again and again.

use std::collections::BTreeMap;

use super::House;
use super::source::Source;

/// As many types of all crates may share a name.
const DEFINITIONS_MAX: usize = 3;

/// Names that mean the same thing in each place.
const SHARED: &[(&str, &str)] = &[];

/// Types that share their name with more than two others, outside of tests and examples.
pub(super) fn type_names(house: &House) -> Vec<String> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_ours = |path: &str| path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("/tests.rs");
    for file in house.rust().filter(|file| is_ours(&file.path)) {
        let source = Source::new(&file.text).without_tests();
        for (number, name) in names(&source.code) {
            defined.entry(name).or_default().push(format!("{}:{number}", file.path));
        }
    }
    defined.retain(|name, places| places.len() > DEFINITIONS_MAX && !SHARED.iter().any(|(shared, _reason)| shared == name));
    let findings =
        defined.into_iter().map(|(name, places)| format!("`{name}` is the name of {} types: {}", places.len(), places.join(", ")));
    findings.collect()
}

/// The types that the code defines, each with its line.
fn names(code: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut words =
            line.split_whitespace().skip_while(|word| word.starts_with("pub") || matches!(*word, "unsafe" | "super)" | "crate)"));
        if words.next().is_some_and(|kind| ["struct", "enum", "union", "trait"].contains(&kind)) {
            let name = words.next().and_then(|word| word.split(|c: char| !(c.is_alphanumeric() || c == '_')).next());
            names.extend(name.filter(|name| !name.is_empty()).map(|name| (index + 1, name.to_owned())));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_has_a_name() {
        let code = "pub(crate) struct A<T>(T);\n    enum B {\npub unsafe trait C {}\nlet d: struct_;\nstruct";
        let names: Vec<_> = names(code).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["A", "B", "C"]);
    }
}
