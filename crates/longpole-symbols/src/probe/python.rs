//! The symbols of CPython in a binary.

use std::io::{Read, Seek};

use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache};

use super::dynamic_names::has_dynamic_name;
use crate::python::{PythonSymbols, Version};

/// Where CPython keeps everything; it is exported for debuggers.
const PYTHON_RUNTIME: &str = "_PyRuntime";

/// The function that runs Python functions.
const PYTHON_EVAL: &str = "_PyEval_EvalFrameDefault";

/// Most pieces of it: there are two, one of them moved elsewhere by the compiler, and each twice if both tables name it.
const EVAL_PIECES_MAX: usize = 16;

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
        if found.eval.len() == EVAL_PIECES_MAX {
            break;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with nothing but dynamic symbols of these names, each a function of its own.
    fn with_symbols(names: &str, symbols: impl Iterator<Item = u32>) -> Vec<u8> {
        let mut table = vec![0; 24];
        for (at, name) in (1u64..).zip(symbols) {
            // A global function in section 1.
            table.extend([&name.to_le_bytes()[..], &[0x12, 0, 1, 0], &(at * 16).to_le_bytes(), &16u64.to_le_bytes()].concat());
        }
        let names_of_sections = b"\0.dynstr\0.dynsym\0";
        let headers_at = 64u64;
        let mut at = headers_at + 4 * 64;
        let mut headers = vec![0; 64];
        for (name, kind, link, entry, bytes) in
            [(1u32, 3u32, 0u32, 0u64, names.as_bytes()), (9, 11, 1, 24, &table), (0, 3, 0, 0, &names_of_sections[..])]
        {
            headers.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
            headers.extend([0, 0, at, bytes.len() as u64].map(u64::to_le_bytes).concat());
            headers.extend([link.to_le_bytes(), 1u32.to_le_bytes()].concat());
            headers.extend([1, entry].map(u64::to_le_bytes).concat());
            at += bytes.len() as u64;
        }
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        file.extend([0, 0, headers_at].map(u64::to_le_bytes).concat());
        file.extend([0u16, 0, 64, 0, 0, 64, 4, 3].map(u16::to_le_bytes).concat());
        file.resize(64, 0);
        [file, headers, names.into(), table, names_of_sections.to_vec()].concat()
    }

    #[test]
    fn pieces_of_the_interpreter_are_few() {
        let names = format!("\0{PYTHON_RUNTIME}\0{PYTHON_EVAL}\0");
        let eval = 2 + PYTHON_RUNTIME.len() as u32;
        let bytes = with_symbols(&names, std::iter::once(1).chain(std::iter::repeat_n(eval, 100_000)));
        let cache = ReadCache::new(std::io::Cursor::new(bytes));
        let file = object::File::parse(&cache).unwrap();
        let start = std::time::Instant::now();
        let found = python_symbols(&file).unwrap();
        assert_eq!((found.runtime, found.eval.len(), &found.eval[0]), (16, EVAL_PIECES_MAX, &(32..48)));
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
    }
}
