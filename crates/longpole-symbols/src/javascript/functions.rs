//! The functions of a process that are known, by the pointers to them that its frames have.

use std::sync::Arc;

use super::heap::{Heap, Types, address, word};
use super::layout::{HeapLayout, WORD_BYTES};
use super::lines::Lines;
use super::read_function::{Found, Marks, ScriptFunction, read};
use crate::kept::{Kept, Room};
use crate::memory::{Memory, MemoryPart, Unreadable};
use longpole_model::fast_hash::FastMap;

/// Most functions of a process to keep: 20 MB. A full table is emptied.
const FUNCTIONS_MAX: usize = 1 << 16;

/// Most bytes of functions to keep, of all processes. A program can give each of them a name of 768 bytes and a file of 3,072.
const BYTES_MAX: u64 = 64 << 20;

static KEPT: Room = Room::new();

/// What a pointer in a frame leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookUp {
    /// A function of a script.
    Function(Arc<ScriptFunction>),
    /// A function of V8 itself, which has a symbol.
    Builtin,
    /// Unknown.
    Missing(Missing),
}

/// Why a function is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// The pointer leads to no function: the collector has moved it since the sample.
    Moved,
    /// The process is gone.
    Gone,
    /// Its memory may not be read.
    Closed,
    /// Reading more functions would take too much CPU time.
    Busy,
}

impl From<Unreadable> for Missing {
    fn from(why: Unreadable) -> Missing {
        match why {
            Unreadable::Gone => Missing::Gone,
            Unreadable::Closed => Missing::Closed,
        }
    }
}

struct KnownFunction {
    marks: Marks,
    /// `None` for those of V8 itself.
    function: Option<Arc<ScriptFunction>>,
    _kept: Kept,
}

impl KnownFunction {
    fn look_up(&self) -> LookUp {
        found(self.function.as_ref())
    }
}

fn found(function: Option<&Arc<ScriptFunction>>) -> LookUp {
    function.map_or(LookUp::Builtin, |function| LookUp::Function(Arc::clone(function)))
}

/// The functions of one process.
#[derive(Default)]
pub struct Functions {
    known: FastMap<u64, KnownFunction>,
    types: Types,
    lines: Lines,
    // Kept for their memory.
    parts: Vec<MemoryPart>,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functions").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Functions {
    /// What each of these pointers leads to, in their order. Functions that are known take one copy of their words together; `may_read` says
    /// whether another one may be read, which takes about 15 copies.
    pub fn look_up(
        &mut self,
        memory: &dyn Memory,
        layout: &HeapLayout,
        pointers: &[u64],
        mut read_new: impl FnMut(&mut dyn FnMut() -> LookUp) -> LookUp,
    ) -> Vec<LookUp> {
        let unchanged = self.unchanged(memory, layout, pointers);
        let of_pointer = |(pointer, is_known): (&u64, bool)| match self.known.get(pointer) {
            Some(known) if is_known => known.look_up(),
            // Another one may have led there a moment ago: it is not read twice.
            _ => read_new(&mut || self.read(memory, layout, *pointer)),
        };
        match unchanged {
            Ok(unchanged) => pointers.iter().zip(unchanged).map(of_pointer).collect(),
            // Functions that are known held until it ended.
            Err(error) => {
                let missing = LookUp::Missing(error.into());
                pointers.iter().map(|pointer| self.known.get(pointer).map_or_else(|| missing.clone(), KnownFunction::look_up)).collect()
            }
        }
    }

    /// For each pointer, whether its function is known and has its marks still.
    fn unchanged(&mut self, memory: &dyn Memory, layout: &HeapLayout, pointers: &[u64]) -> Result<Vec<bool>, Unreadable> {
        self.parts.clear();
        self.bytes.clear();
        let (first, last) = (layout.shared_name.min(layout.shared_script), layout.shared_name.max(layout.shared_script));
        let lengths = [layout.function_shared + WORD_BYTES, last + WORD_BYTES - first];
        for pointer in pointers {
            let Some(known) = self.known.get(pointer) else { continue };
            let objects = [address(*pointer), address(known.marks.shared).and_then(|shared| shared.checked_add(first))];
            for (address, length) in objects.into_iter().zip(lengths) {
                let place = self.bytes.len()..self.bytes.len() + usize::try_from(length).unwrap_or(0);
                self.bytes.resize(place.end, 0);
                self.parts.push(MemoryPart { address: address.unwrap_or(0), place, is_there: false });
            }
        }
        if self.parts.is_empty() {
            return Ok(vec![false; pointers.len()]);
        }
        memory.copy(&mut self.parts, &mut self.bytes)?;
        let mut pairs = self.parts.chunks_exact(2);
        let mut has_marks = |known: &KnownFunction| {
            let Some([function, shared]) = pairs.next() else { return false };
            if !function.is_there || !shared.is_there {
                return false;
            }
            let (function, shared) = (&self.bytes[function.place.clone()], &self.bytes[shared.place.clone()]);
            let now = Marks {
                map: word(function, 0),
                shared: word(function, layout.function_shared),
                name: word(shared, layout.shared_name - first),
                script: word(shared, layout.shared_script - first),
            };
            now == known.marks
        };
        Ok(pointers.iter().map(|pointer| self.known.get(pointer).is_some_and(&mut has_marks)).collect())
    }

    fn read(&mut self, memory: &dyn Memory, layout: &HeapLayout, pointer: u64) -> LookUp {
        let mut heap = Heap::new(memory, layout, &mut self.types);
        let (marks, function) = match read(&mut heap, &mut self.lines, pointer) {
            Ok(Found::Function(marks, function)) => (marks, Some(Arc::new(function))),
            Ok(Found::Builtin(marks)) => (marks, None),
            Ok(Found::Nothing) => {
                // A map that was moved may have left another one in its place.
                self.types.clear();
                return LookUp::Missing(Missing::Moved);
            }
            Err(error) => return LookUp::Missing(error.into()),
        };
        if self.known.len() >= FUNCTIONS_MAX {
            self.known.clear();
        }
        let found = found(function.as_ref());
        let text = function.as_ref().map_or(0, |function| function.name.len() + function.file.len());
        // If there is no room, even without what this process has, it is read again the next time.
        if let Some(kept) = self.room(text + size_of::<ScriptFunction>() + size_of::<KnownFunction>()) {
            self.known.insert(pointer, KnownFunction { marks, function, _kept: kept });
        }
        found
    }

    fn room(&mut self, bytes: usize) -> Option<Kept> {
        if let Some(kept) = KEPT.take(bytes, BYTES_MAX) {
            return Some(kept);
        }
        self.known.clear();
        KEPT.take(bytes, BYTES_MAX)
    }
}
