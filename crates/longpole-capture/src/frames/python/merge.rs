//! Merges the stack of a sample with the readings of an interpreter.
//!
//! The native stack shows how often the evaluating function was called, and the part of the stack of each call. The interpreter shows which functions
//! ran in each call, but at another time. The sample itself ties them: a call keeps the address of its next instruction in a register or on its
//! part of the stack, and that address is in the code of the function that it runs.
//!
//! ```text
//! native, leaf first        kept for its caller        readings, nearest first        shown
//! sha256_block                                         t-0.3ms  parse ◄ main          sha256_block
//! update                    r15 = hash_it+76           t-1.2ms  hash_it ◄ main  ✓     update
//! _PyEval_EvalFrameDefault                                                            hash_it, main
//! Py_RunMain                                                                          Py_RunMain
//! ```
//!
//! So the nearest reading that fits is chosen; without any such word, the nearest one if it is near. Functions that no reading shows are marked as
//! unknown.

use std::ops::Range;

use longpole_symbols::unwind::Frame;

use super::history::{PlaceId, Places, Reading, Readings, SeenStack};

/// How far from a sample a reading may be that fits the sample. Callers change more slowly than their callees.
const FITTING_NANOS_MAX: u64 = 1_000_000_000;

/// The same if the words of the sample may be older than the sample.
const UNSURE_NANOS_MAX: u64 = 300_000_000;

/// How far a reading may be if the sample has no such word: the distance of two readings on a busy machine.
const NEAR_NANOS_MAX: u64 = 50_000_000;

/// Most readings to try for a sample.
const READINGS_TRIED_MAX: usize = 64;

/// Most functions that the words of one call may name: the right one, and earlier ones that left words behind.
const CANDIDATES_MAX: usize = 4;

/// Words below the return address in which a function saves the registers of its caller: as many as are callee-saved, on x86-64 the frame pointer
/// and five others.
const SAVED_WORDS: u64 = 6;

/// The native side of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NativeStack<'a> {
    /// Leaf first.
    pub(crate) frames: &'a [Frame],
    /// The copied bytes of the stack, and where they begin.
    pub(crate) stack: &'a [u8],
    pub(crate) sp: u64,
    /// The callee-saved registers.
    pub(crate) kept: &'a [u64],
    /// Whether the root was reached.
    pub(crate) is_whole: bool,
}

impl NativeStack<'_> {
    /// A word of the stack.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        let word = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }
}

/// One call of the evaluating function, and its frames in the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// Place of its frame in the native stack.
    pub(super) frame: usize,
    /// The functions that it may be running, likeliest first, each with the instruction after the current one.
    pub(super) candidates: Vec<(PlaceId, i64)>,
    /// Whether the first of them is sure, because a callee kept the word for the call. Else the words were somewhere in its part of the stack.
    pub(super) is_sure: bool,
    /// Its frames in the reading that was chosen, innermost first.
    pub(super) ran: Option<Range<usize>>,
}

/// The result for a sample.
#[derive(Debug, Default)]
pub(super) struct Merged<'a> {
    /// Innermost first.
    pub(super) calls: Vec<Call>,
    /// The reading that was chosen.
    pub(super) reading: Option<&'a SeenStack>,
    /// The instruction that its leaf was at.
    pub(super) leaf_instruction: Option<i64>,
    /// Its frames whose calls are beyond the end of a native stack that was cut off.
    pub(super) beyond: Range<usize>,
}

/// Finds the calls of the evaluating function in a native stack, and which functions each may be running.
pub(super) fn calls(native: &NativeStack<'_>, places: &Places, is_eval: impl Fn(&Frame) -> bool) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for (place, frame) in native.frames.iter().enumerate() {
        if is_eval(frame) {
            let inner = calls.last().map(|call| call.frame);
            let (candidates, is_sure) = candidates(native, places, place, inner);
            calls.push(Call { frame: place, candidates, is_sure, ran: None });
        }
    }
    // A call that has just begun, or is about to end, has the registers of its caller: they belong to the caller's call.
    if let [innermost, caller, ..] = &mut calls[..]
        && innermost.candidates.first().is_some_and(|first| caller.candidates.first() == Some(first))
    {
        innermost.candidates.clear();
    }
    calls
}

/// The functions that a call may be running, likeliest first.
///
/// A callee-saved register is where the first callee that used it saved it: so the frames of callees come first, from the nearest on, then the
/// registers. Only then come words of the call's own part of the stack, which may be older; the result shows whether it came to that.
fn candidates(native: &NativeStack<'_>, places: &Places, call: usize, inner: Option<usize>) -> (Vec<(PlaceId, i64)>, bool) {
    let mut found = Candidates { places, candidates: Vec::new() };
    for place in (inner.unwrap_or(0)..call).rev() {
        saved_words(native, place).filter_map(|address| native.word(address)).for_each(|word| found.ask(word));
    }
    if inner.is_none() {
        native.kept.iter().for_each(|word| found.ask(*word));
    }
    let is_sure = !found.candidates.is_empty();
    if !is_sure {
        let own = native.frames[call].sp..native.frames.get(call + 1).map_or(native.frames[call].sp, |caller| caller.sp);
        let words = own.end.saturating_sub(own.start).min(OWN_BYTES_MAX) / 8;
        (0..words).filter_map(|i| native.word(own.start + i * 8)).for_each(|word| found.ask(word));
    }
    (found.candidates, is_sure)
}

/// Words that are in the code of some function, one for each function.
struct Candidates<'a> {
    places: &'a Places,
    candidates: Vec<(PlaceId, i64)>,
}

impl Candidates<'_> {
    fn ask(&mut self, word: u64) {
        if let Some((place, instruction)) = self.places.find(word)
            && self.candidates.len() < CANDIDATES_MAX
            && !self.candidates.iter().any(|(known, _)| *known == place)
        {
            self.candidates.push((place, instruction));
        }
    }
}

/// Most bytes of the evaluating function's own part of the stack to search: it has about 400.
const OWN_BYTES_MAX: u64 = 4096;

/// Where the native frame at this place may have saved registers of its caller.
#[cfg(target_arch = "x86_64")]
fn saved_words(native: &NativeStack<'_>, place: usize) -> impl Iterator<Item = u64> {
    let end = native.frames.get(place + 1).map_or(0, |caller| caller.sp);
    let start = native.frames[place].sp;
    // The return address is the last word.
    (2..2 + SAVED_WORDS).filter_map(move |i| end.checked_sub(i * 8)).filter(move |address| *address >= start)
}

/// On other machines they are at the low end of the frame, at varying offsets.
#[cfg(not(target_arch = "x86_64"))]
fn saved_words(native: &NativeStack<'_>, place: usize) -> impl Iterator<Item = u64> {
    let end = native.frames.get(place + 1).map_or(0, |caller| caller.sp);
    let start = native.frames[place].sp;
    (0..2 * SAVED_WORDS).map(move |i| start.saturating_add(i * 8)).filter(move |address| *address < end)
}

/// Chooses the reading that fits a sample: one that the likeliest functions fit, before one that others fit, before one that is only near if the
/// words are not sure.
pub(super) fn merge<'a>(native: &NativeStack<'_>, places: &Places, mut calls: Vec<Call>, readings: &'a Readings, time: u64) -> Merged<'a> {
    let mut best: Option<Fit<'a>> = None;
    let doubts = calls.iter().map(|call| call.candidates.len()).max().unwrap_or(0).max(1);
    let by_words = (1..=doubts).map(|candidates| Trust { candidates, unsure: true });
    'all: for trust in by_words.chain([Trust { candidates: doubts, unsure: false }]) {
        for reading in readings.nearest(time).take(READINGS_TRIED_MAX) {
            let distance = reading.distance(time);
            if distance > FITTING_NANOS_MAX {
                break;
            }
            let ran = fit(native.is_whole, places, &calls, &reading.stack, distance, trust);
            let fitting = ran.iter().flatten().count();
            // If a native stack was cut off before any call, the nearest reading shows the rest.
            let is_of_use = fitting > 0 || (calls.is_empty() && distance <= NEAR_NANOS_MAX);
            if is_of_use && best.as_ref().is_none_or(|best| fitting > best.fitting) {
                best = Some(Fit { fitting, reading, ran });
            }
            if fitting == calls.len() {
                break 'all;
            }
        }
    }
    let Some(Fit { reading, ran, .. }) = best else { return Merged { calls, ..Merged::default() } };
    let stack = &reading.stack;
    for (call, ran) in calls.iter_mut().zip(ran) {
        call.ran = ran;
    }
    let beyond = match stack.calls.get(calls.len()) {
        Some(call) if !native.is_whole => call.start..stack.frames.len(),
        _ => 0..0,
    };
    Merged { calls, reading: Some(stack), leaf_instruction: reading.leaf_instruction(time), beyond }
}

/// Which words count.
#[derive(Debug, Clone, Copy)]
struct Trust {
    /// How many of the likeliest functions of a call.
    candidates: usize,
    /// Whether unsure ones count.
    unsure: bool,
}

/// A reading that fits some calls of a sample.
struct Fit<'a> {
    /// How many.
    fitting: usize,
    reading: &'a Reading,
    /// For each call its frames, where it fits.
    ran: Vec<Option<Range<usize>>>,
}

/// For each call of a sample, innermost first, the frames of a reading that ran in it.
fn fit(is_whole: bool, places: &Places, calls: &[Call], stack: &SeenStack, distance: u64, trust: Trust) -> Vec<Option<Range<usize>>> {
    let count = calls.len();
    // If both reach the root, calls count from there; if the native stack was cut off, from the leaf.
    let number = |place: usize| if is_whole { (place + stack.calls.len()).checked_sub(count) } else { Some(place) };
    let has_words = |call: &Call| !call.candidates.is_empty() && (call.is_sure || trust.unsure);
    let by_words = |(place, call): (usize, &Call)| {
        if !has_words(call) || (!call.is_sure && distance > UNSURE_NANOS_MAX) {
            return None;
        }
        let ran = stack.calls.get(number(place)?)?;
        let frames = stack.frames.get(ran.clone())?;
        let likeliest = call.candidates.iter().take(trust.candidates);
        let position = |(place, _): &(PlaceId, i64)| frames.iter().position(|frame| places.codes(*place).contains(&frame.code));
        let inner = likeliest.into_iter().find_map(position)?;
        Some(ran.start + inner..ran.end)
    };
    let mut ran: Vec<Option<Range<usize>>> = calls.iter().enumerate().map(by_words).collect();
    // A call without a word is as in the reading, if that is near or fits another call of the same stack.
    if distance <= NEAR_NANOS_MAX || ran.iter().any(Option::is_some) {
        for (place, call) in calls.iter().enumerate().filter(|(_, call)| !has_words(call)) {
            debug_assert!(ran[place].is_none() && call.ran.is_none());
            ran[place] = number(place).and_then(|number| stack.calls.get(number)).cloned();
        }
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{AbsAddr, CodeAddress};
    use longpole_symbols::python::{CodeId, FrameRead};
    use longpole_symbols::unwind::Place;

    /// Code `n` has its instructions at `n * 1000 ..`.
    fn places() -> Places {
        let mut places = Places::default();
        for code in 1..10u32 {
            places.add(&(u64::from(code) * 1000..u64::from(code) * 1000 + 500), CodeId(code));
        }
        places
    }

    const SP: u64 = 0x7000_0000;

    /// A native stack of frames of 128 bytes each, `e` for the evaluating function; and which words lie where.
    fn native(text: &str, words: &[(u64, u64)]) -> (Vec<Frame>, Vec<u8>) {
        let frames = text.chars().enumerate().map(|(i, kind)| Frame {
            address: CodeAddress::Return(AbsAddr(if kind == 'e' { 1 } else { 2 })),
            place: Place::Unknown,
            sp: SP + i as u64 * 128,
            fp: 0,
        });
        let frames: Vec<Frame> = frames.collect();
        let mut stack = vec![0; frames.len() * 128];
        for (offset, word) in words {
            let at = *offset as usize;
            stack[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        (frames, stack)
    }

    fn is_eval(frame: &Frame) -> bool {
        frame.address == CodeAddress::Return(AbsAddr(1))
    }

    /// `2 1|7`: leaf first, calls apart.
    fn seen(text: &str) -> SeenStack {
        let mut frames = Vec::new();
        for call in text.split('|') {
            let codes: Vec<u32> = call.split(' ').map(|code| code.parse().unwrap()).collect();
            for (i, code) in codes.iter().enumerate() {
                let begins_call = i + 1 == codes.len();
                let address = 0x9000 + frames.len() as u64;
                frames.push((FrameRead { address, code: 0, instruction: 10, begins_call }, CodeId(*code)));
            }
        }
        let (read, codes): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
        SeenStack::new(&read, &codes, true)
    }

    /// What is shown of a sample at time 0 in each call, `?` where nothing fits, and behind `+` what lies beyond.
    fn shown(text: &str, words: &[(u64, u64)], kept: &[u64], is_whole: bool, readings: &[(u64, &str)]) -> String {
        let (frames, stack) = native(text, words);
        let native = NativeStack { frames: &frames, stack: &stack, sp: SP, kept, is_whole };
        let places = places();
        let mut history = Readings::default();
        for (millis, text) in readings {
            history.push(millis * 1_000_000, seen(text));
        }
        let merged = merge(&native, &places, calls(&native, &places, is_eval), &history, 0);
        let names = |range: Range<usize>| {
            let frames = merged.reading.map_or(&[][..], |reading| &reading.frames);
            frames[range].iter().map(|frame| frame.code.0.to_string()).collect::<Vec<_>>().join(" ")
        };
        let mut parts: Vec<String> = merged.calls.iter().map(|call| call.ran.clone().map_or("?".to_owned(), names)).collect();
        if !merged.beyond.is_empty() {
            parts.push(format!("+{}", names(merged.beyond.clone())));
        }
        parts.join("|")
    }

    #[test]
    fn without_a_word_the_nearest_reading_counts_if_it_is_near() {
        assert_eq!(shown("nenen", &[], &[], true, &[(1, "2 1|7"), (2, "3 1|7")]), "2 1|7");
        assert_eq!(shown("nenen", &[], &[], true, &[(80, "2 1|7")]), "?|?");
        assert_eq!(shown("nenen", &[], &[], true, &[]), "?|?");
    }

    #[test]
    fn a_reading_that_fits_what_the_sample_shows_wins_over_a_nearer_one() {
        // The function that the call at place 1 called saved its r15, three words below its return address.
        let saved = 128 - 24;
        let readings = [(1, "2 1|7"), (5, "3 1|7"), (6, "4 3 1|7")];
        assert_eq!(shown("nenen", &[(saved, 3040)], &[], true, &readings), "3 1|7");
        assert_eq!(shown("nenen", &[], &[3040], true, &readings), "3 1|7", "nobody saved it: it is in the register still");
        assert_eq!(shown("nenen", &[], &[1040], true, &readings), "1|7", "the callee of the reading had returned");
        assert_eq!(shown("nenen", &[], &[9040], true, &readings), "?|7", "a function that no reading has");
        assert_eq!(shown("enen", &[], &[4040], true, &readings), "4 3 1|7", "within the call itself");
    }

    #[test]
    fn what_is_saved_counts_before_what_lies_about() {
        let saved = 128 - 16;
        let stale = 128 + 40;
        let readings = [(1, "2 1|7"), (2, "3 1|7")];
        assert_eq!(shown("nenen", &[(saved, 3040), (stale, 2040)], &[5000], true, &readings), "3 1|7");
        assert_eq!(shown("nenen", &[(stale, 3040)], &[], true, &readings), "3 1|7");
    }

    #[test]
    fn what_only_lies_about_counts_for_less_and_not_for_long() {
        let stale = 128 + 40;
        assert_eq!(shown("nenen", &[(stale, 3040)], &[], true, &[(1, "2 1|7"), (200, "3 1|7")]), "3 1|7");
        assert_eq!(shown("nenen", &[(stale, 3040)], &[], true, &[(1, "2 1|7"), (400, "3 1|7")]), "2 1|7", "the nearest");
        assert_eq!(shown("nenen", &[(stale, 3040)], &[], true, &[(80, "2 1|7"), (400, "3 1|7")]), "?|?");
        assert_eq!(shown("nenen", &[], &[3040], true, &[(1, "2 1|7"), (400, "3 1|7")]), "3 1|7", "a register is sure");
    }

    #[test]
    fn each_call_has_words_of_its_own() {
        let (inner, outer) = (128 - 16, 2 * 128 - 32);
        // The inner call itself saved the register of the outer one.
        assert_eq!(shown("neen", &[(inner, 3040), (outer, 7040)], &[], true, &[(1, "2|7"), (2, "3|8"), (3, "3|7")]), "3|7");
    }

    #[test]
    fn a_call_that_has_just_begun_has_no_word_of_its_own() {
        // The register is saved by nobody but the inner call.
        let readings = [(1, "2|7"), (2, "7|7")];
        assert_eq!(shown("enen", &[(128 - 16, 7040)], &[7040], true, &readings), "2|7");
        assert_eq!(shown("enen", &[(128 - 16, 7040)], &[7042], true, &readings), "7|7", "it is somewhere else in the same function");
    }

    #[test]
    fn a_cut_stack_is_counted_from_the_leaf_and_goes_on_with_what_the_interpreter_knows() {
        assert_eq!(shown("nene", &[], &[3040], false, &[(1, "3|2 1|7 8|9")]), "3|2 1|+7 8 9");
        assert_eq!(shown("nn", &[], &[], false, &[(1, "3|2")]), "+3 2");
        assert_eq!(shown("nn", &[], &[], false, &[(80, "3|2")]), "");
        assert_eq!(shown("nn", &[], &[], true, &[(1, "3|2")]), "", "a whole stack without a call ran no Python");
    }

    #[test]
    fn more_calls_than_the_reading_has_are_not_known() {
        assert_eq!(shown("enenen", &[], &[], true, &[(1, "3|2")]), "?|3|2");
        assert_eq!(shown("enenen", &[], &[], true, &[(1, "3|2"), (2, "4|3|2")]), "4|3|2");
    }
}
