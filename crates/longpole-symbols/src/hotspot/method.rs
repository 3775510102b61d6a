//! Names and lines of methods.
//!
//! The lines of a method follow its bytecodes, as differences: a byte holds 5 bits of bytecodes and 3 bits of lines, and 255 says that two
//! compressed numbers follow.
//!
//! ```text
//! 29 52 00          bytecode 5 is in line 1, bytecode 15 in line 3
//! ```

use super::layout::JvmLayout;
use super::process_bytes::{count, fills, object, word_at};
use super::scopes::Numbers;
use crate::memory::{Memory, half, int, word};

/// Most bytes of a name that are read.
const NAME_BYTES_MAX: usize = 1024;

/// Most bytes of a table of lines: a method has 64 KiB of bytecodes.
const LINES_BYTES_MAX: u64 = 64 << 10;

/// The flag of a method that has a table of lines.
const HAS_LINES: u16 = 1;

/// What follows a byte that holds no difference.
const ESCAPE: u8 = 0xff;

/// A method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Method {
    /// Its part that does not change.
    pub(super) constant: u64,
    /// Where its bytecodes begin, and how many bytes they have.
    pub(super) code: u64,
    pub(super) code_bytes: u64,
    pub(super) name: String,
    /// The name of its source file.
    pub(super) file: String,
    /// The table of its lines, as the machine has it: its rows would take eight times as many bytes.
    lines: Box<[u8]>,
    has_zeroes: bool,
}

/// The method at an address; `None` if none is there.
pub(super) fn read(memory: &dyn Memory, layout: &JvmLayout, address: u64) -> Option<Method> {
    if address == 0 || !address.is_multiple_of(8) {
        return None;
    }
    let constant = word_at(memory, address.checked_add(layout.method_const)?)?;
    if constant == 0 || !constant.is_multiple_of(8) {
        return None;
    }
    let header = object(memory, constant, layout.const_bytes)?;
    let pool = word(&header, layout.const_pool).filter(|pool| *pool != 0 && pool.is_multiple_of(8))?;
    let pool_header = object(memory, pool, layout.pool_bytes)?;
    let class = word(&pool_header, layout.pool_holder).filter(|class| *class != 0 && class.is_multiple_of(8))?;
    // The class has a pool whose holder it is: this one, or a later one where the class was redefined.
    let own_pool = word_at(memory, class.checked_add(layout.class_pool)?)?;
    if own_pool != pool && word_at(memory, own_pool.checked_add(layout.pool_holder)?)? != class {
        return None;
    }
    let length = count(&pool_header, layout.pool_length)?;
    let text = |index: u16| {
        let index = u64::from(index);
        let at = pool.checked_add(layout.pool_bytes)?.checked_add(index.checked_mul(8)?)?;
        (0 < index && index < length).then(|| symbol(memory, layout, word_at(memory, at)?)).flatten()
    };
    let name = text(half(&header, layout.const_name)?)?;
    let class = class_name(&symbol(memory, layout, word_at(memory, class.checked_add(layout.class_name)?)?)?);
    let file = layout.pool_source_file.and_then(|offset| text(half(&pool_header, offset)?)).unwrap_or_default();
    let code = constant.checked_add(layout.const_bytes)?;
    let code_bytes = u64::from(half(&header, layout.const_code_bytes)?);
    let all_bytes = u64::try_from(int(&header, layout.const_words)?).ok()?.checked_mul(8)?;
    let lines_bytes = all_bytes.checked_sub(layout.const_bytes + code_bytes)?.min(LINES_BYTES_MAX);
    let has_lines = half(&header, layout.const_flags)? & HAS_LINES != 0;
    let lines = has_lines.then(|| object(memory, code.checked_add(code_bytes)?, lines_bytes)).flatten();
    let has_zeroes = layout.has_zeroes;
    let lines = lines.map(|bytes| bytes[..table_bytes(&bytes, has_zeroes)].into()).unwrap_or_default();
    Some(Method { constant, code, code_bytes, name: format!("{class}.{name}"), file, lines, has_zeroes })
}

/// A text of the machine.
fn symbol(memory: &dyn Memory, layout: &JvmLayout, address: u64) -> Option<String> {
    // Older machines mark a resolved entry of a pool in its lowest bit.
    let address = address & !1;
    let length = usize::from(half(&object(memory, address.checked_add(layout.symbol_length)?, 2)?, 0)?).min(NAME_BYTES_MAX);
    let mut bytes = vec![0; length];
    (length > 0 && fills(memory, address.checked_add(layout.symbol_text)?, &mut bytes))
        .then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A class as Java prints it, without the numbers that a hidden class has in one run and not in another.
///
/// `Orders$$Lambda$14/0x0000000800c03208` is `Orders$$Lambda`, as is `Orders$$Lambda+0x0000000800c03208`.
pub(super) fn class_name(text: &str) -> String {
    let hidden = text.find("/0x").or_else(|| text.find("+0x"));
    let mut name = hidden.map_or(text, |at| &text[..at]);
    if let Some(at) = name.find("$$Lambda") {
        name = &name[..at + "$$Lambda".len()];
    }
    name.replace('/', ".")
}

/// The rows of a table of lines: from which bytecode on which line holds.
pub(super) struct Rows<'a> {
    numbers: Numbers<'a>,
    code: i32,
    line: i32,
}

impl<'a> Rows<'a> {
    pub(super) fn new(bytes: &'a [u8], has_zeroes: bool) -> Rows<'a> {
        Rows { numbers: Numbers::new(bytes, 0, has_zeroes), code: 0, line: 0 }
    }
}

impl Iterator for Rows<'_> {
    type Item = (i32, u32);

    fn next(&mut self) -> Option<(i32, u32)> {
        let byte = self.numbers.byte().filter(|byte| *byte != 0)?;
        let (more_code, more_lines) = match byte {
            ESCAPE => (self.numbers.signed()?, self.numbers.signed()?),
            _ => (i32::from(byte >> 3), i32::from(byte & 7)),
        };
        self.code = self.code.wrapping_add(more_code);
        self.line = self.line.wrapping_add(more_lines);
        Some((self.code, u32::try_from(self.line).unwrap_or(0)))
    }
}

/// How many of these bytes are the table of lines. Other parts of the method follow.
fn table_bytes(bytes: &[u8], has_zeroes: bool) -> usize {
    let mut rows = Rows::new(bytes, has_zeroes);
    while rows.next().is_some() {}
    rows.numbers.at()
}

impl Method {
    /// The line of a bytecode, 0 where it is unknown.
    pub(super) fn line(&self, code: Option<i32>) -> u32 {
        // A negative one stands for the beginning of the method.
        let Some(code) = code.map(|code| code.max(0)) else { return 0 };
        let rows = Rows::new(&self.lines, self.has_zeroes).filter(|(start, _)| *start <= code);
        // The last one of a bytecode counts.
        rows.max_by_key(|(start, _)| *start).map_or(0, |(_, line)| line)
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.lines.len() + self.name.len() + self.file.len()
    }

    /// The bytecode at an address.
    pub(super) fn bytecode_at(&self, address: u64) -> Option<i32> {
        let offset = address.checked_sub(self.code).filter(|offset| *offset < self.code_bytes)?;
        i32::try_from(offset).ok()
    }
}
