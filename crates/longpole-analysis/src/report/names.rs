//! Names in the facts of an answer: of nodes, functions and waits.

use longpole_model::{FunctionId, NodeId, Wait, WaitKind};

use crate::code::named::Named;
use crate::report::Report;
use crate::time::blockers::Relation;

/// The function to name for some samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionNames<'a> {
    /// Its name.
    pub function: &'a str,
    /// The function of a library that most of it is in, without its types.
    pub mostly_in: Option<&'a str>,
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

impl Report {
    /// What the node is called.
    pub fn name(&self, node: NodeId) -> &str {
        self.forest.name(&self.recording, node)
    }

    /// The node's service.
    pub fn service(&self, node: NodeId) -> &str {
        self.forest.service(&self.recording, node)
    }

    pub(super) fn names_of(&self, named: Named) -> FunctionNames<'_> {
        let name = |function: FunctionId| self.functions.list[function].function.as_str();
        FunctionNames { function: name(named.function), mostly_in: named.mostly_in.map(name).map(without_types) }
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
