//! Constants of a chunk, as far as stacks and threads need them.
//!
//! ```text
//! checkpoint   time, duration, distance to the one before, type, number of pools
//! pool           class 26 (jdk.types.StackTrace), 1 constant
//! constant         number 7: truncated 0, frames [ { method 3, lineNumber 12, … }, … ]
//! ```
//!
//! A constant may refer to one that comes later, and so all of a chunk are read before its events.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::named_stacks::NO_MEMORY;
use super::super::parts::{self, Budget};
use super::cursor::{Cursor, Fault, JfrText};
use super::metadata::{Classes, Leaf};
use crate::limits::{NAME_BYTES_MAX, STACK_FRAMES_MAX};

/// A function and a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct JfrFrame {
    pub(super) method: i64,
    pub(super) line: i64,
}

#[derive(Debug, Default)]
pub(super) struct JfrMethod {
    pub(super) class: i64,
    pub(super) name: i64,
}

/// Memory of a constant without its frames or its text: a map that grows is there twice for a moment.
const CONSTANT_BYTES: usize = 96;

/// Constants by number.
#[derive(Debug)]
pub(super) struct Constants<'a> {
    budget: Budget,
    /// Leaf first.
    pub(super) stacks: HashMap<i64, Vec<JfrFrame>>,
    pub(super) methods: HashMap<i64, JfrMethod>,
    /// The symbol of the name of each class.
    pub(super) classes: HashMap<i64, i64>,
    pub(super) symbols: HashMap<i64, JfrText<'a>>,
    pub(super) texts: HashMap<i64, JfrText<'a>>,
    /// The number that the kernel gives each thread.
    pub(super) threads: HashMap<i64, u32>,
}

impl<'a> Constants<'a> {
    /// Constants of a chunk, which take memory of this budget.
    pub(super) fn new(budget: Budget) -> Self {
        Constants {
            budget,
            stacks: HashMap::new(),
            methods: HashMap::new(),
            classes: HashMap::new(),
            symbols: HashMap::new(),
            texts: HashMap::new(),
            threads: HashMap::new(),
        }
    }

    /// Reads a checkpoint behind its size and type.
    pub(super) fn read(&mut self, classes: &mut Classes, mut at: Cursor<'a>) -> Result<(), Fault> {
        // Time, duration, distance.
        for _ in 0..3 {
            at.integer()?;
        }
        at.byte()?;
        for _ in 0..at.count()? {
            let class = at.integer()?;
            let name = classes.by_id.get(&class).ok_or("a class that the metadata does not have")?.name.clone();
            for _ in 0..at.count()? {
                let number = at.integer()?;
                self.constant(&name, number, class, classes, &mut at)?;
            }
        }
        Ok(())
    }

    fn constant(&mut self, name: &str, number: i64, class: i64, classes: &mut Classes, at: &mut Cursor<'a>) -> Result<(), Fault> {
        match name {
            "jdk.types.StackTrace" => {
                let mut frames: Vec<JfrFrame> = Vec::new();
                let mut is_cut = false;
                classes.values(class, at, &mut |field, leaf| match (field, leaf) {
                    // One more than are kept of a stack, so that it shows.
                    ("frames", None) if frames.len() <= STACK_FRAMES_MAX => frames.push(JfrFrame::default()),
                    ("frames", None) => is_cut = true,
                    ("method", Some(Leaf::Constant(method))) if !is_cut => _ = frames.last_mut().map(|frame| frame.method = method),
                    ("lineNumber", Some(Leaf::Integer(line))) if !is_cut => _ = frames.last_mut().map(|frame| frame.line = line),
                    _ => {}
                })?;
                self.take_memory(size_of_val(&frames[..]))?;
                self.stacks.insert(number, frames);
            }
            "jdk.types.Method" => {
                let mut method = JfrMethod::default();
                classes.values(class, at, &mut |field, leaf| match (field, leaf) {
                    ("type", Some(Leaf::Constant(class))) => method.class = class,
                    ("name", Some(Leaf::Constant(name))) => method.name = name,
                    _ => {}
                })?;
                self.take_memory(0)?;
                self.methods.insert(number, method);
            }
            "java.lang.Class" => {
                let mut symbol = 0;
                classes.values(class, at, &mut |field, leaf| {
                    if let ("name", Some(Leaf::Constant(name))) = (field, leaf) {
                        symbol = name;
                    }
                })?;
                self.take_memory(0)?;
                self.classes.insert(number, symbol);
            }
            "java.lang.Thread" => {
                let mut thread = 0;
                classes.values(class, at, &mut |field, leaf| {
                    if let ("osThreadId", Some(Leaf::Integer(id))) = (field, leaf) {
                        thread = u32::try_from(id).unwrap_or(0);
                    }
                })?;
                self.take_memory(0)?;
                self.threads.insert(number, thread);
            }
            "jdk.types.Symbol" | "java.lang.String" => {
                let mut text = None;
                classes.values(class, at, &mut |_, leaf| {
                    if let Some(Leaf::Text(words)) = leaf {
                        text = Some(words);
                    }
                })?;
                // Most texts stay in the file, and only those in other encodings than UTF-8 are copied.
                self.take_memory(match &text {
                    Some(JfrText::Here(Cow::Owned(text))) => text.len(),
                    _ => 0,
                })?;
                let into = if name == "java.lang.String" { &mut self.texts } else { &mut self.symbols };
                into.extend(text.map(|text| (number, text)));
            }
            _ => classes.values(class, at, &mut |_, _| ())?,
        }
        Ok(())
    }

    /// Counts a constant with this number of bytes of its own.
    fn take_memory(&mut self, bytes: usize) -> Result<(), Fault> {
        if self.budget.has(CONSTANT_BYTES + bytes) { Ok(()) } else { Err(NO_MEMORY) }
    }

    /// A text; empty if its constant is missing. A constant that is the number of another one is followed once.
    pub(super) fn text<'t>(&'t self, text: Option<&'t JfrText<'a>>) -> &'t str {
        let here = |text: &'t JfrText<'a>| match text {
            JfrText::Here(words) => Some(&**words),
            JfrText::Constant(_) => None,
        };
        let found = match text {
            Some(JfrText::Constant(number)) => self.texts.get(number).and_then(here),
            Some(text) => here(text),
            None => None,
        };
        found.unwrap_or_default()
    }

    /// A function as Java prints it: `java.lang.Thread.run`. What native code has is only a name.
    pub(super) fn function(&self, method: i64) -> String {
        let Some(method) = self.methods.get(&method) else { return String::new() };
        let class = self.classes.get(&method.class).and_then(|symbol| self.symbols.get(symbol));
        let (class, name) = (self.text(class), self.text(self.symbols.get(&method.name)));
        // Long names are cut before they are copied: many functions may have one.
        let short = |text: &str| parts::cut(text.as_bytes(), NAME_BYTES_MAX);
        match (class, name) {
            ("", name) => short(name),
            (class, name) => format!("{}.{}", short(class).replace('/', "."), short(name)),
        }
    }
}
