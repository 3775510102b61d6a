use std::collections::BTreeMap;

use super::*;
use crate::memory::{Memory, MemoryPart, Unreadable, copy_found};

/// Memory of a made-up process, in pieces.
#[derive(Default)]
struct Made(BTreeMap<u64, Vec<u8>>);

impl Memory for Made {
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable> {
        copy_found(parts, bytes, |address, length| {
            let (start, piece) = self.0.range(..=address).next_back()?;
            piece.get((address - start) as usize..)?.get(..length)
        });
        Ok(())
    }
}

const COUNT: u64 = 0x1000;
const LIST: u64 = 0x1100;
const REASONS: u64 = 0x2000;
const ADDRESSES: u64 = 0x10_0000;
const GS: u64 = 0x20_0000;
const STACKS: u64 = 0x4000_0000;
const ROOT: u64 = 0x77_0000;
const REASON_TEXTS: [&str; 5] = ["", "sleep", "force gc (idle)", "chan receive", "sync.WaitGroup.Wait"];

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn program(minor: u16) -> GoProgram {
    let reasons = (REASONS, REASON_TEXTS.len() as u64 * 16);
    let symbols = GoSymbols { count: COUNT, list: LIST, reasons, poll: 1..2, packages: Packages::default() };
    GoProgram { version: Version { minor }, layout: Version { minor }.layout(), symbols: Some(symbols) }
}

/// One goroutine of Go 1.26: status, reason, and the words of its stack, with its frame pointer at the first of them.
type Given<'a> = (u32, u8, &'a [u64]);

fn made(goroutines: &[Given<'_>]) -> Made {
    let mut memory = Made::default();
    let addresses: Vec<u64> = (0..goroutines.len() as u64).map(|number| GS + number * 0x4000).collect();
    memory.0.insert(COUNT, words(&[addresses.len() as u64]));
    memory.0.insert(LIST, words(&[ADDRESSES]));
    memory.0.insert(ADDRESSES, words(&addresses));
    let mut strings = Vec::new();
    for (number, text) in REASON_TEXTS.iter().enumerate() {
        let at = 0x3000 + number as u64 * 0x100;
        memory.0.insert(at, text.as_bytes().to_vec());
        strings.extend([at, text.len() as u64]);
    }
    memory.0.insert(REASONS, words(&strings));
    for (number, (status, reason, stack)) in goroutines.iter().enumerate() {
        let sp = STACKS + number as u64 * 0x10_0000;
        let mut g = vec![0; 400];
        for (at, word) in [(0, sp - 0x100), (8, sp + stack.len() as u64 * 8), (56, sp), (64, 0x50_0000), (96, sp), (152, number as u64 + 1)]
        {
            g[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        g[144..148].copy_from_slice(&status.to_le_bytes());
        g[176] = *reason;
        memory.0.insert(GS + number as u64 * 0x4000, g);
        memory.0.insert(sp, words(stack));
    }
    memory
}

fn reader(minor: u16) -> Result<Goroutines, Missing> {
    Goroutines::new(&program(minor), Some)
}

fn is_root(address: u64) -> bool {
    address == ROOT
}

/// Number, reason, callers and whether they are whole.
fn look(memory: &Made) -> Vec<(u64, Reason, Vec<u64>, bool)> {
    let look = reader(26).unwrap().read(memory, is_root).unwrap();
    look.waiting.into_iter().map(|it| (it.id, it.reason, it.callers, it.is_whole)).collect()
}

#[test]
fn goroutines_that_wait_are_read_with_their_callers() {
    let main = [STACKS + 16, 0x60_0000, 0, 0x61_0000, 0, 0];
    let second = STACKS + 0x10_0000;
    let other = [second + 24, 0x70_0000, 9, 0, ROOT + 1, 0];
    let memory = made(&[(4, 4, &main[..2]), (4 | 0x1000, 1, &other), (2, 1, &other), (4, 2, &other), (6, 1, &other)]);
    assert_eq!(
        look(&memory),
        [(1, Reason::Others, vec![0x50_0000, 0x60_0000], false), (2, Reason::Sleep, vec![0x50_0000, 0x70_0000, ROOT + 1], true)],
        "those that run, that are over, and those of the runtime are left out"
    );
    let memory = made(&[(4, 3, &[STACKS + 16, 0x60_0000, 0, 0, 0])]);
    assert_eq!(look(&memory), [(1, Reason::Channel, vec![0x50_0000, 0x60_0000], true)], "no caller is the end, too");
}

#[test]
fn one_that_was_chosen_is_read_again_and_may_have_gone_on() {
    let deep: Vec<u64> = (0..2_000).flat_map(|frame| [STACKS + (frame + 1) * 16, 0x60_0000 + frame]).collect();
    let mut memory = made(&[(4, 1, &deep)]);
    let mut reader = reader(26).unwrap();
    let seen = reader.read(&memory, is_root).unwrap().waiting.remove(0);
    assert_eq!((seen.callers.len(), seen.is_whole), (257, false));
    let whole = reader.read_whole(&memory, seen.clone(), is_root).unwrap().unwrap();
    assert_eq!((whole.callers.len(), whole.is_whole), (512, false), "frames have a limit");
    memory.0.get_mut(&GS).unwrap()[144] = 1;
    assert_eq!(reader.read_whole(&memory, seen, is_root), Ok(None));
}

#[test]
fn of_too_many_the_main_one_and_the_latest_are_read() {
    let many: Vec<Given<'_>> = vec![(4, 3, &[0, 0]); 300];
    let memory = made(&many);
    let look = reader(26).unwrap().read(&memory, is_root).unwrap();
    let ids: Vec<u64> = look.waiting.iter().map(|it| it.id).collect();
    assert_eq!((ids.len(), &ids[..3], look.are_more), (32, &[1, 300, 299][..], true));
}

#[test]
fn memory_of_any_content_is_no_stack_and_no_panic() {
    let mut memory = made(&[(4, 1, &[STACKS, 0x60_0000])]);
    assert_eq!(look(&memory), [(1, Reason::Sleep, vec![0x50_0000, 0x60_0000], false)], "a frame that is its own caller");
    memory.0.insert(COUNT, words(&[u64::MAX]));
    assert_eq!(look(&memory), [], "a list that is not there");
    let mut garbage = made(&[(4, 1, &[0, 0])]);
    garbage.0.insert(GS, vec![0xff; 400]);
    assert_eq!(look(&garbage), []);
    garbage.0.insert(REASONS, vec![0xff; 80]);
    assert_eq!(reader(26).unwrap().read(&garbage, is_root), Err(Missing::Torn));
    assert_eq!(reader(26).unwrap().read(&Made::default(), is_root), Err(Missing::Torn));
    assert_eq!([reader(17).err(), reader(99).err()], [Some(Missing::UnknownVersion); 2]);
    let stripped = GoProgram { symbols: None, ..program(26) };
    assert_eq!(Goroutines::new(&stripped, Some).err(), Some(Missing::NoSymbols));
}
