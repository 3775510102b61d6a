//! Waits have the length, the kind and the stack of what the program waited for.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use longpole_model::{CaptureMode, CpuSlice, Wait, WaitKind};
use longpole_testing::{holds, skip};

use crate::program::{FACTS, MILLI, burn_leaf, clock, fact, thread_cpu};
use crate::recorded::record_role;

/// How long the caller was in there.
fn around(name: &str, wait: impl FnOnce()) {
    let start = clock(libc::CLOCK_MONOTONIC);
    wait();
    fact(name, clock(libc::CLOCK_MONOTONIC) - start);
}

/// Does something from another thread after `millis` milliseconds.
fn later(millis: u64, act: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(millis));
        act();
    });
}

#[inline(never)]
fn take_a_nap() {
    around("sleep", || std::thread::sleep(std::time::Duration::from_millis(120)));
    black_box(());
}

#[inline(never)]
fn take_a_lock() {
    let lock: &'static Mutex<()> = Box::leak(Box::default());
    let (taken, is_taken) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let guard = lock.lock().unwrap();
        taken.send(()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(130));
        drop(guard);
    });
    is_taken.recv().unwrap();
    around("lock", || wait_for_the_lock(lock));
}

#[inline(never)]
fn wait_for_the_lock(lock: &Mutex<()>) {
    drop(black_box(lock.lock().unwrap()));
    black_box(());
}

#[inline(never)]
fn read_a_pipe() {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    later(140, move || writer.write_all(b"x").unwrap());
    around("pipe", || assert_eq!(reader.read(&mut [0]).unwrap(), 1));
    black_box(());
}

#[inline(never)]
fn read_a_socket() {
    let (mut reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
    later(150, move || writer.write_all(b"x").unwrap());
    around("network", || assert_eq!(reader.read(&mut [0]).unwrap(), 1));
    black_box(());
}

#[inline(never)]
fn poll_a_socket() {
    let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
    later(110, move || writer.write_all(b"x").unwrap());
    let mut polled = libc::pollfd { fd: std::os::fd::AsRawFd::as_raw_fd(&reader), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor that is open, and a structure of ours.
    around("polled", || assert_eq!(unsafe { libc::poll(&mut polled, 1, -1) }, 1));
    black_box(());
}

#[inline(never)]
fn wait_for_a_child() {
    let mut child = Command::new("sleep").arg("0.16").stdin(Stdio::null()).spawn().unwrap();
    around("child", || assert!(child.wait().unwrap().success()));
    black_box(());
}

pub(crate) fn role_waits() {
    take_a_nap();
    take_a_lock();
    read_a_pipe();
    read_a_socket();
    poll_a_socket();
    wait_for_a_child();
    burn_leaf(thread_cpu() + 20 * MILLI);
}

/// Waits are as long as the program measured, of the right kind, and have the function that waited.
#[test]
fn waits_have_a_kind_a_length_and_the_function_that_waits() {
    holds(2, 4, "waits are as long as the program measured", scripted_waits);
}

fn scripted_waits() -> Result<(), String> {
    let recorded = record_role("waits");
    let waits: Vec<&Wait> = recorded.waits().collect();
    let scripted = [
        ("sleep", WaitKind::Sleep, "take_a_nap"),
        ("lock", WaitKind::Lock, "wait_for_the_lock"),
        ("pipe", WaitKind::Pipe, "read_a_pipe"),
        ("network", WaitKind::Network, "read_a_socket"),
        ("polled", WaitKind::Network, "poll_a_socket"),
        ("child", WaitKind::Child, "wait_for_a_child"),
    ];
    for (name, kind, function) in scripted {
        let measured = recorded.fact(name) as f64;
        // What the program measured is what happened in `around`: a child is made before it.
        let in_both = |names: &[&str]| [function, "around"].iter().all(|function| names.iter().any(|name| name.contains(function)));
        let named = |wait: &&&Wait| wait.stack.is_some_and(|stack| in_both(&recorded.functions_of(stack)));
        let seen: u64 = waits.iter().filter(|wait| wait.kind == kind).filter(named).map(|wait| wait.nanos()).sum();
        let (low, high) = (measured * 0.98 - 1e6, measured + 1e6);
        let listed = || waits.iter().map(|w| format!("{} {:?} {:?}\n", w.nanos(), w.kind, w.stack.map(|s| recorded.functions_of(s))));
        if !(low..=high).contains(&(seen as f64)) {
            return Err(format!("{name}: waits {seen}, the program measured {measured}\n{}", listed().collect::<String>()));
        }
    }
    assert_eq!(recorded.stats.waits, waits.len() as u64);
    Ok(())
}

/// Threads that sleep for as long as waits of services last.
pub(crate) fn role_naps() {
    let naps = |number: u64| {
        for millis in [6, 9, 14, 20, 30, 45, 70] {
            std::thread::sleep(std::time::Duration::from_millis(millis));
            burn_leaf(thread_cpu() + number * MILLI / 2);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|number| drop(scope.spawn(move || naps(number)))));
}

/// By time: 95 % of it.
#[test]
fn waits_of_more_than_5_ms_have_a_stack() {
    // The recorder needs a CPU while the thread is blocked, and other processes may take it.
    holds(2, 4, "waits of more than 5 ms have a stack", || {
        let (seen, blocked, unseen) = seen_of_naps();
        assert!(blocked > 500 * MILLI, "{blocked}");
        (seen * 100 >= blocked * 95).then_some(()).ok_or(format!("{seen} of {blocked}; not seen:\n{unseen}"))
    });
}

/// How long threads were blocked for more than 5 ms at once, how long of it was seen with a stack, and what was not.
fn seen_of_naps() -> (u64, u64, String) {
    let recorded = record_role("naps");
    let mut slices: Vec<&CpuSlice> = recorded.slices().collect();
    slices.sort_by_key(|slice| (slice.tid, slice.start));
    let with_stack: BTreeSet<(u32, u64)> = recorded.waits().filter(|w| w.stack.is_some()).map(|w| (w.tid, w.start.0)).collect();
    let (mut blocked, mut seen, mut unseen) = (0, 0, String::new());
    for pair in slices.windows(2) {
        let (out, back) = (pair[0], pair[1]);
        let nanos = back.start.nanos_since(out.end);
        if out.tid != back.tid || out.preempted || nanos <= 5 * MILLI {
            continue;
        }
        blocked += nanos;
        match with_stack.contains(&(out.tid, out.end.0)) {
            true => seen += nanos,
            false => writeln!(unseen, "thread {}: {nanos}", out.tid).unwrap(),
        }
    }
    (seen, blocked, unseen)
}

const READS: u32 = 6;

/// Reads a file again and again, past the page cache, where the file system lets it.
pub(crate) fn role_disk() {
    const BYTES: usize = 128 << 20;
    let path = Path::new(&std::env::var_os(FACTS).unwrap()).with_extension("file");
    let mut options = fs::OpenOptions::new();
    let opened = options.read(true).write(true).create(true).truncate(true).custom_flags(libc::O_DIRECT).open(&path);
    let mut memory = vec![7; BYTES + 4096];
    let aligned = memory.as_ptr().align_offset(4096);
    let block = &mut memory[aligned..][..BYTES];
    let Some(file) = opened.ok().filter(|file| file.write_all_at(block, 0).is_ok()) else { return };
    for number in 0..READS {
        read_from_disk(number, &file, block);
    }
}

/// Asks for a large block, which takes some CPU time, and waits for it, which takes none.
#[inline(never)]
fn read_from_disk(number: u32, file: &fs::File, block: &mut [u8]) {
    // SAFETY: a structure of numbers.
    let mut request: libc::iocb = unsafe { std::mem::zeroed() };
    request.aio_fildes = file.as_raw_fd() as u32;
    (request.aio_buf, request.aio_nbytes) = (block.as_mut_ptr().addr() as u64, block.len() as u64);
    let (mut queue, mut event) = (0_u64, [0_u64; 4]);
    // SAFETY: room for one `struct io_event`, and the block outlives the request, which is waited for.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_io_setup, 1, &mut queue), 0);
        assert_eq!(libc::syscall(libc::SYS_io_submit, queue, 1, &&mut request), 1);
        around(&format!("disk-{number}"), || {
            assert_eq!(libc::syscall(libc::SYS_io_getevents, queue, 1, 1, &mut event, std::ptr::null::<u8>()), 1);
        });
        assert_eq!(libc::syscall(libc::SYS_io_destroy, queue), 0);
    }
    assert_eq!(event[2], block.len() as u64);
    black_box(());
}

#[test]
fn waits_for_a_disk_are_what_the_program_measured() {
    holds(2, 4, "waits for a disk are as long as the program measured", seen_of_disk);
}

fn seen_of_disk() -> Result<(), String> {
    let recorded = record_role("disk");
    if !recorded.facts.contains_key("disk-0") {
        let folder = std::env::temp_dir();
        skip("waits_for_a_disk_are_what_the_program_measured", &format!("{} has no O_DIRECT", folder.display()));
        return Ok(());
    }
    let in_reading =
        |wait: &&Wait| wait.stack.is_some_and(|stack| recorded.functions_of(stack).iter().any(|f| f.contains("read_from_disk")));
    let of_disk = recorded.waits().filter(|wait| wait.kind == WaitKind::Disk && wait.syscall == "io_getevents").filter(in_reading);
    let seen: u64 = of_disk.map(|wait| wait.nanos()).sum();
    let measured = (0..READS).map(|number| recorded.fact(&format!("disk-{number}"))).sum::<u64>() as f64;
    let listed: String = recorded.waits().map(|wait| format!("{} {:?} {}\n", wait.nanos(), wait.kind, wait.syscall)).collect();
    let is_right = (measured * 0.98 - 1e6..=measured + 1e6).contains(&(seen as f64));
    is_right.then_some(()).ok_or(format!("waits {seen}, the program measured {measured}\n{listed}"))
}

#[inline(never)]
fn doze_often() {
    for _ in 0..1_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    black_box(());
}

#[inline(never)]
fn pass_often(mut from: std::io::PipeReader, mut to: std::io::PipeWriter) {
    use std::io::Read;
    let mut byte = [0];
    for _ in 0..20_000 {
        to.write_all(&byte).unwrap();
        from.read_exact(&mut byte).unwrap();
    }
    black_box(());
}

pub(crate) fn role_dozes() {
    doze_often();
    let ((a, b), (c, d)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let other = std::thread::spawn(move || pass_often(a, d));
    pass_often(c, b);
    other.join().unwrap();
}

/// Some of the waits that are too short to be probed have a kind and a stack.
#[test]
fn some_short_waits_have_a_stack() {
    let recorded = record_role("dozes");
    let waits: Vec<&Wait> = recorded.waits().collect();
    let short = |kind: WaitKind, function: &str| {
        let named = |wait: &&&Wait| wait.stack.is_some_and(|stack| recorded.functions_of(stack).iter().any(|f| f.contains(function)));
        waits.iter().filter(|wait| wait.nanos() < 5 * MILLI && wait.kind == kind).filter(named).count()
    };
    let (naps, passes) = (short(WaitKind::Sleep, "doze_often"), short(WaitKind::Pipe, "pass_often"));
    let listed =
        || waits.iter().map(|w| format!("{} {:?} {} {:?}\n", w.nanos(), w.kind, w.syscall, w.stack.map(|s| recorded.functions_of(s))));
    assert!(naps >= 1, "{}", listed().collect::<String>());
    assert!(naps < 300, "{naps} of 1,000 naps: more than requested");
    assert!(waits.iter().filter(|wait| wait.kind == WaitKind::Sleep).all(|wait| wait.syscall == "clock_nanosleep"));
    if recorded.mode == CaptureMode::Perf {
        assert!(passes >= 1, "{naps} naps, {passes} passes\n{}", listed().collect::<String>());
    }
}
