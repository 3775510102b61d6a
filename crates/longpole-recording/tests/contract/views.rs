//! Reads the views from their source text.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{Attribute, Expr, Fields, GenericArgument, Item, Lit, Meta, PathArguments, Type};

/// What one key of a view holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Truth,
    /// A whole number that is not negative.
    Count,
    Number,
    /// A value of a profile, in the unit that its view names.
    Value,
    /// A duration, or an offset from the start of the run.
    Nanos,
    /// A moment as a string of digits: a double does not hold it.
    UnixNano,
    Text,
    /// `[low, high]`.
    Range,
    /// Any JSON.
    Any,
    /// Another view.
    View(String),
    List(Box<Kind>),
    /// A list of two.
    Pair(Box<Kind>),
    OrNull(Box<Kind>),
}

/// One key of a view.
#[derive(Debug)]
pub(crate) struct Key {
    /// As JSON has it.
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) kind: Kind,
    /// The key is absent instead of null.
    pub(crate) may_be_absent: bool,
}

/// A view, or an enum of one.
#[derive(Debug)]
pub(crate) enum Shape {
    Object(Vec<Key>),
    /// The values as JSON has them, each with its meaning.
    Words(Vec<(String, String)>),
}

/// All views by the name of their struct.
pub(crate) struct Views(BTreeMap<String, (String, Shape)>);

impl Views {
    /// Reads every file below a folder.
    pub(crate) fn read(folder: &Path) -> Views {
        let mut views = Views(BTreeMap::new());
        views.read_folder(folder);
        views
    }

    fn read_folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                self.read_folder(&path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            file.items.iter().for_each(|item| self.add(item));
        }
    }

    fn add(&mut self, item: &Item) {
        let (name, attributes, shape) = match item {
            Item::Struct(it) if is_serialized(&it.attrs) => (&it.ident, &it.attrs, Shape::Object(keys(&it.fields))),
            Item::Enum(it) if is_serialized(&it.attrs) => {
                assert!(serde(&it.attrs, "rename_all = \"snake_case\""), "{}: an enum of a view is in snake_case", it.ident);
                let words = it.variants.iter().map(|variant| (snake_case(&variant.ident.to_string()), doc(&variant.attrs))).collect();
                (&it.ident, &it.attrs, Shape::Words(words))
            }
            _ => return,
        };
        self.0.insert(name.to_string(), (doc(attributes), shape));
    }

    /// The doc comment and the shape of a view.
    pub(crate) fn get(&self, name: &str) -> (&str, &Shape) {
        let (doc, shape) = self.0.get(name).unwrap_or_else(|| panic!("there is no view {name}"));
        (doc, shape)
    }

    /// These views and all that they hold, each behind the first that holds it.
    pub(crate) fn reachable(&self, roots: &[&str]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut open: Vec<String> = roots.iter().rev().map(|name| (*name).to_owned()).collect();
        while let Some(name) = open.pop() {
            if found.contains(&name) {
                continue;
            }
            if let (_, Shape::Object(keys)) = self.get(&name) {
                open.extend(keys.iter().rev().filter_map(|key| view_in(&key.kind)).map(str::to_owned));
            }
            found.push(name);
        }
        found
    }
}

fn view_in(kind: &Kind) -> Option<&str> {
    match kind {
        Kind::View(name) => Some(name),
        Kind::List(inner) | Kind::Pair(inner) | Kind::OrNull(inner) => view_in(inner),
        _ => None,
    }
}

/// The name of a view for its readers: without `View` at its end.
pub(crate) fn short(name: &str) -> &str {
    name.strip_suffix("View").unwrap_or(name)
}

/// Whether a view is a table of columns.
pub(crate) fn is_columns(name: &str) -> bool {
    name.ends_with("Columns")
}

/// `LeftOut` becomes `left_out`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

fn keys(fields: &Fields) -> Vec<Key> {
    let is_shown = |attributes: &[Attribute]| !serde(attributes, "skip");
    fields
        .iter()
        .filter(|field| is_shown(&field.attrs))
        .map(|field| {
            let name = field.ident.as_ref().expect("a field with a name").to_string();
            let kind = kind(&field.ty, &name);
            Key { doc: doc(&field.attrs), kind, may_be_absent: serde(&field.attrs, "skip_serializing_if"), name }
        })
        .collect()
}

fn kind(of: &Type, key: &str) -> Kind {
    let path = match of {
        Type::Reference(_) => return Kind::Text,
        Type::Slice(slice) => return Kind::List(Box::new(kind(&slice.elem, key))),
        Type::Array(array) => {
            assert!(is_two(&array.len), "{key}: an array of a view has two elements");
            return Kind::Pair(Box::new(kind(&array.elem, key)));
        }
        Type::Path(path) => path,
        _ => panic!("{key}: a type that no view has"),
    };
    let last = path.path.segments.last().expect("a path with a segment");
    let inner = || match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(inner)) => Box::new(kind(inner, key)),
            _ => panic!("{key}: a type that no view has"),
        },
        _ => panic!("{key}: a type that no view has"),
    };
    match last.ident.to_string().as_str() {
        "bool" => Kind::Truth,
        // Signed 64-bit numbers of views are times, and so are others whose name says it.
        "i64" => Kind::Nanos,
        "u64" if key.ends_with("_nanos") => Kind::Nanos,
        "ProfileValue" => Kind::Value,
        "u32" | "u64" | "usize" => Kind::Count,
        "i32" | "f64" => Kind::Number,
        "String" if key.ends_with("_unix_nano") => Kind::UnixNano,
        "String" | "str" => Kind::Text,
        "RangeNanos" => Kind::Range,
        "Value" => Kind::Any,
        "Vec" => Kind::List(inner()),
        "Option" => Kind::OrNull(inner()),
        "Arc" => *inner(),
        name => Kind::View(name.to_owned()),
    }
}

fn is_two(length: &Expr) -> bool {
    matches!(length, Expr::Lit(literal) if matches!(&literal.lit, Lit::Int(number) if number.base10_digits() == "2"))
}

/// The paragraphs of a doc comment, each in one line.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(it) if it.path.is_ident("doc") => match &it.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let mut paragraphs = vec![String::new()];
    for line in lines {
        match (line.as_str(), paragraphs.last_mut()) {
            ("", _) => paragraphs.push(String::new()),
            (text, Some(last)) if last.is_empty() => last.push_str(text),
            (text, Some(last)) => *last = format!("{last} {text}"),
            (_, None) => {}
        }
    }
    paragraphs.join("\n\n")
}

fn is_serialized(attributes: &[Attribute]) -> bool {
    list_of(attributes, "derive").any(|list| list.split(',').any(|name| name.trim() == "Serialize"))
}

/// Whether a serde attribute says this.
fn serde(attributes: &[Attribute], what: &str) -> bool {
    list_of(attributes, "serde").any(|list| list == what || list.starts_with(&format!("{what} =")))
}

/// The insides of the attributes of this name, as they are written.
fn list_of(attributes: &[Attribute], name: &str) -> impl Iterator<Item = String> {
    attributes.iter().filter_map(move |attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident(name) => Some(list.tokens.to_string()),
        _ => None,
    })
}
