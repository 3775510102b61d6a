//! Stacks are whole: deep ones, those of code without a file, of signal handlers, of programs that are gone.

use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::path::Path;

use longpole_capture::recorder::{Options, SampleClock};
use longpole_model::stack::LocationKind;
use longpole_model::{AbsAddr, LossKind, Observation, Sample};

use crate::program::{MILLI, burn_leaf, burn_odd, fact, gettid, me, role_command, thread_cpu};
use crate::recorded::{Folder, record, record_role};

#[inline(never)]
fn descend(depth: u32, until: u64) -> u64 {
    let frame = black_box([depth as u64; 32]);
    if depth == 0 {
        burn_leaf(until);
        return frame[3];
    }
    descend(depth - 1, until) + black_box(frame[1])
}

pub(crate) fn role_deep() {
    black_box(descend(400, thread_cpu() + 150 * MILLI));
}

#[test]
fn a_stack_deeper_than_any_dump_ends_in_a_truncation() {
    let recorded = record_role("deep");
    let deep: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).collect();
    assert!(deep.len() > 80);
    let mut rooms = Vec::new();
    for sample in &deep {
        let functions = recorded.functions(sample);
        let end = functions.last().unwrap();
        let room = end.strip_prefix("[the stack is deeper than the ").and_then(|rest| rest.strip_suffix(" KiB that longpole copies]"));
        let room: usize = room.unwrap_or_else(|| panic!("{functions:?}")).parse().unwrap();
        assert!(functions.iter().filter(|f| f.ends_with("descend")).count() > 2 * room - 12, "{room}: {functions:?}");
        rooms.push(room);
    }
    assert!(rooms.is_sorted() && rooms[0] == 16 && *rooms.last().unwrap() > 16, "more was copied of each: {rooms:?}");
    let losses = recorded.losses();
    let cut = losses.iter().filter(|loss| loss.kind == LossKind::StacksTruncated);
    assert_eq!(recorded.stats.truncated, cut.map(|loss| loss.count).sum::<u64>());
    assert!(recorded.stats.truncated >= deep.len() as u64);
}

/// Three threads with stacks of about 24 KiB; the last one begins when the others end.
pub(crate) fn role_deeper() {
    let burn = || {
        std::thread::spawn(|| {
            black_box(descend(70, thread_cpu() + 200 * MILLI));
            fact("cpu", thread_cpu());
            fact("late", gettid());
        })
    };
    let first = [burn(), burn()];
    first.into_iter().for_each(|thread| thread.join().unwrap());
    burn().join().unwrap();
}

#[test]
fn stack_dumps_grow_and_no_sample_counts_twice() {
    let recorded = record_role("deeper");
    let late: u32 = recorded.facts["late"].parse().unwrap();
    let deep: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).collect();
    let is_cut = |sample: &&&Sample| recorded.functions(sample).last().unwrap().starts_with('[');
    let cut = deep.iter().filter(is_cut).count();
    assert!((16..150).contains(&cut), "{cut} of {} were cut", deep.len());
    assert_eq!(deep.iter().filter(|sample| sample.tid == late).filter(is_cut).count(), 0, "a thread that began afterwards");
    assert!(deep.iter().filter(|sample| sample.tid == late).count() > 150);
    let times: BTreeSet<(u32, u64)> = deep.iter().map(|sample| (sample.tid, sample.time.0)).collect();
    // If both events counted, every second sample would come right after another. A late timer causes a few such pairs.
    let pairs = times.iter().zip(times.iter().skip(1));
    let close = pairs.filter(|((tid, time), (next_tid, next))| tid == next_tid && next - time < MILLI / 2).count();
    assert!(close * 20 < times.len(), "{close} of {} samples came right behind another", times.len());
}

#[test]
fn a_larger_dump_holds_the_deeper_stack() {
    let folder = Folder::new();
    let facts = folder.path("facts");
    let options = Options { stack_bytes: 62 << 10, clock: SampleClock::Cycles, ..Options::default() };
    let mut command = role_command(&me(), "deep", &facts);
    command.env("RUST_MIN_STACK", "8000000");
    let recorded = record(&command, &options, &facts);
    let deep: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).collect();
    assert!(deep.len() > 80, "{}", recorded.describe());
    let deeper = deep.iter().filter(|s| recorded.functions(s).iter().filter(|f| f.ends_with("descend")).count() > 150).count();
    assert!(deeper * 100 >= deep.len() * 99, "{}", recorded.describe());
}

pub(crate) fn role_deleted() {
    fs::remove_file(me()).unwrap();
    burn_leaf(thread_cpu() + 150 * MILLI);
}

#[test]
fn a_program_that_deletes_itself_is_unwound_and_kept_for_symbolization() {
    let folder = Folder::new();
    let (facts, program) = (folder.path("facts"), folder.path("program"));
    fs::copy(me(), &program).unwrap();
    let recorded = record(&role_command(&program, "deleted", &facts), &Options::default(), &facts);
    let mapping = recorded.all.iter().find_map(|o| match o {
        Observation::Mapping(mapping) if Path::new(&mapping.path) == program => Some(mapping),
        _ => None,
    });
    let mapping = mapping.unwrap_or_else(|| panic!("{}", recorded.describe()));
    assert!(!mapping.build_id.is_empty());
    let binaries = recorded.stats.binaries.take();
    let binary = binaries.iter().find(|b| b.mapping == mapping.id).unwrap();
    assert_eq!(binary.file.metadata().unwrap().len(), me().metadata().unwrap().len());
    let whole = recorded.samples().filter(|s| !recorded.functions(s).last().unwrap().starts_with('[')).count();
    assert!(whole > 100, "{}", recorded.describe());
}

/// Runs code that no file holds: a loop in anonymous memory, called from Rust.
pub(crate) fn role_anonymous() {
    #[cfg(target_arch = "x86_64")]
    // push rbp; mov rbp,rsp; mov rcx,rdi; 1: dec rcx; jnz 1b; pop rbp; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3];
    #[cfg(target_arch = "aarch64")]
    // 1: subs x0,x0,#1; b.ne 1b; ret
    let code = [0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6];
    // SAFETY: a fresh page, filled with the instructions above before it is made executable, and called as what they are.
    let function: extern "C" fn(u64) = unsafe {
        let page =
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len());
        assert_eq!(libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC), 0);
        std::mem::transmute(page)
    };
    fact("page", format!("{:x}", function as usize));
    let until = thread_cpu() + 150 * MILLI;
    while thread_cpu() < until {
        call_anonymous(function);
    }
}

#[inline(never)]
fn call_anonymous(function: extern "C" fn(u64)) {
    function(black_box(200_000));
    black_box(());
}

#[test]
fn code_without_a_file_is_unwound_through() {
    let recorded = record_role("anonymous");
    let page = u64::from_str_radix(&recorded.facts["page"], 16).unwrap();
    let inside: Vec<&Sample> = recorded
        .samples()
        .filter(|s| {
            recorded.all.iter().any(|o| {
                matches!(o, Observation::Location { id, kind: LocationKind::Unmapped { address: AbsAddr(address) } }
                    if *id == recorded.locations(s.stack)[0] && (page..page + 4096).contains(address))
            })
        })
        .collect();
    assert!(inside.len() > 80, "{}", recorded.describe());
    let known = inside.iter().filter(|s| recorded.is_in(s, "call_anonymous")).count();
    assert!(known * 100 >= inside.len() * 95, "{known} of {}\n{}", inside.len(), recorded.describe());
}

extern "C" fn on_signal(_: libc::c_int) {
    burn_odd(thread_cpu() + 100 * MILLI);
}

#[inline(never)]
fn raise_signal() {
    // SAFETY: the handler only computes.
    unsafe { libc::raise(libc::SIGUSR1) };
    black_box(());
}

pub(crate) fn role_signal() {
    // SAFETY: installs a handler that only computes.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    raise_signal();
}

#[test]
fn a_signal_handler_is_unwound_into_what_it_interrupted() {
    let recorded = record_role("signal");
    let inside: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_odd")).collect();
    assert!(inside.len() > 60, "{}", recorded.describe());
    let through = inside.iter().filter(|s| recorded.is_in(s, "raise_signal")).count();
    assert!(through * 100 >= inside.len() * 99, "{through} of {}\n{}", inside.len(), recorded.describe());
}
