//! One function: its name, its file, its line.

use super::heap::{Heap, word};
use super::layout::{WORD_BYTES, small_integer};
use super::lines::Lines;
use crate::memory::Unreadable;

/// Most characters of a name, and of the path of a script.
const NAME_CHARACTERS_MAX: u64 = 256;
const PATH_CHARACTERS_MAX: u64 = 1024;

/// Most variables of a scope: real ones have some dozen, those of bundles some thousand.
const VARIABLES_MAX: u64 = 1 << 16;

/// Names of that many variables and more are in a table instead.
const VARIABLES_IN_TABLE: u64 = 75;

/// Types of functions after the first one: constructors of classes and of arrays, of promises.
const FUNCTION_TYPES: u16 = 32;

/// Bytes of a scope behind its variables that are of use: name and its place, inferred name, start and end, and what follows.
const TAIL_BYTES: usize = 48;

/// Bits of the flags of a scope.
const SCOPE_KIND: u32 = 0xf;
const HAS_CLASS_VARIABLE: u32 = 1 << 10;
const HAS_NAME: u32 = 3 << 12;
const HAS_INFERRED_NAME: u32 = 1 << 14;

/// Number of variables of a scope in the first version that has the position in front of them.
const POSITION_WORDS: u64 = 2;

/// A function of a script.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScriptFunction {
    /// Its name, empty if it has none.
    pub name: String,
    /// Its script: a path, or what V8 calls it (`node:events`, `[eval]`). Empty if it has no name.
    pub file: String,
    /// The line in which it begins, 0 if unknown.
    pub line: u32,
}

/// The words of a function by which it is recognized: they change if the collector moves what they point to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    /// The map of the function, and what its closures share.
    pub(super) map: u64,
    pub(super) shared: u64,
    /// The name or scope in that, and the script.
    pub(super) name: u64,
    pub(super) script: u64,
}

/// What lies at a pointer where a frame has its function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A function of a script.
    Function(Marks, ScriptFunction),
    /// A function of V8 itself.
    Builtin(Marks),
    /// No function: the pointer is old, or never was one.
    Nothing,
}

/// Reads the function at a pointer.
pub(super) fn read(heap: &mut Heap<'_>, lines: &mut Lines, pointer: u64) -> Result<Found, Unreadable> {
    let layout = heap.layout;
    let functions = layout.type_function..=layout.type_function.saturating_add(FUNCTION_TYPES);
    let Some(function) = heap.object(pointer)?.filter(|object| functions.contains(&object.kind)) else { return Ok(Found::Nothing) };
    let shared_pointer = function.word(layout.function_shared);
    let Some(shared) = heap.object(shared_pointer)?.filter(|object| object.kind == layout.type_shared) else { return Ok(Found::Nothing) };
    let (name, script) = (shared.word(layout.shared_name), shared.word(layout.shared_script));
    let marks = Marks { map: function.word(0), shared: shared_pointer, name, script };
    let Some(script) = heap.object(script)? else { return Ok(Found::Nothing) };
    if script.kind != layout.type_script {
        return Ok(Found::Builtin(marks));
    }
    let Some(Head { name, start }) = head(heap, name)? else { return Ok(Found::Nothing) };
    let file = heap.text(script.word(layout.script_name), PATH_CHARACTERS_MAX)?.unwrap_or_default();
    let line = match start {
        Some(start) => lines.line(heap, script.word(layout.script_source), start)?,
        None => 0,
    };
    let file = file.strip_prefix("file://").map_or(file.clone(), str::to_owned);
    Ok(Found::Function(marks, ScriptFunction { name, file, line }))
}

/// What a scope says of its function.
struct Head {
    name: String,
    /// The character of the script where it begins.
    start: Option<u32>,
}

/// The name that a function has instead of its scope before it is compiled, or what its scope says; `None` if it is neither.
fn head(heap: &mut Heap<'_>, pointer: u64) -> Result<Option<Head>, Unreadable> {
    let layout = heap.layout;
    if small_integer(pointer).is_some() {
        return Ok(Some(Head { name: String::new(), start: None }));
    }
    let Some(scope) = heap.object(pointer)? else { return Ok(None) };
    if scope.kind < layout.type_not_text {
        return Ok(heap.text(pointer, NAME_CHARACTERS_MAX)?.map(|name| Head { name, start: None }));
    }
    if scope.kind != layout.type_scope {
        return Ok(None);
    }
    // The words of a scope are numbered from the one behind its map.
    let number = |number: u64| small_integer(scope.word((number + 1) * WORD_BYTES));
    let flags = scope.word(WORD_BYTES);
    // From V8 13 on they are no Smi.
    let flags = u32::try_from(flags & 0xffff_ffff).ok().filter(|flags| *flags != 0).unwrap_or((flags >> 32) as u32);
    let variables = number(layout.scope_variables).and_then(|count| u64::try_from(count).ok()).filter(|count| *count <= VARIABLES_MAX);
    let Some(variables) = variables else { return Ok(None) };
    let position_is_first = layout.scope_first_variable == layout.scope_variables + 1 + POSITION_WORDS;
    let early = position_is_first.then(|| number(layout.scope_variables + 1)).flatten();
    let names = if variables < VARIABLES_IN_TABLE { variables } else { 1 };
    let module = u64::from(position_is_first && flags & SCOPE_KIND == MODULE_SCOPE);
    let tail_at = layout.scope_first_variable + 1 + module + names + variables + u64::from(flags & HAS_CLASS_VARIABLE != 0);
    let mut tail = [0; TAIL_BYTES];
    if heap.copy_of(pointer, tail_at * WORD_BYTES, &mut tail)?.is_none() {
        // A scope at the end of the heap: without its end it has no name.
        return Ok(Some(Head { name: String::new(), start: early.and_then(|start| u32::try_from(start).ok()) }));
    }
    let mut words = (0..).map(|number| word(&tail, number * WORD_BYTES));
    let mut name = String::new();
    if flags & HAS_NAME != 0 {
        let (own, _place) = (words.next().unwrap_or(0), words.next());
        name = heap.text(own, NAME_CHARACTERS_MAX)?.unwrap_or_default();
    }
    if flags & HAS_INFERRED_NAME != 0 {
        let inferred = words.next().unwrap_or(0);
        if name.is_empty() {
            name = heap.text(inferred, NAME_CHARACTERS_MAX)?.unwrap_or_default();
        }
    }
    let start = if position_is_first { early } else { words.next().and_then(small_integer) };
    Ok(Some(Head { name, start: start.and_then(|start| u32::try_from(start).ok()) }))
}

/// The kind of scope of a module, in the versions that count its variables in front of them.
const MODULE_SCOPE: u32 = 5;
