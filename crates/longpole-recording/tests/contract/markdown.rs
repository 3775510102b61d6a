//! The views as a page for people.

use std::fmt::Write as _;

use crate::views::{Kind, Shape, Views, short};

/// Each view with its keys, and each enum with its values.
pub(crate) fn page(views: &Views, roots: &[&str]) -> String {
    let mut page = String::new();
    for name in views.reachable(roots) {
        let (doc, shape) = views.get(&name);
        let _ = write!(page, "### {}\n\n{doc}\n\n", short(&name));
        match shape {
            Shape::Object(keys) => {
                page.push_str("| key | type | |\n|---|---|---|\n");
                for key in keys {
                    let absent = if key.may_be_absent { ", or absent" } else { "" };
                    let kind = match &key.kind {
                        Kind::OrNull(inner) if key.may_be_absent => words(inner),
                        kind => words(kind),
                    };
                    let _ = writeln!(page, "| `{}` | {kind}{absent} | {} |", key.name, cell(&key.doc));
                }
            }
            Shape::Words(values) => {
                page.push_str("| value | |\n|---|---|\n");
                for (value, doc) in values {
                    let _ = writeln!(page, "| `\"{value}\"` | {} |", cell(doc));
                }
            }
        }
        page.push('\n');
    }
    page
}

fn cell(doc: &str) -> String {
    doc.replace("\n\n", " ").replace('|', "\\|")
}

fn words(kind: &Kind) -> String {
    match kind {
        Kind::Truth => "boolean".to_owned(),
        Kind::Count => "integer".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Value => "integer in `unit`".to_owned(),
        Kind::Nanos => "nanoseconds".to_owned(),
        Kind::UnixNano => "string of digits".to_owned(),
        Kind::Text => "string".to_owned(),
        Kind::Range => "`[low, high]`".to_owned(),
        Kind::Any => "any".to_owned(),
        Kind::View(name) => format!("[{}](#{})", short(name), short(name).to_lowercase()),
        Kind::List(inner) => format!("list of {}", words(inner)),
        Kind::Pair(inner) => format!("pair of {}", words(inner)),
        Kind::OrNull(inner) => format!("{} or null", words(inner)),
    }
}
