//! The symbols of CPython in a binary.

use std::io::{Read, Seek};

use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache};

use super::dynamic_names::has_dynamic_name;
use crate::python::{PythonSymbols, Version};

/// Where CPython keeps everything; it is exported for debuggers.
const PYTHON_RUNTIME: &str = "_PyRuntime";

/// The function that runs Python functions.
const PYTHON_EVAL: &str = "_PyEval_EvalFrameDefault";

/// Bytes of `PY_VERSION_HEX`, the value of `Py_Version`, which is a `long`.
const PYTHON_VERSION_BYTES: u64 = 8;

/// Finds the interpreter in a binary that has one.
///
/// Most have none, and their tables of symbols are long; so a look for the name itself comes first.
pub(crate) fn python_symbols<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<PythonSymbols> {
    if !has_dynamic_name(file, PYTHON_RUNTIME) {
        return None;
    }
    let mut found = PythonSymbols { runtime: 0, eval: Vec::new(), version: None };
    for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
        match symbol.name() {
            Ok(PYTHON_RUNTIME) => found.runtime = symbol.address(),
            Ok("Py_Version") => found.version = python_version(file, symbol.address()),
            _ => {}
        }
    }
    // What the compiler moved elsewhere, `….cold`, is a symbol of its own, and a local one.
    for symbol in file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.is_definition()) {
        let is_eval = |name: &str| name.strip_prefix(PYTHON_EVAL).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let range = symbol.address()..symbol.address().saturating_add(symbol.size());
        if symbol.name().is_ok_and(is_eval) && !range.is_empty() && !found.eval.contains(&range) {
            found.eval.push(range);
        }
    }
    (found.runtime != 0 && !found.eval.is_empty()).then_some(found)
}

fn python_version<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>, address: u64) -> Option<Version> {
    let section =
        file.sections().find(|section| (section.address()..section.address().saturating_add(section.size())).contains(&address))?;
    let value = section.data_range(address, PYTHON_VERSION_BYTES).ok()??;
    Some(Version::from_hex(u32::from_le_bytes(*value.first_chunk()?)))
}
