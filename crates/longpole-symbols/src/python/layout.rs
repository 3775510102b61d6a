//! Where the fields of CPython's objects lie, by version.
//!
//! Each table comes from that version's own headers, by `offsetof`: `Include/cpython/code.h`, `frameobject.h`, `pystate.h`,
//! `unicodeobject.h` and `Include/internal/pycore_frame.h`, `pycore_interp.h`, `pycore_runtime.h`. The test at the end of this file compiles
//! that question against the headers that this machine has and compares. Within a minor version the layout does not change.
//! Since 3.13 `_PyRuntime` begins with a table of these offsets (`_Py_DebugOffsets`), which is read from the process instead.

use std::fmt;

/// Major and minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// 3.
    pub major: u8,
    /// 8 to 13 are known.
    pub minor: u8,
}

impl Version {
    /// CPython 3 of this minor version.
    pub const fn three(minor: u8) -> Version {
        Version { major: 3, minor }
    }

    /// From `PY_VERSION_HEX`, `0x030b02f0` for 3.11.2.
    pub fn from_hex(hex: u32) -> Version {
        let [_, _, minor, major] = hex.to_le_bytes();
        Version { major, minor }
    }

    /// From the name that files of CPython have: `libpython3.11.so.1.0`, `/usr/bin/python3.8`.
    pub fn from_path(path: &[u8]) -> Option<Version> {
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let name = name.strip_prefix(b"lib").unwrap_or(name).strip_prefix(b"python3.")?;
        let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let minor = std::str::from_utf8(&name[..digits]).ok()?.parse().ok()?;
        Some(Version::three(minor))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Where the frame that a thread runs is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Current {
    /// In the thread state.
    Direct { frame: u64 },
    /// In a `_PyCFrame` on the native stack, which the thread state points to.
    ByCFrame { cframe: u64, frame: u64 },
}

/// Which frames begin a call of the evaluating function: all before it, up to the one that called it, run in the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Each frame has a call of its own.
    Each,
    /// Those that say so.
    Flag { offset: u64 },
    /// A frame without code stands between: its owner is the native stack.
    Shim { offset: u64, owner: u8 },
}

/// How an instruction is remembered in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    /// As its number, an `int`; an instruction takes `bytes` bytes.
    Number { offset: u64, bytes: i64 },
    /// As its address.
    Address { offset: u64 },
}

/// How many values a frame that is suspended has, its locals first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Top {
    /// The address behind the last one; 0 while it runs.
    Address { offset: u64 },
    /// An `int` counts those that are no locals, which begin at an address of their own.
    Depth { offset: u64, start: u64 },
    /// An `int` counts all.
    Count { offset: u64 },
}

/// Where a coroutine has its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoroutineFrame {
    /// At this address; 0 when it is over.
    Address { offset: u64 },
    /// Within it, [`STATE_BEFORE_FRAME`] bytes behind a byte that is below 0 while it is suspended.
    Within { offset: u64 },
}

/// Where an instance keeps its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attributes {
    /// In a `dict`, whose address is one of its words.
    Dict,
    /// The addresses of their values and of a `dict` lie four and three words before it.
    ValuesOrDictBefore,
    /// That of their values, less one, or of a `dict` lies three words before it.
    MarkedBefore,
    /// The address of a `dict` lies three words before it, the values follow its head.
    Inline,
}

/// How a code object stores its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineTable {
    /// `co_lnotab`, to 3.9.
    Increments,
    /// PEP 626, 3.10.
    Ranges,
    /// PEP 657, from 3.11.
    Locations,
}

/// Offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Version,
    pub(super) runtime_interpreters: u64,
    pub(super) interpreter_next: u64,
    pub(super) interpreter_threads: u64,
    pub(super) thread_next: u64,
    /// `pthread_self()`.
    pub(super) thread_pthread: u64,
    /// The kernel's id, from 3.11.
    pub(super) thread_native: Option<u64>,
    pub(super) current: Current,
    pub(super) frame_code: u64,
    pub(super) frame_previous: u64,
    pub(super) instruction: Instruction,
    pub(super) entry: Entry,
    pub(super) frame_locals: u64,
    pub(super) frame_top: Top,
    pub(super) coroutine_frame: CoroutineFrame,
    pub(super) attributes: Attributes,
    pub(super) code_first_line: u64,
    pub(super) code_file: u64,
    /// The name with that of what it is in, where there is such (from 3.11).
    pub(super) code_name: u64,
    pub(super) code_lines: u64,
    pub(super) line_table: LineTable,
    /// The instructions: within the code object from 3.11, a `bytes` before.
    pub(super) code_instructions: u64,
    pub(super) instructions_are_inline: bool,
    pub(super) object_type: u64,
    pub(super) object_size: u64,
    pub(super) type_name: u64,
    pub(super) bytes_data: u64,
    pub(super) text_length: u64,
    pub(super) text_state: u64,
    /// Bytes of the head of a text of ASCII only, and of another.
    pub(super) ascii_head: u64,
    pub(super) compact_head: u64,
}

/// 3.8; the others differ from one another by what is named.
const PYTHON_3_8: Layout = Layout {
    version: Version::three(8),
    runtime_interpreters: 32,
    interpreter_next: 0,
    interpreter_threads: 8,
    thread_next: 8,
    thread_pthread: 176,
    thread_native: None,
    current: Current::Direct { frame: 24 },
    frame_code: 32,
    frame_previous: 24,
    instruction: Instruction::Number { offset: 104, bytes: 1 },
    entry: Entry::Each,
    frame_locals: 360,
    frame_top: Top::Address { offset: 72 },
    coroutine_frame: CoroutineFrame::Address { offset: 16 },
    attributes: Attributes::Dict,
    code_first_line: 40,
    code_file: 104,
    code_name: 112,
    code_lines: 120,
    line_table: LineTable::Increments,
    code_instructions: 48,
    instructions_are_inline: false,
    object_type: 8,
    object_size: 16,
    type_name: 24,
    bytes_data: 32,
    text_length: 16,
    text_state: 32,
    ascii_head: 48,
    compact_head: 72,
};

const PYTHON_3_9: Layout = Layout { version: Version::three(9), ..PYTHON_3_8 };

const PYTHON_3_10: Layout = Layout {
    version: Version::three(10),
    instruction: Instruction::Number { offset: 96, bytes: 2 },
    frame_locals: 352,
    frame_top: Top::Depth { offset: 80, start: 64 },
    line_table: LineTable::Ranges,
    ..PYTHON_3_9
};

const PYTHON_3_11: Layout = Layout {
    version: Version::three(11),
    runtime_interpreters: 40,
    interpreter_threads: 16,
    thread_pthread: 152,
    thread_native: Some(160),
    current: Current::ByCFrame { cframe: 56, frame: 8 },
    frame_code: 32,
    frame_previous: 48,
    instruction: Instruction::Address { offset: 56 },
    entry: Entry::Flag { offset: 68 },
    frame_locals: 72,
    frame_top: Top::Count { offset: 64 },
    coroutine_frame: CoroutineFrame::Within { offset: 80 },
    attributes: Attributes::ValuesOrDictBefore,
    code_first_line: 72,
    code_file: 112,
    code_name: 128,
    code_lines: 136,
    line_table: LineTable::Locations,
    code_instructions: 184,
    instructions_are_inline: true,
    ..PYTHON_3_10
};

const PYTHON_3_12: Layout = Layout {
    version: Version::three(12),
    interpreter_threads: 72,
    thread_pthread: 136,
    thread_native: Some(144),
    current: Current::ByCFrame { cframe: 56, frame: 0 },
    frame_code: 0,
    frame_previous: 8,
    entry: Entry::Shim { offset: 70, owner: OWNED_BY_NATIVE_STACK },
    coroutine_frame: CoroutineFrame::Within { offset: 72 },
    attributes: Attributes::MarkedBefore,
    code_first_line: 68,
    code_instructions: 192,
    ascii_head: 40,
    compact_head: 56,
    ..PYTHON_3_11
};

const PYTHON_3_13: Layout = Layout {
    version: Version::three(13),
    runtime_interpreters: 632,
    interpreter_next: 7264,
    interpreter_threads: 7344,
    thread_pthread: 152,
    thread_native: Some(160),
    current: Current::Direct { frame: 72 },
    attributes: Attributes::Inline,
    code_instructions: 200,
    ..PYTHON_3_12
};

/// How far before the frame of a coroutine its state lies.
pub(super) const STATE_BEFORE_FRAME: u64 = 5;

/// Fields that lie in the same place in all these versions: the first behind the head of an object, such as the content of a cell, the number in
/// a `float`, and what an awaitable stands for; how many bytes an instance of a type has, and its flags; and those of collections.
pub(super) const FIRST: u64 = 16;
pub(super) const TYPE_BYTES: u64 = 32;
pub(super) const TYPE_FLAGS: u64 = 168;
pub(super) const LIST_ITEMS: u64 = 24;
pub(super) const TUPLE_ITEMS: u64 = 24;
pub(super) const SET_MASK: u64 = 32;
pub(super) const SET_TABLE: u64 = 40;
pub(super) const DICT_KEYS: u64 = 32;
pub(super) const DICT_VALUES: u64 = 40;

/// `FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13.
const OWNED_BY_NATIVE_STACK: u8 = 3;

/// Bytes of 3.13's `_Py_DebugOffsets` up to and with the fields that are read here.
pub(super) const DEBUG_OFFSETS_BYTES: usize = 8 * 72;

/// What they begin with.
const COOKIE: &[u8; 8] = b"xdebugpy";

/// No field of any object lies further in than this: `PyInterpreterState` is the largest, with some hundred thousand bytes.
const OFFSET_MAX: u64 = 1 << 20;

impl Layout {
    /// The layout of a version, as its headers have it.
    pub(super) fn of(version: Version) -> Option<Layout> {
        let known = [PYTHON_3_8, PYTHON_3_9, PYTHON_3_10, PYTHON_3_11, PYTHON_3_12, PYTHON_3_13];
        known.into_iter().find(|layout| layout.version == version)
    }

    /// Whether the process holds a table of its layout.
    pub(super) fn has_table(&self) -> bool {
        self.version >= PYTHON_3_13.version
    }

    /// The layout that `_PyRuntime` of 3.13 begins with; `None` where that is not such a table.
    ///
    /// Words of 64 bits, in groups that begin with the size of the object: cookie, version, free-threaded; runtime; interpreter;
    /// thread; frame; code; and so on. Comments name the groups.
    pub(super) fn told(self, table: &[u8]) -> Option<Layout> {
        if !table.starts_with(COOKIE) {
            return None;
        }
        let word = |number: usize| {
            let at = number * 8;
            let word = u64::from_le_bytes(table.get(at..at + 8)?.try_into().ok()?);
            Some(word)
        };
        let offset = |number: usize| word(number).filter(|offset| *offset < OFFSET_MAX);
        if Version::from_hex(u32::try_from(word(1)?).ok()?) != self.version {
            return None;
        }
        Some(Layout {
            // runtime_state: size 3, finalizing, interpreters_head
            runtime_interpreters: offset(5)?,
            // interpreter_state: size 6, id, next, threads_head, gc …
            interpreter_next: offset(8)?,
            interpreter_threads: offset(9)?,
            // thread_state: size 19, prev, next, interp, current_frame, thread_id, native_thread_id, datastack_chunk, status
            thread_next: offset(21)?,
            current: Current::Direct { frame: offset(23)? },
            thread_pthread: offset(24)?,
            thread_native: Some(offset(25)?),
            // interpreter_frame: size 28, previous, executable, instr_ptr, localsplus, owner
            frame_previous: offset(29)?,
            frame_code: offset(30)?,
            instruction: Instruction::Address { offset: offset(31)? },
            frame_locals: offset(32)?,
            entry: Entry::Shim { offset: offset(33)?, owner: OWNED_BY_NATIVE_STACK },
            // code_object: size 34, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
            // localspluskinds, co_code_adaptive
            code_file: offset(35)?,
            code_name: offset(37)?,
            code_lines: offset(38)?,
            code_first_line: offset(39)?,
            code_instructions: offset(43)?,
            // pyobject: size 44, ob_type
            object_type: offset(45)?,
            // type_object: size 46, tp_name, tp_repr, tp_flags
            type_name: offset(47)?,
            // tuple_object 50, list_object 53, dict_object 56, float_object 59, long_object 61; bytes_object: size 64, ob_size, ob_sval
            object_size: offset(65)?,
            bytes_data: offset(66)?,
            // unicode_object: size 67, state, length, asciiobject_size
            text_state: offset(68)?,
            text_length: offset(69)?,
            ascii_head: offset(70)?,
            // The text of another kind follows two words more: the length of its UTF-8 and where that is.
            compact_head: offset(70)? + 16,
            ..self
        })
    }

    /// Bytes of a thread state up to and with the last field that is read.
    pub(super) fn thread_bytes(&self) -> u64 {
        let current = match self.current {
            Current::Direct { frame } => frame,
            Current::ByCFrame { cframe, .. } => cframe,
        };
        end_of_last([self.thread_next, self.thread_pthread, self.thread_native.unwrap_or(0), current])
    }

    /// The same of a frame.
    pub(super) fn frame_bytes(&self) -> u64 {
        let (Instruction::Number { offset: instruction, .. } | Instruction::Address { offset: instruction }) = self.instruction;
        let entry = match self.entry {
            Entry::Each => 0,
            Entry::Flag { offset } | Entry::Shim { offset, .. } => offset,
        };
        end_of_last([self.frame_code, self.frame_previous, instruction, entry])
    }

    /// The same of a code object.
    pub(super) fn code_bytes(&self) -> u64 {
        let instructions = if self.instructions_are_inline { 0 } else { self.code_instructions };
        end_of_last([self.code_name, self.code_file, self.code_lines, self.code_first_line, self.object_size, instructions])
    }
}

/// Where the last of these fields ends; none takes more than a word.
fn end_of_last<const FIELDS: usize>(offsets: [u64; FIELDS]) -> u64 {
    offsets.into_iter().max().unwrap_or(0) + 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    #[test]
    fn versions_are_known_by_number_and_by_file_name() {
        assert_eq!(Version::from_hex(0x030b_02f0), Version::three(11));
        let of = |path: &str| Version::from_path(path.as_bytes()).map(|version| version.minor);
        assert_eq!(of("/usr/lib/x86_64-linux-gnu/libpython3.8.so.1.0"), Some(8));
        assert_eq!(of("/usr/bin/python3.10"), Some(10));
        assert_eq!(of("/opt/python3.13t"), Some(13));
        assert_eq!([of("/usr/bin/python3"), of("/usr/bin/python3.x"), of("/python3.9/bin/node"), of("")], [None; 4]);
    }

    #[test]
    fn a_table_that_is_not_the_process_own_is_not_believed() {
        let mut table = vec![0; DEBUG_OFFSETS_BYTES];
        assert_eq!(PYTHON_3_13.told(&table), None);
        table[..8].copy_from_slice(COOKIE);
        assert_eq!(PYTHON_3_13.told(&table), None, "version 0.0");
        table[8..12].copy_from_slice(&0x030d_00f0u32.to_le_bytes());
        assert!(PYTHON_3_13.told(&table).is_some());
        assert_eq!(PYTHON_3_13.told(&table[..80]), None);
        table[5 * 8 + 7] = 1;
        assert_eq!(PYTHON_3_13.told(&table), None, "an offset beyond all objects");
    }

    /// Asks the compiler for every offset of the tables. Names of other versions are left out by the preprocessor.
    const QUESTION: &str = r#"
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "frameobject.h"
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#endif
#define O(name, type, field) printf(name " %zu\n", offsetof(type, field))
int main(void) {
    O("runtime_interpreters", _PyRuntimeState, interpreters.head);
    O("interpreter_next", PyInterpreterState, next);
    O("thread_next", PyThreadState, next);
    O("thread_pthread", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
    O("interpreter_threads", PyInterpreterState, threads.head);
    O("thread_native", PyThreadState, native_thread_id);
    O("frame_previous", _PyInterpreterFrame, previous);
    O("frame_locals", _PyInterpreterFrame, localsplus);
    O("frame_top", _PyInterpreterFrame, stacktop);
    O("coroutine_frame", PyCoroObject, cr_iframe);
    O("coroutine_state", PyCoroObject, cr_frame_state);
    O("code_name", PyCodeObject, co_qualname);
    O("code_instructions", PyCodeObject, co_code_adaptive);
#else
    O("interpreter_threads", PyInterpreterState, tstate_head);
    O("current_frame", PyThreadState, frame);
    O("frame_previous", PyFrameObject, f_back);
    O("frame_locals", PyFrameObject, f_localsplus);
    O("coroutine_frame", PyCoroObject, cr_frame);
    O("frame_code", PyFrameObject, f_code);
    O("frame_instruction", PyFrameObject, f_lasti);
    O("code_name", PyCodeObject, co_name);
    O("code_instructions", PyCodeObject, co_code);
#if PY_VERSION_HEX >= 0x030a0000
    O("frame_top", PyFrameObject, f_stackdepth);
    O("frame_values", PyFrameObject, f_valuestack);
#else
    O("frame_top", PyFrameObject, f_stacktop);
#endif
#endif
#if PY_VERSION_HEX >= 0x030d0000
    O("current_frame", PyThreadState, current_frame);
    O("frame_code", _PyInterpreterFrame, f_executable);
    O("frame_instruction", _PyInterpreterFrame, instr_ptr);
#elif PY_VERSION_HEX >= 0x030b0000
    O("current_cframe", PyThreadState, cframe);
    O("current_frame", _PyCFrame, current_frame);
    O("frame_code", _PyInterpreterFrame, f_code);
    O("frame_instruction", _PyInterpreterFrame, prev_instr);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    O("entry", _PyInterpreterFrame, owner);
    printf("owner %d\n", FRAME_OWNED_BY_CSTACK);
#elif PY_VERSION_HEX >= 0x030b0000
    O("entry", _PyInterpreterFrame, is_entry);
#endif
    O("code_first_line", PyCodeObject, co_firstlineno);
    O("code_file", PyCodeObject, co_filename);
#if PY_VERSION_HEX >= 0x030a0000
    O("code_lines", PyCodeObject, co_linetable);
#else
    O("code_lines", PyCodeObject, co_lnotab);
#endif
    O("type_bytes", PyTypeObject, tp_basicsize);
    O("type_flags", PyTypeObject, tp_flags);
    O("list_items", PyListObject, ob_item);
    O("tuple_items", PyTupleObject, ob_item);
    O("set_mask", PySetObject, mask);
    O("set_table", PySetObject, table);
    O("dict_keys", PyDictObject, ma_keys);
    O("dict_values", PyDictObject, ma_values);
    O("cell_content", PyCellObject, ob_ref);
    O("float_value", PyFloatObject, ob_fval);
    O("object_type", PyObject, ob_type);
    O("object_size", PyVarObject, ob_size);
    O("type_name", PyTypeObject, tp_name);
    O("bytes_data", PyBytesObject, ob_sval);
    O("text_length", PyASCIIObject, length);
    O("text_state", PyASCIIObject, state);
    printf("ascii_head %zu\ncompact_head %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
    return 0;
}
"#;

    /// The same, from a table.
    fn answer(layout: &Layout) -> String {
        let mut lines = vec![
            ("runtime_interpreters", layout.runtime_interpreters),
            ("interpreter_next", layout.interpreter_next),
            ("interpreter_threads", layout.interpreter_threads),
            ("thread_next", layout.thread_next),
            ("thread_pthread", layout.thread_pthread),
            ("frame_code", layout.frame_code),
            ("frame_previous", layout.frame_previous),
            ("frame_locals", layout.frame_locals),
            ("code_first_line", layout.code_first_line),
            ("code_file", layout.code_file),
            ("code_name", layout.code_name),
            ("code_lines", layout.code_lines),
            ("code_instructions", layout.code_instructions),
            ("type_bytes", TYPE_BYTES),
            ("type_flags", TYPE_FLAGS),
            ("list_items", LIST_ITEMS),
            ("tuple_items", TUPLE_ITEMS),
            ("set_mask", SET_MASK),
            ("set_table", SET_TABLE),
            ("dict_keys", DICT_KEYS),
            ("dict_values", DICT_VALUES),
            ("cell_content", FIRST),
            ("float_value", FIRST),
            ("object_type", layout.object_type),
            ("object_size", layout.object_size),
            ("type_name", layout.type_name),
            ("bytes_data", layout.bytes_data),
            ("text_length", layout.text_length),
            ("text_state", layout.text_state),
            ("ascii_head", layout.ascii_head),
            ("compact_head", layout.compact_head),
        ];
        lines.extend(layout.thread_native.map(|offset| ("thread_native", offset)));
        match layout.current {
            Current::Direct { frame } => lines.push(("current_frame", frame)),
            Current::ByCFrame { cframe, frame } => lines.extend([("current_cframe", cframe), ("current_frame", frame)]),
        }
        match layout.entry {
            Entry::Each => {}
            Entry::Flag { offset } => lines.push(("entry", offset)),
            Entry::Shim { offset, owner } => lines.extend([("entry", offset), ("owner", owner.into())]),
        }
        match layout.frame_top {
            Top::Address { offset } | Top::Count { offset } => lines.push(("frame_top", offset)),
            Top::Depth { offset, start } => lines.extend([("frame_top", offset), ("frame_values", start)]),
        }
        match layout.coroutine_frame {
            CoroutineFrame::Address { offset } => lines.push(("coroutine_frame", offset)),
            CoroutineFrame::Within { offset } => {
                lines.extend([("coroutine_frame", offset), ("coroutine_state", offset - STATE_BEFORE_FRAME)])
            }
        }
        match layout.instruction {
            Instruction::Number { offset, .. } | Instruction::Address { offset } => lines.push(("frame_instruction", offset)),
        }
        sorted(lines.into_iter().map(|(name, offset)| format!("{name} {offset}")))
    }

    fn sorted(lines: impl Iterator<Item = String>) -> String {
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines.join("\n")
    }

    /// Folders with `Python.h` of this minor version.
    fn headers(minor: u8) -> Vec<PathBuf> {
        let name = format!("python3.{minor}");
        let home = std::env::var_os("HOME").unwrap_or_default();
        let pyenv = std::fs::read_dir(Path::new(&home).join(".pyenv/versions")).into_iter().flatten().flatten().map(|entry| entry.path());
        let roots = [PathBuf::from("/usr"), PathBuf::from("/usr/local")].into_iter().chain(pyenv);
        roots.map(|root| root.join("include").join(&name)).filter(|folder| folder.join("internal/pycore_pystate.h").exists()).collect()
    }

    #[test]
    fn the_tables_are_those_of_the_headers_of_this_machine() {
        if Command::new("cc").arg("--version").output().is_err() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("longpole-layout-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = folder.join("question.c");
        std::fs::write(&source, QUESTION).unwrap();
        for minor in 8..=13 {
            for include in headers(minor) {
                let program = folder.join("question");
                let include_flag = |path: &Path| format!("-I{}", path.display());
                let built = Command::new("cc")
                    .args(["-w", &include_flag(&include), &include_flag(&include.join("internal")), "-o"])
                    .args([&program, &source])
                    .output()
                    .unwrap();
                assert!(built.status.success(), "{}: {}", include.display(), String::from_utf8_lossy(&built.stderr));
                let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
                let layout = Layout::of(Version::three(minor)).unwrap();
                assert_eq!(sorted(said.lines().map(str::to_owned)), answer(&layout), "{}", include.display());
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
