//! Names in the facts of an answer: of nodes, functions and waits.

use longpole_model::{FunctionId, NodeId, Wait, WaitKind};

use crate::code::functions::Function;
use crate::code::named::Named;
use crate::report::{Handle, Report};
use crate::schedule::poles::{PartKind, Pole};
use crate::time::blockers::Relation;

/// The function to name for some samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionNames<'a> {
    /// Its name.
    pub function: &'a str,
    /// Its source file, empty where unknown.
    pub file: &'a str,
    /// The function of a library that most of it is in.
    pub mostly_in: Option<LibraryFunction<'a>>,
}

/// A function of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryFunction<'a> {
    /// Its name, without its types.
    pub function: &'a str,
    /// Its source file, empty where unknown.
    pub file: &'a str,
}

/// A wait to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedWait<'a> {
    /// What it was for.
    pub kind: WaitKind,
    /// What another thread was for it.
    pub relation: Option<Relation>,
    /// The function that waits.
    pub function: Option<&'a str>,
}

/// The part of own time that a pole is, to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedPart<'a> {
    /// A function computes.
    Computes(FunctionId, &'a Function),
    /// A function waits; `None` if which one is unknown.
    Waits(WaitKind, Option<(FunctionId, &'a Function)>),
    /// Everything else.
    Rest,
    /// All but the time in which it was idle.
    Busy,
}

impl<'a> NamedPart<'a> {
    fn id_and_function(self) -> Option<(FunctionId, &'a Function)> {
        match self {
            NamedPart::Computes(id, function) => Some((id, function)),
            NamedPart::Waits(_, function) => function,
            NamedPart::Rest | NamedPart::Busy => None,
        }
    }

    /// The function.
    pub fn function(self) -> Option<&'a Function> {
        self.id_and_function().map(|(_, function)| function)
    }

    /// The function's handle.
    pub fn handle(self) -> Option<Handle> {
        self.id_and_function().map(|(id, _)| Handle::Function(id))
    }
}

impl Report {
    /// The part of own time that a pole is.
    pub fn part_of(&self, pole: &Pole) -> Option<NamedPart<'_>> {
        let function = |id: FunctionId| (id, &self.functions.list[id]);
        Some(match pole.part.as_ref()?.kind {
            PartKind::Computes(id) => NamedPart::Computes(id, &self.functions.list[id]),
            PartKind::Waits(kind, waits) => NamedPart::Waits(kind, waits.map(function)),
            PartKind::Rest => NamedPart::Rest,
            PartKind::Busy => NamedPart::Busy,
        })
    }

    /// Source file and line with the most time of the function that a pole is.
    pub fn place_of_part(&self, pole: &Pole) -> Option<(&str, u32)> {
        let place = match self.part_of(pole)? {
            NamedPart::Computes(_, function) => Some((function.file.as_str(), function.line)),
            NamedPart::Waits(..) => self.waits_of_pole(pole).first()?.places.first().map(|place| (place.file, place.line)),
            NamedPart::Rest | NamedPart::Busy => None,
        };
        // `<string>` and `<frozen posixpath>` are code of an interpreter without a file to open.
        place.filter(|(file, line)| !file.is_empty() && !file.starts_with('<') && *line > 0)
    }

    /// What the node is called.
    pub fn name(&self, node: NodeId) -> &str {
        self.forest.name(&self.recording, node)
    }

    /// The node's service.
    pub fn service(&self, node: NodeId) -> &str {
        self.forest.service(&self.recording, node)
    }

    pub(super) fn names_of(&self, named: Named) -> FunctionNames<'_> {
        let of = |function: FunctionId| {
            let function = &self.functions.list[function];
            (function.function.as_str(), function.file.as_str())
        };
        let (function, file) = of(named.function);
        let library = |(function, file)| LibraryFunction { function: without_types(function), file };
        FunctionNames { function, file, mostly_in: named.mostly_in.map(of).map(library) }
    }

    pub(super) fn named_wait(&self, wait: &Wait, relation: Option<Relation>) -> NamedWait<'_> {
        NamedWait { kind: wait.kind, relation, function: self.waiting_function(wait) }
    }
}

/// A function without the types that it was made for: `write<core::hash::sip::Sip13Rounds>` is `write`.
fn without_types(function: &str) -> &str {
    match function.find('<') {
        Some(at) if at > 0 && function.ends_with('>') && !function[..at].ends_with("::") => &function[..at],
        _ => function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_without_its_types() {
        let names = ["write<core::hash::Sip>", "<T as U>::go", "a::<impl B>", "plain", "odd<x>y"];
        assert_eq!(names.map(without_types), ["write", "<T as U>::go", "a::<impl B>", "plain", "odd<x>y"]);
    }
}
