//! The views as types of the page, and the functions that read them.

use std::fmt::Write as _;

use crate::views::{Key, Kind, Shape, Views, is_columns, short, snake_case};

const HEAD: &str = "// Generated from the views of crates/longpole-recording/src/view; do not edit. A test of that crate fails when this is stale:\n\
                    // LONGPOLE_UPDATE_CONTRACT=1 cargo test -p longpole-recording --test contract\n";

/// `types.gen.ts`: an interface for each view, the values and the type of each enum.
pub(crate) fn types(views: &Views, roots: &[&str]) -> String {
    let mut out = format!(
        "{HEAD}import type {{ Nanos }} from '../base/brand';\nimport type {{ AttributeValue, NanosRange }} from './cursor';\n\n\
         export type {{ AttributeValue, NanosRange }};\n"
    );
    for name in views.reachable(roots) {
        let (doc, shape) = views.get(&name);
        let short = short(&name);
        let _ = write!(out, "\n{}", comment("", doc));
        match shape {
            Shape::Words(values) => {
                let list: Vec<String> = values.iter().map(|(value, _)| format!("'{value}'")).collect();
                let _ = writeln!(out, "export const {} = [{}] as const;", constant(short), list.join(", "));
                let _ = writeln!(out, "export type {short} = (typeof {})[number];", constant(short));
            }
            Shape::Object(keys) => {
                let _ = writeln!(out, "export interface {short} {{");
                for key in keys {
                    let kind = if is_columns(&name) { column(key).0.to_owned() } else { type_of(&key.kind) };
                    let _ = writeln!(out, "{}  readonly {}: {kind};", comment("  ", &key.doc), camel_case(&key.name));
                }
                out.push_str("}\n");
            }
        }
    }
    out
}

/// `decode.gen.ts`: a function for each view that turns JSON into it, or says where the JSON is wrong.
pub(crate) fn decoders(views: &Views, roots: &[&str]) -> String {
    let names = views.reachable(roots);
    let (mut types, mut constants, mut functions) = (Vec::new(), Vec::new(), String::new());
    for name in &names {
        let short = short(name);
        match views.get(name).1 {
            Shape::Words(_) => constants.push(constant(short)),
            Shape::Object(keys) => {
                types.push(short);
                let function = camel_case(&snake_case(short));
                let _ = write!(functions, "\nfunction {function}(cursor: Cursor): {short} {{\n");
                functions.push_str(if is_columns(name) { "  return cursor.columns({\n" } else { "  return {\n" });
                for key in keys {
                    let reader = if is_columns(name) { column(key).1.to_owned() } else { reader(views, &key.kind) };
                    let read = read("cursor", &key.name, &reader);
                    let _ = writeln!(functions, "    {}: {read},", camel_case(&key.name));
                }
                functions.push_str(if is_columns(name) { "  });\n}\n" } else { "  };\n}\n" });
            }
        }
    }
    types.sort_unstable();
    constants.sort_unstable();
    let imports: Vec<String> = constants.into_iter().chain(types.iter().map(|name| format!("type {name}"))).collect();
    let mut out =
        format!("{HEAD}import {{ Cursor }} from './cursor';\nimport {{\n  {},\n}} from './types.gen';\n{functions}", imports.join(",\n  "));
    for root in roots {
        let short = short(root);
        let function = camel_case(&snake_case(short));
        let _ =
            write!(out, "\nexport const decode{short} = (document: unknown): {short} => {function}(new Cursor(document, '{function}'));\n");
    }
    out
}

fn read(cursor: &str, key: &str, reader: &str) -> String {
    let field = format!("{cursor}.field('{key}')");
    match reader.strip_prefix('.') {
        Some(method) => format!("{field}.{method}"),
        None => format!("{reader}({field})"),
    }
}

/// What reads a value: a method of the cursor, with its dot, or a function.
fn reader(views: &Views, kind: &Kind) -> String {
    let argument = |inner: &Kind| {
        let inner = reader(views, inner);
        match inner.strip_prefix('.') {
            Some(method) => format!("(c) => c.{method}"),
            None => inner,
        }
    };
    match kind {
        Kind::Truth => ".boolean()".to_owned(),
        Kind::Count => ".count()".to_owned(),
        Kind::Number | Kind::Value => ".number()".to_owned(),
        Kind::Nanos => ".nanos()".to_owned(),
        Kind::UnixNano => ".unixNano()".to_owned(),
        Kind::Text => ".string()".to_owned(),
        Kind::Range => ".range()".to_owned(),
        Kind::Any => ".any()".to_owned(),
        Kind::View(name) => match views.get(name).1 {
            Shape::Words(_) => format!(".oneOf({})", constant(short(name))),
            Shape::Object(_) => camel_case(&snake_case(short(name))),
        },
        Kind::List(inner) => format!(".list({})", argument(inner)),
        Kind::Pair(inner) => format!(".pair({})", argument(inner)),
        Kind::OrNull(inner) => format!(".orNull({})", argument(inner)),
    }
}

fn type_of(kind: &Kind) -> String {
    match kind {
        Kind::Truth => "boolean".to_owned(),
        Kind::Count | Kind::Number | Kind::Value => "number".to_owned(),
        Kind::Nanos => "Nanos".to_owned(),
        Kind::UnixNano => "bigint".to_owned(),
        Kind::Text => "string".to_owned(),
        Kind::Range => "NanosRange".to_owned(),
        Kind::Any => "AttributeValue".to_owned(),
        Kind::View(name) => short(name).to_owned(),
        Kind::List(inner) => format!("readonly {}[]", type_of(inner)),
        Kind::Pair(inner) => format!("readonly [{0}, {0}]", type_of(inner)),
        Kind::OrNull(inner) => format!("{} | null", type_of(inner)),
    }
}

/// The typed array of a column, and what reads it. Times and bytes may exceed 32 bits; what else is signed is an index, or -1.
fn column(key: &Key) -> (&'static str, &'static str) {
    match &key.kind {
        Kind::List(inner) if key.name.ends_with("_nanos") || key.name.ends_with("_bytes") => {
            assert!(matches!(**inner, Kind::Nanos | Kind::Count), "{}: a column of numbers", key.name);
            ("Float64Array", ".floats()")
        }
        Kind::List(inner) if **inner == Kind::Nanos => ("Int32Array", ".indices()"),
        Kind::List(inner) if **inner == Kind::Count => ("Uint32Array", ".counts()"),
        _ => panic!("{}: a column is a list of numbers", key.name),
    }
}

/// `EVERY_WAIT_KIND`.
fn constant(name: &str) -> String {
    format!("EVERY_{}", snake_case(name).to_uppercase())
}

/// `self_nanos` becomes `selfNanos`.
fn camel_case(name: &str) -> String {
    let mut out = String::new();
    for (index, word) in name.split('_').enumerate() {
        match word.chars().next().filter(|_| index > 0) {
            Some(first) => out.extend(first.to_uppercase().chain(word.chars().skip(1))),
            None => out.push_str(word),
        }
    }
    out
}

fn comment(indent: &str, doc: &str) -> String {
    match doc.split_once("\n\n") {
        None => format!("{indent}/** {doc} */\n"),
        Some(_) => {
            let lines: Vec<String> = doc.lines().map(|line| format!("{indent} * {line}").trim_end().to_owned()).collect();
            format!("{indent}/**\n{}\n{indent} */\n", lines.join("\n"))
        }
    }
}
