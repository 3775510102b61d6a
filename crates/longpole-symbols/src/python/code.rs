//! Code objects: what a function is called, where it stands, where its instructions lie.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::copies::{Copies, int, word};
use super::interpreter::{FrameRead, Interpreter};
use super::layout::{Layout, LineTable};
use super::lines::line_of;
use super::read_error::ReadError;
use crate::kept::{Kept, Room};
use crate::memory::Memory;

/// Most code objects of one interpreter. A program that makes more makes them while it runs (`exec`), each used once.
const CODES_MAX: usize = 1 << 17;

/// Most characters of a name or of a path; what is longer is cut.
const TEXT_LENGTH_MAX: u64 = 1024;

/// Most bytes of a table of lines: a module of 100,000 lines.
const LINES_BYTES_MAX: u64 = 1 << 20;

/// Most bytes of the instructions of one code object.
const INSTRUCTIONS_BYTES_MAX: u64 = 16 << 20;

/// Most bytes of the texts and tables of all code objects of this process: a large program has some tens of megabytes. A program can make
/// its code objects share one table of a megabyte, which costs it nothing, and us one copy each.
const BYTES_MAX: u64 = 256 << 20;

/// How many of them tables of lines may take; beyond that, functions have their names and no lines ([`Code::lacks_lines`]).
const BYTES_WITH_LINES_MAX: u64 = BYTES_MAX / 2;

/// How often what should be the first code object may be something else before the layout is held to be another one.
const STRANGE_MAX: u32 = 20;

/// Number of a code object among those of its interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeId(pub u32);

/// A function, a module, a comprehension: whatever has code of its own.
#[derive(Debug)]
pub struct Code {
    /// Its name, with that of what it is in where the interpreter knows it (from 3.11).
    pub name: String,
    /// The file, as the interpreter has it.
    pub file: String,
    /// Where its instructions lie in the process.
    pub instructions: Range<u64>,
    /// Whether lines of its instructions are left out, because tables of lines have a limit.
    pub lacks_lines: bool,
    first_line: i32,
    lines: Vec<u8>,
    line_table: LineTable,
    /// The room of its texts, and of its table. Readings have it after its process has ended.
    kept: [Option<Kept>; 2],
}

impl Code {
    /// The line of the instruction that starts `instruction` bytes behind the first one; 0 where it has none.
    pub fn line(&self, instruction: i64) -> u32 {
        if self.lacks_lines && self.lines.is_empty() {
            // Without its table each instruction would seem to stand where the function begins.
            return 0;
        }
        line_of(self.line_table, &self.lines, self.first_line, instruction)
    }
}

/// What tells one code object from another that came to lie at the same address: pointers to its parts and its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    name: u64,
    file: u64,
    lines: u64,
    first_line: i32,
    instructions: u64,
}

static KEPT: Room = Room::new();

/// The code objects of one interpreter, each read once.
#[derive(Debug, Default)]
pub struct Codes {
    known: HashMap<u64, (Fingerprint, CodeId)>,
    list: Vec<Arc<Code>>,
    /// `PyCode_Type`, once one of its objects was seen.
    code_type: Option<u64>,
    /// How often the first one was none.
    strange: u32,
}

impl Codes {
    /// Every code object so far; [`CodeId`] is its place.
    pub fn list(&self) -> &[Arc<Code>] {
        &self.list
    }

    /// The code object of a frame that was read by the last look of this interpreter.
    ///
    /// With `trust` a known one is not read again: a frame that was there at the look before has kept its code alive.
    ///
    /// # Errors
    ///
    /// [`ReadError::Torn`] where the code object changed meanwhile or there is no room for it, [`ReadError::UnknownLayout`] where it is none,
    /// [`ReadError::Gone`] and [`ReadError::Closed`] where the memory cannot be read.
    pub fn identify(
        &mut self,
        memory: &dyn Memory,
        interpreter: &mut Interpreter,
        frame: &FrameRead,
        trust: bool,
    ) -> Result<CodeId, ReadError> {
        let known = self.known.get(&frame.code).copied();
        if let Some((_, id)) = known.filter(|_| trust) {
            return Ok(id);
        }
        let layout = *interpreter.layout();
        let copies = &mut interpreter.copies;
        let object = copies.get(memory, frame.code, layout.code_bytes())?;
        let kind = word(object, layout.object_type);
        let fingerprint = Fingerprint {
            name: word(object, layout.code_name),
            file: word(object, layout.code_file),
            lines: word(object, layout.code_lines),
            first_line: int(object, layout.code_first_line),
            // To 3.10 a pointer to them; from 3.11 how many there are.
            instructions: if layout.instructions_are_inline {
                word(object, layout.object_size)
            } else {
                word(object, layout.code_instructions)
            },
        };
        self.check_type(memory, copies, &layout, kind)?;
        if let Some((_, id)) = known.filter(|(seen, _)| *seen == fingerprint) {
            return Ok(id);
        }
        if self.list.len() >= CODES_MAX {
            return Err(ReadError::Torn);
        }
        let mut code = read_code(memory, copies, &layout, frame.code, fingerprint)?;
        let texts = KEPT.take(code.name.len() + code.file.len() + size_of::<Code>(), BYTES_MAX).ok_or(ReadError::Torn)?;
        let lines = KEPT.take(code.lines.len(), BYTES_WITH_LINES_MAX);
        if lines.is_none() {
            code.lines = Vec::new();
            code.lacks_lines = true;
        }
        code.kept = [Some(texts), lines];
        let id = CodeId(u32::try_from(self.list.len()).map_err(|_| ReadError::Torn)?);
        self.list.push(Arc::new(code));
        self.known.insert(frame.code, (fingerprint, id));
        Ok(id)
    }

    /// Whether this is the type of code objects. The first one is known by its name.
    fn check_type(&mut self, memory: &dyn Memory, copies: &mut Copies, layout: &Layout, kind: u64) -> Result<(), ReadError> {
        match self.code_type {
            Some(known) if known == kind => Ok(()),
            Some(_) => Err(ReadError::Torn),
            None => {
                let name = copies.word(memory, kind.wrapping_add(layout.type_name))?;
                let is_code = copies.get(memory, name, 5)? == b"code\0";
                self.code_type = is_code.then_some(kind);
                self.strange += u32::from(!is_code);
                match is_code {
                    true => Ok(()),
                    // Something else has taken the place of a frame meanwhile.
                    false if self.strange < STRANGE_MAX => Err(ReadError::Torn),
                    false => Err(ReadError::UnknownLayout(layout.version)),
                }
            }
        }
    }
}

fn read_code(memory: &dyn Memory, copies: &mut Copies, layout: &Layout, address: u64, parts: Fingerprint) -> Result<Code, ReadError> {
    let name = read_text(memory, copies, layout, parts.name)?;
    let file = read_text(memory, copies, layout, parts.file)?;
    let bytes = copies.word(memory, parts.lines.wrapping_add(layout.object_size))?;
    let lacks_lines = bytes > LINES_BYTES_MAX;
    let lines = match layout.line_table {
        // It does not say where it ends: all that is behind its beginning would seem to be of one line.
        LineTable::Increments if lacks_lines => Vec::new(),
        _ => copies.get(memory, parts.lines.wrapping_add(layout.bytes_data), bytes.min(LINES_BYTES_MAX))?.to_vec(),
    };
    let instructions = if layout.instructions_are_inline {
        // Counted in units of two bytes.
        let start = address.wrapping_add(layout.code_instructions);
        start..start.saturating_add(parts.instructions.saturating_mul(2).min(INSTRUCTIONS_BYTES_MAX))
    } else {
        let bytes = copies.word(memory, parts.instructions.wrapping_add(layout.object_size))?.min(INSTRUCTIONS_BYTES_MAX);
        let start = parts.instructions.wrapping_add(layout.bytes_data);
        start..start.saturating_add(bytes)
    };
    Ok(Code {
        name,
        file,
        instructions,
        lacks_lines,
        first_line: parts.first_line,
        lines,
        line_table: layout.line_table,
        kept: [None, None],
    })
}

/// A `str`. Its state is a set of bits: 2 to 4 say how many bytes a character takes, 5 that the characters follow the head, 6 that
/// they are ASCII.
fn read_text(memory: &dyn Memory, copies: &mut Copies, layout: &Layout, address: u64) -> Result<String, ReadError> {
    let head = copies.get(memory, address, layout.text_state.max(layout.text_length) + 8)?;
    let length = word(head, layout.text_length).min(TEXT_LENGTH_MAX);
    let state = int(head, layout.text_state);
    let (character_bytes, is_compact, is_ascii) = ((state >> 2) & 7, state & 1 << 5 != 0, state & 1 << 6 != 0);
    if !is_compact {
        // Strings of code objects are made by the compiler, which makes none of these.
        return Err(ReadError::Torn);
    }
    let start = address.wrapping_add(if is_ascii { layout.ascii_head } else { layout.compact_head });
    let character = |number: u32| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    Ok(match character_bytes {
        1 => copies.get(memory, start, length)?.iter().map(|byte| char::from(*byte)).collect(),
        2 => {
            let units = copies.get(memory, start, length * 2)?.chunks_exact(2);
            units.map(|unit| character(u32::from(u16::from_le_bytes([unit[0], unit[1]])))).collect()
        }
        4 => {
            let units = copies.get(memory, start, length * 4)?.chunks_exact(4);
            units.map(|unit| character(u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]))).collect()
        }
        _ => return Err(ReadError::Torn),
    })
}
