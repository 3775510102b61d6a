//! The fields of a recording that hold text, and how longpole checks each: the table of `docs/formats/redaction.md`.
//!
//! What the code judges is destructured field by field, so a new field of a span does not compile before somebody decides; a test holds
//! the table to the page and plants a credential in each place.

/// How longpole checks the texts of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldRule {
    /// As a text: by shape, and by names that stand in it.
    Text,
    /// By the name of the value, and as a text.
    NamedValue,
    /// Word by word, as the program of the command line takes them.
    Words,
    /// By the names of its members, and as a text.
    TraceState,
    /// Not judged, for this reason.
    Not(&'static str),
}

/// Every field, in the order of the page.
pub const FIELD_RULES: &[(&str, FieldRule)] = &[
    ("name of a span", FieldRule::Text),
    ("status message", FieldRule::Text),
    ("tracestate", FieldRule::TraceState),
    ("key of an attribute", FieldRule::Text),
    ("value of an attribute", FieldRule::NamedValue),
    ("value in a list", FieldRule::Words),
    ("key in a map", FieldRule::Text),
    ("value in a map", FieldRule::NamedValue),
    ("bytes", FieldRule::NamedValue),
    ("name of an event", FieldRule::Text),
    ("attribute of an event", FieldRule::NamedValue),
    ("attribute of a link", FieldRule::NamedValue),
    ("attribute of a resource", FieldRule::NamedValue),
    ("name of a scope", FieldRule::Text),
    ("version of a scope", FieldRule::Text),
    ("attribute of a scope", FieldRule::NamedValue),
    ("body of a log record", FieldRule::NamedValue),
    ("attribute of a log record", FieldRule::NamedValue),
    ("label of a profile", FieldRule::NamedValue),
    ("type of a profile", FieldRule::Text),
    ("command of the run", FieldRule::Words),
    ("arguments of a process", FieldRule::Words),
    ("name and program of a process", FieldRule::Text),
    ("resource of a process", FieldRule::NamedValue),
    ("name of a thread", FieldRule::Text),
    ("Pulumi payload", FieldRule::Not("never stored: only URN, type, parent, provider and dependencies are")),
    ("Pulumi engine event", FieldRule::Not("only URNs, types and the kind of the step are read")),
    ("function, file and mapping", FieldRule::Not("from binaries and profiles, not from what runs through them")),
    ("host and working directory", FieldRule::Not("where the run was; a path has no credential")),
    ("recording (.lpole)", FieldRule::Not("judged when it was recorded")),
];
