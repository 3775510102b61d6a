//! A virtual machine whose frames are walked.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::code_cache::{self, Blob, Heap};
use super::layout::{HotSpotSymbols, JvmLayout};
use super::method::{self, Method};
use super::process_bytes::{fills, word_at};
use super::scopes::Inlined;
use super::step::{self, BYTECODE, CODE_BYTES, METHOD};
use crate::kept::{Kept, Room};
use crate::made_code::{MadeCaller, MadeCode, MadeFrame, MadeId, Stack};
use crate::memory::Memory;

/// Most pieces of code to remember: a large program has 30,000.
const BLOBS_MAX: usize = 1 << 16;

/// Most places of compiled code to remember.
const PLACES_MAX: usize = 1 << 17;

/// Most methods to remember.
const METHODS_MAX: usize = 1 << 16;

/// Most bytecodes of methods whose function and line are at hand.
const LINES_AT_HAND_MAX: usize = 1 << 17;

/// Most bytes of code, scopes, methods and places to remember, of all machines: those of a large program take 20 to 40 MB. A program can make
/// a method with a name of 65,535 bytes or as many lines, and as many of them as it likes.
const REMEMBERED_BYTES_MAX: u64 = 128 << 20;

static REMEMBERED: Room = Room::new();

/// Most functions and lines to number, and most bytes of them, of all machines: a function and line takes 100 to 200.
const FUNCTIONS_MAX: usize = 1 << 18;
const FUNCTIONS_BYTES_MAX: u64 = 128 << 20;

static FUNCTIONS: Room = Room::new();

/// For how long a piece of code, or a method, is believed to be there still.
const BELIEVED_NANOS: u64 = 100_000_000;

/// Most addresses without code to remember.
const MISSES_MAX: usize = 1 << 12;

/// The name of the interpreter's blob.
const INTERPRETER: &str = "Interpreter";

/// What stands in front of the name of code that is no method.
const STUB: &str = "jvm stub: ";

/// How names of code begin that have this name elsewhere: the machine's own list for `perf` has it.
const STUB_ROUTINES: &str = "StubRoutines";

/// A function that a machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JvmFunction {
    /// `Orders.callBank`.
    pub function: String,
    /// The name of its source file, empty where it is not said.
    pub file: String,
    /// The line, 0 where it is not said.
    pub line: u32,
}

struct Known<T> {
    what: T,
    /// When it was last found to be there.
    at: u64,
    /// Another one at the same place has another number.
    number: u32,
    /// `None` if there was no room for it: then it is the only thing that its machine remembers.
    _kept: Option<Kept>,
}

/// What is worked out of a piece of code, and the room that it takes.
type WithRoom<T> = (T, Kept);

/// A virtual machine.
pub struct Jvm {
    memory: Box<dyn Memory + Send>,
    layout: JvmLayout,
    heaps: Vec<Heap>,
    call_stub_return: u64,
    now: u64,
    blobs: BTreeMap<u64, Known<Blob>>,
    /// By blob.
    inlined: HashMap<u32, WithRoom<Option<Inlined>>>,
    /// Functions at a place of compiled code, by blob and address.
    places: HashMap<(u32, u64), WithRoom<Vec<MadeId>>>,
    methods: HashMap<u64, Known<Method>>,
    /// Addresses of no code, and when that was found.
    misses: HashMap<u64, u64>,
    /// The functions of bytecodes, by method and bytecode.
    at_hand: HashMap<(u32, Option<i32>), MadeId>,
    stubs: HashMap<String, MadeId>,
    numbers: HashMap<Arc<JvmFunction>, MadeId>,
    functions: Vec<WithRoom<Arc<JvmFunction>>>,
    next: u32,
}

impl std::fmt::Debug for Jvm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jvm").field("heaps", &self.heaps).finish_non_exhaustive()
    }
}

impl Jvm {
    /// The machine whose tables lie at these addresses of the process; `None` where they cannot be read, or say less than is needed: it may not
    /// have begun yet.
    pub fn attach(memory: Box<dyn Memory + Send>, symbols: &HotSpotSymbols) -> Option<Jvm> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let layout = JvmLayout::read(&*memory, symbols)?;
        let heaps = code_cache::heaps(&*memory, &layout).filter(|heaps| !heaps.is_empty())?;
        Some(Jvm {
            memory,
            layout,
            heaps,
            call_stub_return: 0,
            now: 0,
            blobs: BTreeMap::new(),
            inlined: HashMap::new(),
            places: HashMap::new(),
            methods: HashMap::new(),
            misses: HashMap::new(),
            at_hand: HashMap::new(),
            stubs: HashMap::new(),
            numbers: HashMap::new(),
            functions: Vec::new(),
            next: 0,
        })
    }

    /// The time that it is; what was read long before is read again.
    pub fn set_now(&mut self, nanos: u64) {
        self.now = nanos;
    }

    /// A function by its number.
    pub fn function(&self, id: MadeId) -> Option<&JvmFunction> {
        self.functions.get(id.0 as usize).map(|(function, _)| &**function)
    }

    /// Room for something to remember. If there is none, the machine forgets what it has; `None` if the others take all of it.
    fn room(&mut self, bytes: usize) -> Option<Kept> {
        if let Some(kept) = REMEMBERED.take(bytes, REMEMBERED_BYTES_MAX) {
            return Some(kept);
        }
        self.forget_code();
        self.forget_methods();
        REMEMBERED.take(bytes, REMEMBERED_BYTES_MAX)
    }

    fn forget_code(&mut self) {
        self.blobs.clear();
        self.inlined.clear();
        self.places.clear();
    }

    fn forget_methods(&mut self) {
        self.methods.clear();
        self.at_hand.clear();
    }

    fn next_number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// The start of the blob that holds an address.
    fn blob(&mut self, address: u64) -> Option<u64> {
        let now = self.now;
        let known = self.blobs.range_mut(..=address).next_back().filter(|(_, known)| known.what.range.contains(&address));
        if let Some((start, known)) = known {
            if now.saturating_sub(known.at) < BELIEVED_NANOS {
                return Some(*start);
            }
            known.at = now;
            match known.what.is_there(&*self.memory, &self.layout) {
                // The process has ended: it was there before.
                Some(true) | None => return Some(*start),
                Some(false) => {
                    let start = *start;
                    self.forget_blob(start);
                }
            }
        }
        if self.misses.get(&address).is_some_and(|at| now.saturating_sub(*at) < BELIEVED_NANOS) {
            return None;
        }
        let Some(blob) = code_cache::find(&*self.memory, &self.layout, &self.heaps, address) else {
            if self.misses.len() >= MISSES_MAX {
                self.misses.clear();
            }
            self.misses.insert(address, now);
            return None;
        };
        if self.blobs.len() >= BLOBS_MAX {
            self.forget_code();
        }
        // What lay there before is gone.
        let gone: Vec<u64> = self.blobs.range(blob.range.clone()).map(|(start, _)| *start).collect();
        gone.into_iter().for_each(|start| self.forget_blob(start));
        let (start, number) = (blob.range.start, self.next_number());
        let kept = self.room(blob.bytes() + size_of::<Known<Blob>>());
        self.blobs.insert(start, Known { what: blob, at: now, number, _kept: kept });
        Some(start)
    }

    fn forget_blob(&mut self, start: u64) {
        if let Some(known) = self.blobs.remove(&start) {
            self.inlined.remove(&known.number);
        }
    }

    /// The function that a method is, at a bytecode.
    fn function_of(&mut self, address: u64, bytecode: impl Fn(&Method) -> Option<i32>) -> Option<MadeId> {
        let now = self.now;
        let is_believed = match self.methods.get_mut(&address) {
            Some(known) if now.saturating_sub(known.at) < BELIEVED_NANOS => true,
            Some(known) => {
                known.at = now;
                let constant = word_at(&*self.memory, address.checked_add(self.layout.method_const)?);
                constant.is_none_or(|constant| constant == known.what.constant)
            }
            None => false,
        };
        if !is_believed {
            let method = method::read(&*self.memory, &self.layout, address)?;
            if self.methods.len() >= METHODS_MAX {
                self.forget_methods();
            }
            let number = self.next_number();
            let kept = self.room(method.bytes() + size_of::<Known<Method>>());
            self.methods.insert(address, Known { what: method, at: now, number, _kept: kept });
        }
        let Known { what, number, .. } = self.methods.get(&address)?;
        let bytecode = bytecode(what);
        let key = (*number, bytecode);
        if let Some(id) = self.at_hand.get(&key) {
            return Some(*id);
        }
        let function = JvmFunction { function: what.name.clone(), file: what.file.clone(), line: what.line(bytecode) };
        let id = self.number_of(function)?;
        if self.at_hand.len() >= LINES_AT_HAND_MAX {
            self.at_hand.clear();
        }
        self.at_hand.insert(key, id);
        Some(id)
    }

    /// The number of a function; `None` if there is no room for it.
    fn number_of(&mut self, function: JvmFunction) -> Option<MadeId> {
        if let Some(id) = self.numbers.get(&function) {
            return Some(*id);
        }
        let id = u32::try_from(self.functions.len()).ok().filter(|_| self.functions.len() < FUNCTIONS_MAX)?;
        let bytes = function.function.len() + function.file.len() + size_of::<JvmFunction>();
        let kept = FUNCTIONS.take(bytes, FUNCTIONS_BYTES_MAX)?;
        let function = Arc::new(function);
        self.numbers.insert(Arc::clone(&function), MadeId(id));
        self.functions.push((function, kept));
        Some(MadeId(id))
    }

    fn stub(&mut self, name: &str) -> Option<MadeId> {
        if let Some(id) = self.stubs.get(name) {
            return Some(*id);
        }
        let plain = name.starts_with(STUB_ROUTINES) || name == INTERPRETER || name == "call_stub";
        let function = if plain { name.to_owned() } else { format!("{STUB}{name}") };
        let id = self.number_of(JvmFunction { function, file: String::new(), line: 0 })?;
        self.stubs.insert(name.to_owned(), id);
        Some(id)
    }

    /// The functions of compiled code at an address, innermost first.
    fn compiled(&mut self, start: u64, ip: u64, functions: &mut Vec<MadeId>) -> Option<()> {
        let Known { what: blob, number, .. } = self.blobs.get(&start)?;
        let (number, method, offset) = (*number, blob.method?, ip.saturating_sub(blob.code));
        if let Some((known, _)) = self.places.get(&(number, ip)) {
            functions.extend(known);
            return Some(());
        }
        let at = |inlined: &Option<Inlined>| inlined.as_ref().map(|inlined| inlined.at(&*self.memory, offset)).unwrap_or_default();
        let scopes = match self.inlined.get(&number) {
            Some((inlined, _)) => at(inlined),
            None => {
                let inlined = Inlined::read(&*self.memory, &self.layout, blob);
                let scopes = at(&inlined);
                let bytes = inlined.as_ref().map_or(0, Inlined::bytes) + size_of::<Inlined>();
                if let Some(kept) = self.room(bytes) {
                    self.inlined.insert(number, (inlined, kept));
                }
                scopes
            }
        };
        let mut found: Vec<MadeId> = Vec::new();
        for (method, bytecode) in &scopes {
            found.extend(self.function_of(*method, |_| Some(*bytecode)));
        }
        // The outermost one is the method itself.
        if found.len() < scopes.len() || scopes.last().is_none_or(|(outermost, _)| *outermost != method) {
            found.clear();
            found.extend(self.function_of(method, |_| None));
        }
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        functions.extend(&found);
        if !found.is_empty()
            && let Some(kept) = self.room(size_of_val(&*found) + size_of::<WithRoom<Vec<MadeId>>>())
        {
            self.places.insert((number, ip), (found, kept));
        }
        Some(())
    }

    fn interpreted(&mut self, frame: &MadeFrame, stack: &mut dyn Stack, functions: &mut Vec<MadeId>) -> Option<MadeCaller> {
        let MadeFrame { sp, fp, bx, is_leaf, .. } = *frame;
        let word = |stack: &mut dyn Stack, below: u64| stack.word(fp.checked_sub(below)?);
        if fp >= sp
            && fp.is_multiple_of(8)
            && let Some(method) = word(stack, METHOD)
        {
            let bytecode = word(stack, BYTECODE);
            if let Some(function) = self.function_of(method, |method| method.bytecode_at(bytecode?)) {
                functions.push(function);
                return step::interpreted(frame, stack);
            }
        }
        // At its beginning a method is in rbx, and has no frame yet.
        if is_leaf {
            functions.extend(self.function_of(bx, |_| Some(0)).or_else(|| self.stub(INTERPRETER)));
            return step::frameless(frame, stack);
        }
        functions.extend(self.stub(INTERPRETER));
        None
    }
}

impl MadeCode for Jvm {
    fn step(&mut self, frame: &MadeFrame, stack: &mut dyn Stack, functions: &mut Vec<MadeId>) -> Option<MadeCaller> {
        if self.call_stub_return == 0 {
            self.call_stub_return = word_at(&*self.memory, self.layout.call_stub_return)?;
        }
        if frame.ip == self.call_stub_return {
            functions.extend(self.stub("call_stub"));
            return step::by_frame_pointer(frame, stack);
        }
        let lookup = if frame.is_leaf { frame.ip } else { frame.ip.checked_sub(1)? };
        let start = self.blob(lookup)?;
        let Known { what: blob, .. } = self.blobs.get(&start)?;
        if blob.name == INTERPRETER {
            return self.interpreted(frame, stack, functions);
        }
        let mut code = [0; CODE_BYTES];
        let has_code = frame.is_leaf && fills(&*self.memory, frame.ip, &mut code);
        if blob.method.is_some() {
            let caller = step::compiled(frame, blob, has_code.then_some(code), stack);
            self.compiled(start, frame.ip, functions);
            return caller;
        }
        let caller = match blob.frame_bytes {
            0 if frame.is_leaf => step::frameless(frame, stack).or_else(|| step::by_frame_pointer(frame, stack)),
            0 => step::by_frame_pointer(frame, stack),
            _ => {
                let sized = step::compiled(frame, blob, has_code.then_some(code), stack);
                sized.or_else(|| step::frameless(frame, stack)).or_else(|| step::by_frame_pointer(frame, stack))
            }
        };
        let name = blob.name.clone();
        functions.extend(self.stub(&name));
        caller
    }
}
