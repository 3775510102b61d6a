//! Where a text can stand in a recording, and how it is judged there: the table of `docs/formats/redaction.md`.
//!
//! What the code judges is destructured field by field, so a new field of a span does not compile before somebody decides; a test holds
//! the table to the page and plants a credential in each place.

/// How the texts of a place are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
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

/// Every place, in the order of the page.
pub const PLACES: &[(&str, Judged)] = &[
    ("name of a span", Judged::Text),
    ("status message", Judged::Text),
    ("tracestate", Judged::TraceState),
    ("key of an attribute", Judged::Text),
    ("value of an attribute", Judged::NamedValue),
    ("value in a list", Judged::Words),
    ("key in a map", Judged::Text),
    ("value in a map", Judged::NamedValue),
    ("bytes", Judged::NamedValue),
    ("name of an event", Judged::Text),
    ("attribute of an event", Judged::NamedValue),
    ("attribute of a link", Judged::NamedValue),
    ("attribute of a resource", Judged::NamedValue),
    ("name of a scope", Judged::Text),
    ("version of a scope", Judged::Text),
    ("attribute of a scope", Judged::NamedValue),
    ("body of a log record", Judged::NamedValue),
    ("attribute of a log record", Judged::NamedValue),
    ("command of the run", Judged::Words),
    ("arguments of a process", Judged::Words),
    ("name and program of a process", Judged::Text),
    ("resource of a process", Judged::NamedValue),
    ("name of a thread", Judged::Text),
    ("Pulumi payload", Judged::Not("never stored: only URN, type, parent, provider and dependencies are")),
    ("Pulumi engine event", Judged::Not("only URNs, types and the kind of the step are read")),
    ("function, file and mapping", Judged::Not("from binaries and profiles, not from what runs through them")),
    ("host and working directory", Judged::Not("where the run was; a path has no credential")),
    ("recording (.lpole)", Judged::Not("judged when it was recorded")),
];
