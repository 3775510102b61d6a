//! Objects of an interpreter and what they refer to, as far as the way from an event loop to its coroutines leads through them.
//!
//! Where the C structs of `asyncio` have a field differs by version and is in no header. So a field is found by the type of the object that it refers
//! to: the word of a task that is the address of a coroutine is the one that it runs. A word that only looks like an address leads to no type with a
//! known name.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::copies::{int, word};
use super::interpreter::{FrameRead, parse_frame};
use super::layout::{
    Attributes, CoroutineFrame, DICT_KEYS, DICT_VALUES, FIRST, LIST_ITEMS, Layout, SET_MASK, SET_TABLE, STATE_BEFORE_FRAME, TUPLE_ITEMS,
    TYPE_BYTES, TYPE_FLAGS, Top,
};
use super::read_error::ReadError;
use crate::memory::{Memory, MemoryPart};

/// Most types to remember: the way from a loop to its coroutines meets 20 to 40.
const TYPES_MAX: usize = 4096;

/// Most bytes of the name of a type, and fewer if it lies at the end of a page.
const NAME_BYTES: [u64; 3] = [40, 16, 8];

/// Most bytes of an object: a task has 200 to 300.
const OBJECT_BYTES_MAX: u64 = 512;

/// Most items of a collection, and of those most that are entries of a table: tasks that are waited for together.
const ITEMS_MAX: u64 = 1024;

/// Most bytes that are read in one search: 20 to 50 KB lead to the coroutine of a small program.
const SEARCH_BYTES_MAX: usize = 1 << 20;

/// Most parts that are read in one search: each may need a call of its own if it is not there.
const PARTS_MAX: usize = 2048;

/// Most words of objects that one search takes, as many as those bytes have. All fields of an object can refer to one collection, whose bytes are
/// copied once, and whose items would be taken each time.
const WORDS_MAX: u64 = SEARCH_BYTES_MAX as u64 / 8;

/// Bytes that are read of an object before its type is known: most have no more.
const OBJECT_BYTES: u64 = 256;

/// Most pieces that begin before an address and may hold it.
const OVERLAPPING_MAX: usize = 4;

/// Bytes with its type.
const HEAD_BYTES: u64 = 16;

/// Memory is there or not in pages of 4,096 bytes, or of a multiple.
const PAGE_BYTES: u64 = 4096;

/// Most attributes of an instance: an event loop has about 30.
const ATTRIBUTES_MAX: u64 = 128;

/// Most values of a frame.
const VALUES_MAX: u64 = 256;

/// Objects lie above the first page and in the half of the addresses that is the user's, at multiples of 8 bytes.
const LOWEST: u64 = 4096;
const HIGHEST: u64 = 1 << 47;

/// Flags of a type: instances have their attributes beside them (from 3.11), and right behind their head (from 3.13).
const HAS_MANAGED_DICT: u64 = 1 << 4;
const HAS_INLINE_VALUES: u64 = 1 << 2;

/// How far before an instance these words lie.
const VALUES_BEFORE: u64 = 32;
const DICT_BEFORE: u64 = 24;

/// What an object is, by the name of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ObjectKind {
    Task,
    Future,
    /// What `gather` returns.
    Gathering,
    /// Something with a frame of its own: a coroutine or a generator.
    Coroutine,
    /// What a coroutine awaits: it stands for the first object that it refers to.
    Awaitable,
    /// The same, and that is a future.
    FutureAwaitable,
    /// An entry of the heap of timers.
    Timer,
    /// What a future calls to let a task go on.
    Wakeup,
    Float,
    List,
    Tuple,
    Set,
    Dict,
    Cell,
    /// Something else, such as an instance of a class.
    Other,
}

impl ObjectKind {
    fn of(name: &[u8]) -> ObjectKind {
        match name {
            b"_asyncio.Task" => ObjectKind::Task,
            b"_asyncio.Future" => ObjectKind::Future,
            b"_GatheringFuture" => ObjectKind::Gathering,
            b"coroutine" | b"generator" | b"async_generator" => ObjectKind::Coroutine,
            b"coroutine_wrapper" | b"async_generator_asend" | b"async_generator_athrow" | b"anext_awaitable" => ObjectKind::Awaitable,
            b"_asyncio.FutureIter" => ObjectKind::FutureAwaitable,
            b"TimerHandle" => ObjectKind::Timer,
            b"TaskWakeupMethWrapper" | b"_asyncio.TaskWakeupMethWrapper" | b"builtin_function_or_method" => ObjectKind::Wakeup,
            b"float" => ObjectKind::Float,
            b"list" => ObjectKind::List,
            b"tuple" => ObjectKind::Tuple,
            b"set" => ObjectKind::Set,
            b"dict" => ObjectKind::Dict,
            b"cell" => ObjectKind::Cell,
            _ => ObjectKind::Other,
        }
    }
}

/// What is read of a type.
#[derive(Debug, Clone, Copy)]
struct Type {
    kind: ObjectKind,
    /// How many bytes an instance has.
    bytes: u64,
    flags: u64,
}

/// What was learned about the objects of one interpreter.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// The types that were met, by address.
    known: HashMap<u64, Option<Type>>,
    /// Where an object of a type last had one of a kind among its words.
    places: HashMap<(u64, ObjectKind), usize>,
}

/// Pieces of memory that one search has read.
#[derive(Debug, Default)]
struct Pieces {
    by_start: BTreeMap<u64, Range<usize>>,
    bytes: Vec<u8>,
}

impl Pieces {
    fn get(&self, address: u64, bytes: u64) -> Option<&[u8]> {
        let length = usize::try_from(bytes).ok()?;
        self.by_start.range(..=address).rev().take(OVERLAPPING_MAX).find_map(|(start, place)| {
            let from = usize::try_from(address - start).ok()?;
            self.bytes.get(place.clone())?.get(from..)?.get(..length)
        })
    }
}

/// Reads objects of one interpreter for one search.
pub(super) struct Objects<'a> {
    memory: &'a dyn Memory,
    pub(super) layout: Layout,
    types: &'a mut Types,
    pieces: Pieces,
    /// How many parts may still be read.
    parts_left: usize,
    /// How many words may still be taken.
    words_left: u64,
}

fn is_address(word: u64) -> bool {
    word.is_multiple_of(8) && (LOWEST..HIGHEST).contains(&word)
}

impl<'a> Objects<'a> {
    pub(super) fn new(memory: &'a dyn Memory, layout: Layout, types: &'a mut Types) -> Objects<'a> {
        Objects { memory, layout, types, pieces: Pieces::default(), parts_left: PARTS_MAX, words_left: WORDS_MAX }
    }

    /// Reads what lies at these addresses at once, as far as it has not been read: a call and each of its parts take longer than to copy some more
    /// bytes, so what lies in one page is one part. The rest of a larger object is read when it is needed.
    pub(super) fn fetch(&mut self, addresses: impl Iterator<Item = u64>) -> Result<(), ReadError> {
        let mut missing: Vec<u64> = addresses.filter(|address| is_address(*address)).collect();
        missing.retain(|address| self.pieces.get(*address, HEAD_BYTES).is_none());
        missing.sort_unstable();
        let mut places: Vec<Range<u64>> = Vec::new();
        for address in missing {
            // What lies in another page may not be there.
            let end = address + OBJECT_BYTES.min(PAGE_BYTES - address % PAGE_BYTES);
            match places.last_mut() {
                Some(last) if last.start / PAGE_BYTES == address / PAGE_BYTES => last.end = end,
                _ => places.push(address..end),
            }
        }
        let mut parts = Vec::new();
        let mut end = self.pieces.bytes.len();
        for place in places.into_iter().take(self.parts_left) {
            let start = end;
            let bytes = usize::try_from(place.end - place.start).unwrap_or(usize::MAX);
            let Some(room) = start.checked_add(bytes).filter(|end| *end <= SEARCH_BYTES_MAX) else { break };
            end = room;
            parts.push(MemoryPart { address: place.start, place: start..end, is_there: false });
        }
        self.copy(parts, end)
    }

    fn copy(&mut self, mut parts: Vec<MemoryPart>, end: usize) -> Result<(), ReadError> {
        if !parts.is_empty() {
            self.parts_left = self.parts_left.saturating_sub(parts.len());
            self.pieces.bytes.resize(end, 0);
            self.memory.copy(&mut parts, &mut self.pieces.bytes)?;
            let found = parts.into_iter().filter(|part| part.is_there);
            self.pieces.by_start.extend(found.map(|part| (part.address, part.place)));
        }
        Ok(())
    }

    /// Bytes at an address; `None` if they are not there. Text may lie at any address, so this is not checked.
    fn bytes(&mut self, address: u64, bytes: u64) -> Result<Option<&[u8]>, ReadError> {
        if self.pieces.get(address, bytes).is_none() {
            let start = self.pieces.bytes.len();
            let more = bytes.max(OBJECT_BYTES.min(PAGE_BYTES - address % PAGE_BYTES));
            let end = usize::try_from(more).ok().and_then(|bytes| start.checked_add(bytes)).filter(|end| *end <= SEARCH_BYTES_MAX);
            let Some(end) = end.filter(|_| self.parts_left > 0) else { return Ok(None) };
            self.copy(vec![MemoryPart { address, place: start..end, is_there: false }], end)?;
        }
        Ok(self.pieces.get(address, bytes))
    }

    fn word(&mut self, address: u64) -> Result<u64, ReadError> {
        Ok(self.bytes(address, 8)?.map_or(0, |bytes| word(bytes, 0)))
    }

    /// The words of a table that are addresses; empty if it is not there, or too many were taken before.
    fn addresses(&mut self, address: u64, number: u64) -> Result<Vec<u64>, ReadError> {
        let Some(left) = self.words_left.checked_sub(number) else { return Ok(Vec::new()) };
        self.words_left = left;
        let bytes = self.bytes(address, number.saturating_mul(8))?.unwrap_or_default();
        let words = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        Ok(words.filter(|word| is_address(*word)).collect())
    }

    /// The type of an object; `None` if there is no object.
    fn type_of(&mut self, object: u64) -> Result<Option<Type>, ReadError> {
        if !is_address(object) {
            return Ok(None);
        }
        let layout = self.layout;
        let address = self.word(object.wrapping_add(layout.object_type))?;
        if let Some(known) = self.types.known.get(&address) {
            return Ok(*known);
        }
        let mut found = None;
        if is_address(address)
            && let Some(head) = self.bytes(address, TYPE_FLAGS + 8)?
        {
            let (at, bytes, flags) = (word(head, layout.type_name), word(head, TYPE_BYTES).min(OBJECT_BYTES_MAX), word(head, TYPE_FLAGS));
            for length in NAME_BYTES {
                if let Some(name) = self.bytes(at, length)? {
                    let kind = ObjectKind::of(name.split(|byte| *byte == 0).next().unwrap_or_default());
                    found = Some(Type { kind, bytes, flags });
                    break;
                }
            }
        }
        if self.types.known.len() >= TYPES_MAX {
            self.types.known.clear();
        }
        // What is no type is remembered, too: it is met again and again, as a pointer to something else in the same place.
        self.types.known.insert(address, found);
        Ok(found)
    }

    /// What an object is; `None` if there is no object.
    pub(super) fn kind(&mut self, object: u64) -> Result<Option<ObjectKind>, ReadError> {
        Ok(self.type_of(object)?.map(|found| found.kind))
    }

    /// Which of these are objects of this kind.
    pub(super) fn of_kind(&mut self, words: &[u64], kind: ObjectKind) -> Result<Vec<u64>, ReadError> {
        self.fetch(words.iter().copied())?;
        let mut found = Vec::new();
        for object in words {
            if self.kind(*object)? == Some(kind) {
                found.push(*object);
            }
        }
        Ok(found)
    }

    /// The first of these that is of this kind. They are those of an object; most often it is in the same place as in others of its type.
    pub(super) fn first_of_kind(&mut self, object: u64, words: &[u64], kind: ObjectKind) -> Result<Option<u64>, ReadError> {
        let key = (self.word(object.wrapping_add(self.layout.object_type))?, kind);
        if let Some(found) = self.types.places.get(&key).and_then(|place| words.get(*place).copied())
            && self.kind(found)? == Some(kind)
        {
            return Ok(Some(found));
        }
        let found = self.of_kind(words, kind)?.first().copied();
        if let Some(place) = found.and_then(|found| words.iter().position(|word| *word == found)) {
            if self.types.places.len() >= TYPES_MAX {
                self.types.places.clear();
            }
            self.types.places.insert(key, place);
        }
        Ok(found)
    }

    /// The same among the words of the object itself.
    pub(super) fn field(&mut self, object: u64, kind: ObjectKind) -> Result<Option<u64>, ReadError> {
        let fields = self.fields(object)?;
        self.first_of_kind(object, &fields, kind)
    }

    /// The words of an object itself that are addresses.
    pub(super) fn fields(&mut self, object: u64) -> Result<Vec<u64>, ReadError> {
        let Some(found) = self.type_of(object)? else { return Ok(Vec::new()) };
        self.addresses(object.wrapping_add(FIRST), (found.bytes / 8).saturating_sub(FIRST / 8))
    }

    /// The first object that an object refers to.
    pub(super) fn first(&mut self, object: u64) -> Result<u64, ReadError> {
        self.word(object.wrapping_add(FIRST))
    }

    /// The number of a `float`.
    pub(super) fn number(&mut self, float: u64) -> Result<f64, ReadError> {
        Ok(f64::from_bits(self.first(float)?))
    }

    /// The items of a collection; the keys and values of a `dict`, too. Empty for anything else.
    pub(super) fn items(&mut self, object: u64, most: u64) -> Result<Vec<u64>, ReadError> {
        let size_at = self.layout.object_size;
        let most = most.min(ITEMS_MAX);
        match self.kind(object)? {
            Some(ObjectKind::List) => {
                let Some(head) = self.bytes(object, LIST_ITEMS + 8)? else { return Ok(Vec::new()) };
                let (table, size) = (word(head, LIST_ITEMS), word(head, size_at));
                self.addresses(table, size.min(most))
            }
            Some(ObjectKind::Tuple) => {
                let size = self.word(object.wrapping_add(size_at))?;
                self.addresses(object.wrapping_add(TUPLE_ITEMS), size.min(most))
            }
            Some(ObjectKind::Set) => {
                let Some(head) = self.bytes(object, SET_TABLE + 8)? else { return Ok(Vec::new()) };
                // An item and its hash; the mask is one less than their number.
                let (table, mask) = (word(head, SET_TABLE), word(head, SET_MASK));
                self.addresses(table, mask.saturating_add(1).min(most).saturating_mul(2))
            }
            Some(ObjectKind::Dict) => self.entries(object),
            _ => Ok(Vec::new()),
        }
    }

    /// Keys and values of a `dict`, or its values alone if other dicts have the same keys.
    ///
    /// ```text
    /// to 3.10     refcount | size | lookup | usable | used | indices: 1, 2 or 4 bytes for each of size | entries: hash, key, value
    /// from 3.11   refcount | log of size, log of bytes of indices, kind | usable | used | indices      | entries: the same, or key, value
    /// ```
    fn entries(&mut self, dict: u64) -> Result<Vec<u64>, ReadError> {
        let attributes = self.layout.attributes;
        let Some(head) = self.bytes(dict, DICT_VALUES + 8)? else { return Ok(Vec::new()) };
        let (keys, values) = (word(head, DICT_KEYS), word(head, DICT_VALUES));
        let Some(table) = self.bytes(keys, 40)? else { return Ok(Vec::new()) };
        let (used, entries, entry_words) = if attributes == Attributes::Dict {
            let size = word(table, 8);
            let index_bytes = match size {
                ..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            };
            (word(table, 32), size.saturating_mul(index_bytes).saturating_add(40), 3)
        } else {
            let [_, index_bytes, kind, ..] = word(table, 8).to_le_bytes();
            let indices = 1u64.checked_shl(index_bytes.into()).unwrap_or(u64::MAX);
            (word(table, 24), indices.saturating_add(32), if kind == 0 { 3 } else { 2 })
        };
        let used = used.min(ATTRIBUTES_MAX);
        if values == 0 {
            return self.addresses(keys.saturating_add(entries), used * entry_words);
        }
        self.addresses(if attributes == Attributes::Inline { values.wrapping_add(8) } else { values }, used)
    }

    /// The values of the attributes of an instance, and perhaps their names.
    pub(super) fn attributes(&mut self, object: u64) -> Result<Vec<u64>, ReadError> {
        let Some(found) = self.type_of(object)? else { return Ok(Vec::new()) };
        let attributes = self.layout.attributes;
        if attributes == Attributes::Dict || found.flags & HAS_MANAGED_DICT == 0 {
            return match self.field(object, ObjectKind::Dict)? {
                Some(dict) => self.entries(dict),
                None => Ok(Vec::new()),
            };
        }
        self.fetch(std::iter::once(object.wrapping_sub(VALUES_BEFORE)))?;
        let dict = self.word(object.wrapping_sub(DICT_BEFORE))?;
        match attributes {
            Attributes::ValuesOrDictBefore => {
                let values = self.word(object.wrapping_sub(VALUES_BEFORE))?;
                if values == 0 { self.entries(dict) } else { self.values(values) }
            }
            Attributes::MarkedBefore if dict & 1 == 1 => self.values(dict.wrapping_add(1)),
            Attributes::Inline if dict == 0 && found.flags & HAS_INLINE_VALUES != 0 => {
                let at = object.wrapping_add(found.bytes);
                let [capacity, ..] = self.word(at)?.to_le_bytes();
                self.addresses(at.wrapping_add(8), u64::from(capacity).min(ATTRIBUTES_MAX))
            }
            _ => self.entries(dict),
        }
    }

    /// Values of attributes (3.11 and 3.12). In front of them lie a byte that is not needed, their number, and where each lies in the order in which
    /// they came.
    fn values(&mut self, values: u64) -> Result<Vec<u64>, ReadError> {
        let Some(before) = self.bytes(values.wrapping_sub(8), 8)? else { return Ok(Vec::new()) };
        let [.., first, number, _] = before[..] else { return Ok(Vec::new()) };
        // There are at most 30; places beyond the last one that is used belong to others.
        let mut last = if number > 0 { first } else { return Ok(Vec::new()) };
        if number > 1 {
            let more = u64::from(number) - 1;
            let front = more.next_multiple_of(8);
            let places = self.bytes(values.wrapping_sub(8).wrapping_sub(front), front + 8)?.unwrap_or_default();
            let places = places.len().checked_sub(2 + usize::from(number)).and_then(|start| places.get(start..places.len() - 2));
            last = places.and_then(|places| places.iter().max()).copied().unwrap_or(last);
        }
        self.addresses(values, u64::from(last).saturating_add(1).min(ATTRIBUTES_MAX))
    }

    /// The first local variables of a frame.
    pub(super) fn first_locals(&mut self, frame: &FrameRead, number: u64) -> Result<Vec<u64>, ReadError> {
        let locals = frame.address.wrapping_add(self.layout.frame_locals);
        let mut found = Vec::new();
        for place in 0..number {
            found.push(self.word(locals.wrapping_add(place * 8))?);
        }
        Ok(found)
    }

    /// The values of a frame that is suspended: its variables, then what it computes with; last what it waits for.
    pub(super) fn frame_values(&mut self, frame: u64) -> Result<Vec<u64>, ReadError> {
        let layout = self.layout;
        let locals = frame.wrapping_add(layout.frame_locals);
        let Some(head) = self.bytes(frame, layout.frame_locals)? else { return Ok(Vec::new()) };
        let count = |offset: u64| u64::try_from(int(head, offset)).unwrap_or(0);
        let number = match layout.frame_top {
            Top::Address { offset } => word(head, offset).saturating_sub(locals) / 8,
            Top::Depth { offset, start } => (word(head, start).saturating_sub(locals) / 8).saturating_add(count(offset)),
            Top::Count { offset } => count(offset),
        };
        if number > VALUES_MAX {
            return Ok(Vec::new());
        }
        self.addresses(locals, number)
    }

    /// Where the frame of a coroutine lies that is suspended.
    pub(super) fn coroutine_frame(&mut self, coroutine: u64) -> Result<Option<u64>, ReadError> {
        let frame = match self.layout.coroutine_frame {
            CoroutineFrame::Address { offset } => self.word(coroutine.wrapping_add(offset))?,
            CoroutineFrame::Within { offset } => {
                let at = offset - STATE_BEFORE_FRAME;
                // The word that has the state.
                let state = self.word(coroutine.wrapping_add(at - at % 8))?.to_le_bytes()[(at % 8) as usize];
                if state.cast_signed() < 0 { coroutine.wrapping_add(offset) } else { 0 }
            }
        };
        Ok(is_address(frame).then_some(frame))
    }

    /// The frame at an address, if there is one.
    pub(super) fn frame(&mut self, address: u64) -> Result<Option<FrameRead>, ReadError> {
        let layout = self.layout;
        let Some(object) = self.bytes(address, layout.frame_bytes())? else { return Ok(None) };
        Ok(parse_frame(&layout, address, object).ok().and_then(|(frame, _)| frame))
    }

    /// The coroutine that a task runs.
    pub(super) fn coroutine_of(&mut self, task: u64) -> Result<Option<u64>, ReadError> {
        if self.kind(task)? != Some(ObjectKind::Task) {
            return Ok(None);
        }
        self.field(task, ObjectKind::Coroutine)
    }
}
