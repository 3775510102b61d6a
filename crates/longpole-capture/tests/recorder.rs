//! Ground truth for the recorder: this very binary plays programs whose work is known, and what was recorded of them is held
//! against it. Run as root, everything is played once more by a user without any privilege.

#![allow(unsafe_code)]
// What was skipped, and figures, are for people.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use longpole_capture::sampler::{Options, Recorder, Refused, SampleClock, Stats};
use longpole_model::sink::SinkError;
use longpole_model::stack::LocationKind;
use longpole_model::{
    AbsAddr, CaptureMode, ContextRecord, CpuSlice, Exit, LocationId, Loss, LossKind, Mapping, Observation, ObservationSink, ProcessUsage,
    Runtime, Sample, SpanId, StackId, TraceId, VirtOffset, Wait, WaitKind,
};
use longpole_symbols::{HostFiles, Symbolizer};
use longpole_testing::{holds, lists_in, take_over, turn};

const ROLE: &str = "LONGPOLE_RECORDER_ROLE";
const FACTS: &str = "LONGPOLE_RECORDER_FACTS";
const UNPRIVILEGED: &str = "LONGPOLE_RECORDER_UNPRIVILEGED";

// ---- the programs -------------------------------------------------------------------------------------------------------

/// Entry of every played program; as a test of its own it does nothing.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let start = clock(libc::CLOCK_MONOTONIC);
    match role.as_str() {
        "shares" => role_shares(),
        "threads" => role_threads(),
        "chain" => role_chain(),
        "leaf" => burn_leaf(thread_cpu() + 200 * MILLI),
        "deep" => role_deep(),
        "deeper" => role_deeper(),
        "deleted" => role_deleted(),
        "short" => role_short(),
        "survivor" => role_survivor(),
        "switches" => role_switches(),
        "spin" => role_spin(),
        "execs" => role_execs(),
        "anonymous" => role_anonymous(),
        "signal" => role_signal(),
        "waits" => role_waits(),
        "disk" => role_disk(),
        "naps" => role_naps(),
        "kernel" => role_kernel(),
        "dozes" => role_dozes(),
        "grows" => role_grows(),
        "without-files" => role_without_files(),
        "without-system-call" => role_without_system_call(),
        "without-memory" => role_without_memory(),
        other => panic!("no role {other}"),
    }
    fact("wall", clock(libc::CLOCK_MONOTONIC) - start);
    fact("cpu-of-all", process_cpu());
}

const MILLI: u64 = 1_000_000;

fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure it is given.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn process_cpu() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn gettid() -> u32 {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::gettid() as u32 }
}

/// Tells the test something.
fn fact(name: &str, value: impl std::fmt::Display) {
    let path = std::env::var_os(FACTS).unwrap();
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(format!("{name} {value}\n").as_bytes()).unwrap();
}

#[inline(never)]
fn mix(rounds: u64, seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x)
}

macro_rules! burner {
    ($name:ident, $salt:literal) => {
        /// Works until its thread has had so much CPU time.
        #[inline(never)]
        fn $name(until: u64) {
            while thread_cpu() < until {
                black_box(mix(20_000, $salt));
            }
            black_box(());
        }
    };
}

burner!(burn_three, 3);
burner!(burn_one, 1);
burner!(burn_leaf, 7);
burner!(burn_even, 11);
burner!(burn_odd, 13);

/// How long the caller was in there.
fn around(name: &str, wait: impl FnOnce()) {
    let start = clock(libc::CLOCK_MONOTONIC);
    wait();
    fact(name, clock(libc::CLOCK_MONOTONIC) - start);
}

/// Does something from another thread after so many milliseconds.
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

fn role_waits() {
    take_a_nap();
    take_a_lock();
    read_a_pipe();
    read_a_socket();
    poll_a_socket();
    wait_for_a_child();
    burn_leaf(thread_cpu() + 20 * MILLI);
}

/// Threads that sleep for as long as waits of services last.
fn role_naps() {
    let naps = |number: u64| {
        for millis in [6, 9, 14, 20, 30, 45, 70] {
            std::thread::sleep(std::time::Duration::from_millis(millis));
            burn_leaf(thread_cpu() + number * MILLI / 2);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|number| drop(scope.spawn(move || naps(number)))));
}

const READS: u32 = 6;

/// Reads a file again and again, past the page cache, where the file system lets it.
fn role_disk() {
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

/// Has the kernel write zeros and random numbers, most of the time.
#[inline(never)]
fn read_much(path: &str, until: u64) {
    use std::io::Read;
    let mut source = fs::File::open(path).unwrap();
    let mut bytes = vec![0; 1 << 20];
    while thread_cpu() < until {
        source.read_exact(&mut bytes).unwrap();
        black_box(&mut bytes);
    }
    black_box(());
}

fn role_kernel() {
    read_much("/dev/urandom", thread_cpu() + 300 * MILLI);
    burn_leaf(thread_cpu() + 100 * MILLI);
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

fn role_dozes() {
    doze_often();
    let ((a, b), (c, d)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let other = std::thread::spawn(move || pass_often(a, d));
    pass_often(c, b);
    other.join().unwrap();
}

fn role_shares() {
    for _ in 0..15 {
        burn_three(thread_cpu() + 45 * MILLI);
        burn_one(thread_cpu() + 15 * MILLI);
    }
}

/// The context record of `docs/formats/span-context.md`, written by hand.
#[repr(C, align(16))]
struct Record {
    magic: [u8; 16],
    version: u32,
    tid: u32,
    sequence: u64,
    trace: [u8; 16],
    span: [u8; 8],
    valid: u8,
    flags: u8,
    attributes: u16,
    padding: u32,
}

impl Record {
    const fn none() -> Record {
        Record {
            magic: *b"\x9cLONGPOLE-CTX1\xf3\xa7",
            version: 1,
            tid: 0,
            sequence: 0,
            trace: [0; 16],
            span: [0; 8],
            valid: 0,
            flags: 0,
            attributes: 0,
            padding: 0,
        }
    }
}

thread_local! {
    static RECORD: std::cell::UnsafeCell<Record> = const { std::cell::UnsafeCell::new(Record::none()) };
}

fn publish(span: u8) {
    use std::sync::atomic::compiler_fence;
    RECORD.with(|record| {
        let record = record.get();
        // SAFETY: only this thread writes its own record; volatile, because the reader is not of this program.
        unsafe {
            (&raw mut (*record).tid).write_volatile(gettid());
            let sequence = (&raw const (*record).sequence).read_volatile();
            (&raw mut (*record).sequence).write_volatile(sequence + 1);
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*record).valid).write_volatile(0);
            (&raw mut (*record).trace).write_volatile([9; 16]);
            (&raw mut (*record).span).write_volatile([span; 8]);
            (&raw mut (*record).valid).write_volatile(1);
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*record).sequence).write_volatile(sequence + 2);
        }
    });
}

/// Four threads, each with a name; even and odd ones work in functions and spans of their own, alternating with no span.
fn role_threads() {
    let threads: Vec<_> = (0..4u8)
        .map(|number| {
            std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    publish(number + 1);
                    for _ in 0..15 {
                        let until = thread_cpu() + 10 * MILLI;
                        if number % 2 == 0 { burn_even(until) } else { burn_odd(until) }
                    }
                    fact(&format!("cpu-{number}"), thread_cpu());
                    fact(&format!("tid-{number}"), gettid());
                })
                .unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A command line of this binary in a role.
fn role_command(program: &Path, role: &str, facts: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]).env(ROLE, role).env(FACTS, facts);
    command
}

fn me() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Forks, executes a shell, which executes this binary again.
fn role_chain() {
    let facts = std::env::var_os(FACTS).unwrap();
    let mut inner = Command::new("/bin/sh");
    inner.args(["-c", "exec \"$0\" --exact role --nocapture --test-threads=1"]).arg(me()).env(ROLE, "leaf").env(FACTS, facts);
    let mut child = inner.spawn().unwrap();
    fact("child", child.id());
    assert!(child.wait().unwrap().success());
}

#[inline(never)]
fn descend(depth: u32, until: u64) -> u64 {
    let frame = black_box([depth as u64; 32]);
    if depth == 0 {
        burn_leaf(until);
        return frame[3];
    }
    descend(depth - 1, until) + black_box(frame[1])
}

fn role_deep() {
    black_box(descend(400, thread_cpu() + 150 * MILLI));
}

/// Three threads whose stacks have some 24 KiB, the last of which begins when the others end.
fn role_deeper() {
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

fn role_deleted() {
    fs::remove_file(me()).unwrap();
    burn_leaf(thread_cpu() + 150 * MILLI);
}

fn role_short() {
    for number in 0..30 {
        assert!(Command::new("/bin/true").arg(format!("number-{number}")).status().unwrap().success());
    }
}

/// Bytes that each step of `grows` takes and keeps, and how many there are.
const STEP_BYTES: u64 = 8 << 20;
const STEPS: u64 = 10;

/// Takes memory in steps and works a while after each; writes a file and reads it; has a child that ends badly.
fn role_grows() {
    let path = PathBuf::from(format!("{}.written", std::env::var(FACTS).unwrap()));
    let mut steps: Vec<Vec<u8>> = Vec::new();
    let mut file = fs::File::create(&path).unwrap();
    for step in 0..STEPS {
        let bytes = vec![step as u8 + 1; STEP_BYTES as usize];
        file.write_all(&bytes).unwrap();
        steps.push(bytes);
        burn_leaf(thread_cpu() + 30 * MILLI);
    }
    let mut read = fs::File::open(&path).unwrap();
    let mut bytes = vec![0; 1 << 20];
    while read.read(&mut bytes).unwrap() > 0 {}
    fs::remove_file(&path).unwrap();
    // It lives long enough to be found by a recorder that has no CPU at once.
    let child = Command::new("/bin/sh").args(["-c", "sleep 0.3; kill -9 $$"]).spawn().unwrap();
    fact("killed", child.id());
    assert!(!{ child }.wait().unwrap().success());
    burn_leaf(thread_cpu() + 60 * MILLI);
    std::mem::forget(black_box(steps));
}

/// Leaves a process behind that lives until its standard input ends.
#[allow(clippy::zombie_processes, reason = "it is meant to outlive its parent")]
fn role_survivor() {
    let fifo = std::env::var("LONGPOLE_RECORDER_FIFO").unwrap();
    let child = Command::new("/bin/sh").args(["-c", "read x < \"$0\"; exit 0", &fifo]).stdin(Stdio::null()).spawn().unwrap();
    fact("survivor", child.id());
}

/// Two threads that hand a byte back and forth.
fn role_switches() {
    let (mut from_a, mut to_b) = std::io::pipe().unwrap();
    let (mut from_b, mut to_a) = std::io::pipe().unwrap();
    let rounds: u32 = std::env::var("LONGPOLE_RECORDER_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(5_000);
    // About 100 µs of work a round, so 20,000 switches a second.
    let work: u64 = std::env::var("LONGPOLE_RECORDER_WORK").ok().and_then(|r| r.parse().ok()).unwrap_or(60_000);
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        while from_a.read(&mut byte).unwrap() == 1 {
            to_a.write_all(&byte).unwrap();
        }
        fact("cpu", thread_cpu());
    });
    let mut byte = [7];
    for _ in 0..rounds {
        to_b.write_all(&byte).unwrap();
        from_b.read_exact(&mut byte).unwrap();
        black_box(mix(work, u64::from(byte[0])));
    }
    drop(to_b);
    other.join().unwrap();
    fact("process", process_cpu());
}

/// Works a fixed amount on so many threads; for figures.
fn role_spin() {
    let threads: u64 = std::env::var("LONGPOLE_RECORDER_THREADS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    let rounds: u64 = std::env::var("LONGPOLE_RECORDER_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(20_000_000);
    let all: Vec<_> = (0..threads).map(|seed| std::thread::spawn(move || black_box(descend_and_mix(12, rounds, seed)))).collect();
    for thread in all {
        thread.join().unwrap();
    }
}

#[inline(never)]
fn descend_and_mix(depth: u32, rounds: u64, seed: u64) -> u64 {
    let frame = black_box([seed; 16]);
    if depth == 0 { mix(rounds, seed) } else { descend_and_mix(depth - 1, rounds, seed) + black_box(frame[1]) }
}

/// Starts `true` many times; for figures.
fn role_execs() {
    let rounds: u32 = std::env::var("LONGPOLE_RECORDER_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(100);
    for _ in 0..rounds {
        Command::new("/bin/true").status().unwrap();
    }
}

/// Runs code that no file holds: a loop in anonymous memory, called from Rust.
fn role_anonymous() {
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

extern "C" fn on_signal(_: libc::c_int) {
    burn_odd(thread_cpu() + 100 * MILLI);
}

#[inline(never)]
fn raise_signal() {
    // SAFETY: the handler only computes.
    unsafe { libc::raise(libc::SIGUSR1) };
    black_box(());
}

fn role_signal() {
    // SAFETY: installs a handler that only computes.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    raise_signal();
}

// ---- recording them -----------------------------------------------------------------------------------------------------

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Observation>>>);

impl ObservationSink for Seen {
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        self.0.lock().unwrap().push(observation);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A folder of this process's own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longpole-recorder-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A child that waits at a gate: a shell that executes the command when it has read a line.
struct Gated(Child);

impl Gated {
    fn new(command: &Command) -> Gated {
        let mut gate = Command::new("/bin/sh");
        gate.args(["-c", "read line; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            gate.env(name, value.unwrap_or_default());
        }
        Gated(gate.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn run(mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

struct Recorded {
    root: u32,
    mode: CaptureMode,
    all: Vec<Observation>,
    stats: Stats,
    facts: BTreeMap<String, String>,
    names: BTreeMap<u32, Vec<String>>,
}

/// Runs a program under the recorder, while nobody else records.
fn record(command: &Command, options: &Options, facts: &Path) -> Recorded {
    let turn = turn();
    let gated = Gated::new(command);
    let root = gated.pid();
    let seen = Seen::default();
    let recorder = Recorder::start(root, options, Box::new(seen.clone())).unwrap();
    gated.run();
    let mode = recorder.mode();
    let stats = recorder.finish();
    drop(turn);
    let all = std::mem::take(&mut *seen.0.lock().unwrap());
    let facts = fs::read_to_string(facts).unwrap_or_default();
    let facts = facts.lines().filter_map(|line| line.split_once(' ')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let names = names_of(&all);
    Recorded { root, mode, all, stats, facts, names }
}

fn record_role(role: &str) -> Recorded {
    let folder = Folder::new();
    let facts = folder.path("facts");
    record(&role_command(&me(), role, &facts), &Options::default(), &facts)
}

/// Function names of each location, innermost first.
fn names_of(all: &[Observation]) -> BTreeMap<u32, Vec<String>> {
    let symbolizer = Symbolizer::new(Box::new(HostFiles));
    let mut mappings: BTreeMap<u32, &Mapping> = BTreeMap::new();
    let mut by_mapping: BTreeMap<u32, Vec<(u32, VirtOffset)>> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for observation in all {
        match observation {
            Observation::Mapping(mapping) => {
                mappings.insert(mapping.id.0, mapping);
            }
            Observation::Location { id, kind: LocationKind::Code { mapping, address } } => {
                by_mapping.entry(mapping.0).or_default().push((id.0, *address));
            }
            Observation::Location { id, kind: LocationKind::Cut { reason } } => {
                names.insert(id.0, vec![format!("[{reason}]")]);
            }
            Observation::Location { id, kind: LocationKind::Unmapped { address } } => {
                names.insert(id.0, vec![format!("[unmapped {address}]")]);
            }
            // Of what was told by address before, this is the name.
            Observation::Named { id, function, runtime, .. } => {
                let mark = if *runtime == Runtime::Kernel { "_[k]" } else { "" };
                names.insert(id.0, vec![format!("{function}{mark}")]);
            }
            _ => {}
        }
    }
    for (mapping, locations) in by_mapping {
        let addresses: Vec<VirtOffset> = locations.iter().map(|(_, address)| *address).collect();
        let resolved = symbolizer.resolve(mappings[&mapping], &addresses);
        for ((id, _), frames) in locations.iter().zip(resolved.frames) {
            names.insert(*id, frames.into_iter().map(|frame| frame.function.into()).collect());
        }
    }
    names
}

impl Recorded {
    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.all.iter().filter_map(|o| match o {
            Observation::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    fn waits(&self) -> impl Iterator<Item = &Wait> {
        self.all.iter().filter_map(|o| if let Observation::Wait(wait) = o { Some(wait) } else { None })
    }

    fn slices(&self) -> impl Iterator<Item = &CpuSlice> {
        self.all.iter().filter_map(|o| match o {
            Observation::CpuSlice(slice) => Some(slice),
            _ => None,
        })
    }

    fn losses(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for observation in &self.all {
            if let Observation::Loss(loss) = observation {
                loss.clone().merge_into(&mut losses);
            }
        }
        losses
    }

    fn locations(&self, stack: StackId) -> &[LocationId] {
        self.all
            .iter()
            .find_map(|o| match o {
                Observation::Stack { id, locations } if *id == stack => Some(locations.as_slice()),
                _ => None,
            })
            .expect("a stack is defined")
    }

    /// Function names from leaf to root.
    fn functions(&self, sample: &Sample) -> Vec<&str> {
        self.functions_of(sample.stack)
    }

    fn functions_of(&self, stack: StackId) -> Vec<&str> {
        self.locations(stack).iter().flat_map(|id| self.names[&id.0].iter().map(String::as_str)).collect()
    }

    fn is_in(&self, sample: &Sample, function: &str) -> bool {
        self.functions(sample).iter().any(|name| name.rsplit("::").next() == Some(function))
    }

    fn count(&self, function: &str) -> usize {
        self.samples().filter(|s| self.is_in(s, function)).count()
    }

    fn fact(&self, name: &str) -> u64 {
        self.facts[name].parse().unwrap()
    }

    /// Whether the stacks of these samples end at the root; those of the first instants of a process may not.
    fn assert_unwound(&self, function: &str) {
        let inside: Vec<&Sample> = self.samples().filter(|s| self.is_in(s, function)).collect();
        let whole = inside.iter().filter(|s| !self.functions(s).last().unwrap().starts_with('[')).count();
        assert!(inside.len() > 50, "only {} samples in {function}\n{}", inside.len(), self.describe());
        assert!(whole * 100 >= inside.len() * 99, "{whole} of {} stacks are whole\n{}", inside.len(), self.describe());
    }

    fn describe(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for sample in self.samples() {
            *counts.entry(self.functions(sample).join(" < ")).or_default() += 1;
        }
        let mut text = format!("{:?}\n{:?}\n", self.stats, self.losses());
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (stack, count) in counts.iter().take(12) {
            writeln!(text, "{count:6} {stack}").unwrap();
        }
        text
    }
}

fn within(actual: f64, expected: f64, share: f64) -> bool {
    (actual - expected).abs() <= expected * share
}

// ---- the tests ----------------------------------------------------------------------------------------------------------

#[test]
fn cpu_shares_of_functions_are_those_of_the_program() {
    let recorded = record_role("shares");
    let (three, one) = (recorded.count("burn_three") as f64, recorded.count("burn_one") as f64);
    let all = three + one;
    assert!(all > 500.0, "{}", recorded.describe());
    // Five standard deviations of a share of three quarters.
    let spread = 5.0 * (0.75 * 0.25 / all).sqrt();
    assert!((three / all - 0.75).abs() < spread, "{three} : {one}\n{}", recorded.describe());
    recorded.assert_unwound("burn_three");
    let sample = recorded.samples().find(|s| recorded.is_in(s, "burn_three")).unwrap();
    assert!(recorded.is_in(sample, "role_shares"), "callers are found: {:?}", recorded.functions(sample));
    assert_eq!(sample.weight_nanos, 1_001_001);
    assert_eq!(sample.pid, recorded.root);
    let clocks = recorded.all.iter().filter(|o| matches!(o, Observation::Clock(_))).count();
    assert!(clocks >= 2, "at the start and at the end");
}

/// Time in the kernel is sampled where that is allowed, below the function that called it; where it is not, that is said.
#[test]
fn time_in_the_kernel_stands_under_the_function_that_asked_for_it() {
    holds(2, 4, "samples of the kernel are those of its time", time_in_the_kernel);
}

fn time_in_the_kernel() -> Result<(), String> {
    let recorded = record_role("kernel");
    let in_kernel = |sample: &&Sample| recorded.functions(sample).iter().any(|function| function.ends_with("_[k]"));
    let on_cpu: u64 = recorded.slices().map(|slice| slice.end.nanos_since(slice.start)).sum();
    let sampled: u64 = recorded.samples().map(|sample| sample.weight_nanos).sum();
    match &recorded.mode {
        CaptureMode::Perf => {
            let reading: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "read_much")).collect();
            let below = reading.iter().filter(|s| in_kernel(s)).count();
            assert!(reading.len() > 200 && below * 10 >= reading.len() * 9, "{below} of {}\n{}", reading.len(), recorded.describe());
            let random = reading.iter().filter(|s| recorded.functions(s).iter().any(|f| f.contains("random") && f.ends_with("_[k]")));
            assert!(random.count() * 10 >= below * 9, "the kernel's functions have names\n{}", recorded.describe());
            recorded.assert_unwound("read_much");
            if !within(sampled as f64, on_cpu as f64, 0.10) {
                return Err(format!("sampled {sampled}, on a CPU {on_cpu}\n{}", recorded.describe()));
            }
            assert!(recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).filter(in_kernel).count() < 50);
        }
        CaptureMode::User { why_not_kernel } => {
            assert!(why_not_kernel.contains("perf_event_paranoid") && why_not_kernel.contains("CAP_PERFMON"), "{why_not_kernel}");
            assert_eq!(recorded.samples().filter(in_kernel).count(), 0);
            assert!(sampled * 2 < on_cpu, "sampled {sampled}, on a CPU {on_cpu}");
        }
        other => panic!("{other:?}"),
    }
    assert!(recorded.stats.unwind_failed <= 1, "{}", recorded.describe());
    Ok(())
}

/// Blocked time is what the program itself measured around each wait, of the right kind, and says which function waited.
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

/// Of the time in which threads were blocked for more than 5 ms at once.
#[test]
fn who_is_blocked_for_long_is_seen_with_its_stack() {
    // The recorder needs a CPU by the time a thread is blocked for long, and others may want it.
    holds(2, 4, "who is blocked for long is seen with its stack", || {
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

#[test]
fn waits_for_a_disk_are_what_the_program_measured() {
    holds(2, 4, "waits for a disk are as long as the program measured", seen_of_disk);
}

fn seen_of_disk() -> Result<(), String> {
    let recorded = record_role("disk");
    if !recorded.facts.contains_key("disk-0") {
        println!("skipped: the file system of {} reads and writes nothing past the page cache", std::env::temp_dir().display());
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

/// Of waits that are too short for all of them to be looked at some have a kind and a stack.
#[test]
fn short_waits_have_stacks_now_and_then() {
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
    assert!(naps < 300, "{naps} of 1,000 naps: more than were asked for");
    assert!(waits.iter().filter(|wait| wait.kind == WaitKind::Sleep).all(|wait| wait.syscall == "clock_nanosleep"));
    if recorded.mode == CaptureMode::Perf {
        assert!(passes >= 1, "{naps} naps, {passes} passes\n{}", listed().collect::<String>());
    }
}

#[test]
fn threads_have_names_and_their_samples_carry_their_record() {
    holds(2, 4, "slices of threads are as long as their clocks say", named_threads);
}

fn named_threads() -> Result<(), String> {
    let recorded = record_role("threads");
    for number in 0..4 {
        let tid = recorded.fact(&format!("tid-{number}")) as u32;
        let named = recorded
            .all
            .iter()
            .any(|o| matches!(o, Observation::ThreadNamed { tid: t, name, .. } if *t == tid && *name == format!("worker-{number}")));
        assert!(named, "thread {number} has its name");
        let ended = recorded.all.iter().any(|o| matches!(o, Observation::ThreadExited { tid: t, .. } if *t == tid));
        assert!(ended, "thread {number} ended");
        let function = if number % 2 == 0 { "burn_even" } else { "burn_odd" };
        let own: Vec<&Sample> = recorded.samples().filter(|s| s.tid == tid && recorded.is_in(s, function)).collect();
        assert!(own.len() > 80, "{} samples of thread {number}\n{}", own.len(), recorded.describe());
        let span = SpanId::new([number as u8 + 1; 8]).unwrap();
        let expected = ContextRecord::Span { trace_id: TraceId::new([9; 16]).unwrap(), span_id: span };
        let right = own.iter().filter(|s| s.context == expected).count();
        assert!(right * 100 >= own.len() * 99, "{right} of {} samples carry the record", own.len());
        let wrong = own.iter().filter(|s| s.context != expected && matches!(s.context, ContextRecord::Span { .. })).count();
        assert_eq!(wrong, 0);
        let on_cpu: u64 = recorded.slices().filter(|s| s.tid == tid).map(|s| s.end.nanos_since(s.start)).sum();
        let told = recorded.fact(&format!("cpu-{number}"));
        if !within(on_cpu as f64, told as f64, 0.05) {
            return Err(format!("thread {number}: slices {on_cpu}, its own clock {told}"));
        }
    }
    recorded.assert_unwound("burn_even");
    recorded.assert_unwound("burn_odd");
    Ok(())
}

#[test]
fn a_process_behind_a_shell_is_followed_through_both_of_its_programs() {
    let recorded = record_role("chain");
    let child = recorded.fact("child") as u32;
    let started = recorded.all.iter().find_map(|o| match o {
        Observation::ProcessStarted { pid, parent_pid, time } if *pid == child => Some((*parent_pid, *time)),
        _ => None,
    });
    let (parent, started) = started.unwrap();
    assert_eq!(parent, Some(recorded.root));
    let execs: Vec<(&String, &String, &Vec<String>)> = recorded
        .all
        .iter()
        .filter_map(|o| match o {
            Observation::ProcessExec { pid, name, executable, arguments, time } if *pid == child => {
                assert!(*time > started);
                Some((name, executable, arguments))
            }
            _ => None,
        })
        .collect();
    assert_eq!(execs.len(), 2, "{execs:?}");
    assert_eq!(execs[0].0, "sh");
    assert_eq!(Path::new(execs[1].1), me());
    assert_eq!(execs[1].2[1..], ["--exact", "role", "--nocapture", "--test-threads=1"]);
    recorded.assert_unwound("burn_leaf");
    assert!(recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).all(|s| s.pid == child));
    let root_execs = recorded.all.iter().filter(|o| matches!(o, Observation::ProcessExec { pid, .. } if *pid == recorded.root)).count();
    assert_eq!(root_execs, 1);
    for pid in [recorded.root, child] {
        assert!(recorded.all.iter().any(|o| matches!(o, Observation::ProcessExited { pid: p, .. } if *p == pid)));
    }
}

#[test]
fn a_stack_deeper_than_any_copy_says_so_at_its_end() {
    let recorded = record_role("deep");
    let deep: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).collect();
    assert!(deep.len() > 80);
    let mut rooms = Vec::new();
    for sample in &deep {
        let functions = recorded.functions(sample);
        let end = functions.last().unwrap();
        let room = end.strip_prefix("[stack is deeper than the ").and_then(|rest| rest.strip_suffix(" KiB that were copied]"));
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

#[test]
fn more_is_copied_of_each_stack_once_many_are_deeper_and_no_sample_counts_twice() {
    let recorded = record_role("deeper");
    let late: u32 = recorded.facts["late"].parse().unwrap();
    let deep: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).collect();
    let is_cut = |sample: &&&Sample| recorded.functions(sample).last().unwrap().starts_with('[');
    let cut = deep.iter().filter(is_cut).count();
    assert!((16..150).contains(&cut), "{cut} of {} were cut", deep.len());
    assert_eq!(deep.iter().filter(|sample| sample.tid == late).filter(is_cut).count(), 0, "a thread that began afterwards");
    assert!(deep.iter().filter(|sample| sample.tid == late).count() > 150);
    let times: BTreeSet<(u32, u64)> = deep.iter().map(|sample| (sample.tid, sample.time.0)).collect();
    // Of two events that both count, every second sample comes right behind another. A timer that was late makes a few do so.
    let pairs = times.iter().zip(times.iter().skip(1));
    let close = pairs.filter(|((tid, time), (next_tid, next))| tid == next_tid && next - time < MILLI / 2).count();
    assert!(close * 20 < times.len(), "{close} of {} samples came right behind another", times.len());
}

#[test]
fn a_larger_copy_holds_the_deeper_stack() {
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

#[test]
fn a_program_that_deletes_itself_is_unwound_and_kept_for_its_names() {
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
    let binary = recorded.stats.binaries.iter().find(|b| b.mapping == mapping.id).unwrap();
    assert_eq!(binary.file.metadata().unwrap().len(), me().metadata().unwrap().len());
    let whole = recorded.samples().filter(|s| !recorded.functions(s).last().unwrap().starts_with('[')).count();
    assert!(whole > 100, "{}", recorded.describe());
}

#[test]
fn processes_that_live_a_millisecond_are_all_seen() {
    let recorded = record_role("short");
    let mut started = BTreeSet::new();
    let mut exited = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for observation in &recorded.all {
        match observation {
            Observation::ProcessStarted { pid, .. } => {
                started.insert(*pid);
            }
            Observation::ProcessExited { pid, .. } => {
                exited.insert(*pid);
            }
            Observation::ProcessExec { name, executable, arguments, .. } if name == "true" => {
                if let [_, number] = arguments.as_slice() {
                    assert!(executable.ends_with("true"), "{executable}");
                    numbers.insert(number.clone());
                }
            }
            _ => {}
        }
    }
    assert_eq!(started.len(), 31);
    assert_eq!(exited, started);
    // On a busy machine some are gone before we look; their names are known all the same.
    println!("arguments of {} of 30 processes", numbers.len());
    let count = |wanted: fn(&Observation) -> Option<u32>| recorded.all.iter().filter_map(wanted).collect::<BTreeSet<u32>>().len();
    let read = count(|o| match o {
        Observation::ProcessUsage(usage) => Some(usage.pid),
        _ => None,
    });
    let statuses = count(|o| match o {
        Observation::ProcessStatus { pid, .. } => Some(*pid),
        _ => None,
    });
    println!("figures of {read}, and the end of {statuses} of 31 processes");
}

#[test]
fn what_a_process_uses_is_seen_while_it_grows_and_how_it_ended_after() {
    let recorded = record_role("grows");
    let usage: Vec<ProcessUsage> = recorded
        .all
        .iter()
        .filter_map(|o| match o {
            Observation::ProcessUsage(usage) if usage.pid == recorded.root => Some(*usage),
            _ => None,
        })
        .collect();
    let whole = STEP_BYTES * STEPS;
    let memory: Vec<u64> = usage.iter().filter_map(|usage| usage.memory).map(|memory| memory.resident_bytes).collect();
    let peak = usage.iter().filter_map(|usage| usage.memory).map(|memory| memory.peak_resident_bytes).max().unwrap();
    assert!(usage.len() > 10 && usage.len() < 100, "{usage:?}");
    // What it reads its file with it gives back.
    assert!(memory.windows(2).all(|pair| pair[1] + (2 << 20) >= pair[0]), "it only grows: {memory:?}");
    // The program itself has a few megabytes.
    assert!(peak >= whole && peak < whole + (12 << 20), "{peak} of {whole}");
    let distinct = memory.chunk_by(|a, b| b.abs_diff(*a) < STEP_BYTES / 2).count() as u64;
    assert!(distinct > STEPS / 2, "the steps are seen: {memory:?}");
    let last = usage.last().unwrap();
    let io = usage.iter().rev().find_map(|usage| usage.io).unwrap();
    assert!(within(io.written as f64, whole as f64, 0.01) && within(io.read as f64, whole as f64, 0.05), "{io:?} of {whole}");
    assert!(within(last.cpu_nanos as f64, recorded.fact("cpu-of-all") as f64, 0.2), "{last:?} {:?}", recorded.facts);
    // A page of each step is touched for the first time once; the kernel may bring 16 at a time, or 512.
    assert!(last.minor_faults > whole / (2 << 20), "{last:?}");
    let ends: BTreeMap<u32, Exit> = recorded
        .all
        .iter()
        .filter_map(|o| match o {
            Observation::ProcessStatus { pid, exit, .. } => Some((*pid, *exit)),
            _ => None,
        })
        .collect();
    // Before Linux 6.15 nobody but its parent knows how a process ended.
    if !ends.is_empty() {
        assert_eq!(ends.get(&(recorded.fact("killed") as u32)), Some(&Exit::Signal(9)), "{ends:?}");
        assert_eq!(ends.get(&recorded.root), Some(&Exit::Code(0)), "{ends:?}");
    }
}

#[test]
fn who_outlives_the_command_does_not_hold_the_recorder() {
    let folder = Folder::new();
    let (facts, fifo) = (folder.path("facts"), folder.path("fifo"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = role_command(&me(), "survivor", &facts);
    command.env("LONGPOLE_RECORDER_FIFO", &fifo);
    let recorded = record(&command, &Options::default(), &facts);
    let survivor = recorded.fact("survivor") as u32;
    assert!(Path::new(&format!("/proc/{survivor}")).exists(), "it lives while the recording is over");
    assert!(!recorded.all.iter().any(|o| matches!(o, Observation::ProcessExited { pid, .. } if *pid == survivor)));
    // Its reader is there, so this does not wait; it ends the survivor.
    fs::write(&fifo, "\n").unwrap();
}

#[test]
fn slices_add_up_at_many_switches() {
    holds(2, 4, "slices add up at many switches", many_switches);
}

fn many_switches() -> Result<(), String> {
    let recorded = record_role("switches");
    let on_cpu: u64 = recorded.slices().map(|s| s.end.nanos_since(s.start)).sum();
    let told = recorded.fact("process");
    let switches = recorded.slices().count() as u64;
    // The kernel charges the switch itself, and what the recorder adds to it, to the thread that comes; it is no part of a slice.
    // That is about 1 µs, more where a hypervisor is busy.
    if on_cpu > told + told / 50 || on_cpu + switches * 20_000 < told {
        return Err(format!("slices {on_cpu}, the process's own clock {told}, {switches} switches"));
    }
    assert!(switches > 5_000, "{switches}");
    let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
    for slice in recorded.slices() {
        let last = by_thread.insert(slice.tid, slice.end.0).unwrap_or(0);
        assert!(last <= slice.start.0, "slices of a thread are in order and do not overlap");
    }
    Ok(())
}

#[test]
fn code_of_no_file_is_unwound_through() {
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

#[test]
fn a_signal_handler_is_unwound_into_what_it_interrupted() {
    let recorded = record_role("signal");
    let inside: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "burn_odd")).collect();
    assert!(inside.len() > 60, "{}", recorded.describe());
    let through = inside.iter().filter(|s| recorded.is_in(s, "raise_signal")).count();
    assert!(through * 100 >= inside.len() * 99, "{through} of {}\n{}", inside.len(), recorded.describe());
}

#[test]
fn cycles_fall_back_to_the_cpu_clock_and_say_so() {
    let folder = Folder::new();
    let facts = folder.path("facts");
    let gated = Gated::new(&role_command(&me(), "leaf", &facts));
    let seen = Seen::default();
    let options = Options { clock: SampleClock::Cycles, ..Options::default() };
    let recorder = Recorder::start(gated.pid(), &options, Box::new(seen.clone())).unwrap();
    let clock = recorder.clock();
    gated.run();
    let stats = recorder.finish();
    assert!(stats.samples > 80, "{stats:?}");
    let said = seen
        .0
        .lock()
        .unwrap()
        .iter()
        .any(|o| matches!(o, Observation::Loss(l) if l.kind == LossKind::ProfilingRefused && l.detail.contains("cycles")));
    assert_eq!(said, clock == SampleClock::CpuClock);
}

#[test]
fn a_sink_that_fails_is_counted() {
    struct Full;
    impl ObservationSink for Full {
        fn observe(&mut self, _: Observation) -> Result<(), SinkError> {
            Err(SinkError("disk full".to_owned()))
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            Err(SinkError("disk full".to_owned()))
        }
    }
    let folder = Folder::new();
    let facts = folder.path("facts");
    let gated = Gated::new(&role_command(&me(), "leaf", &facts));
    let recorder = Recorder::start(gated.pid(), &Options::default(), Box::new(Full)).unwrap();
    gated.run();
    let stats = recorder.finish();
    assert_eq!(stats.samples, 0);
    assert!(stats.not_kept > 100);
    assert_eq!(stats.not_kept_reason.as_deref(), Some("disk full"));
}

// ---- refusals: each in a process of its own, because limits and filters are for whole processes ---------------------------

fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: reads the structure it is given.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

fn tell_refusal(outcome: Result<Recorder, Refused>) {
    match outcome {
        Ok(_) => fact("started", "yes"),
        Err(refused) => {
            fact("reason", &refused);
            fact("remedy", refused.remedy().unwrap_or_default());
        }
    }
}

fn gated_sleeper() -> Gated {
    Gated::new(&Command::new("true"))
}

fn role_without_files() {
    let gated = gated_sleeper();
    limit(libc::RLIMIT_NOFILE, 6);
    tell_refusal(Recorder::start(gated.pid(), &Options::default(), Box::new(Vec::new())));
    gated.run();
}

fn role_without_system_call() {
    let gated = gated_sleeper();
    let statement = |code, value| libc::sock_filter { code, jt: 0, jf: 0, k: value };
    let number = libc::SYS_perf_event_open as u32;
    let mut filter = [
        // The number of the system call; where it is ours, an error, else go on.
        statement((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0),
        libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: 1, k: number },
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: installs a filter of this thread from memory that outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
    tell_refusal(Recorder::start(gated.pid(), &Options::default(), Box::new(Vec::new())));
    gated.run();
}

/// Records until the memory that a user may lock is used up.
fn role_without_memory() {
    limit(libc::RLIMIT_MEMLOCK, 0);
    let mut running = Vec::new();
    let refused = loop {
        let gated = gated_sleeper();
        match Recorder::start(gated.pid(), &Options::default(), Box::new(Vec::new())) {
            Ok(recorder) => running.push((recorder, gated)),
            refused => {
                gated.run();
                break refused;
            }
        }
        assert!(running.len() < 200, "the limit is never reached");
    };
    fact("running", running.len());
    tell_refusal(refused);
    for (recorder, gated) in running {
        gated.run();
        recorder.finish();
    }
}

fn facts_of(mut command: Command, facts: &Path) -> BTreeMap<String, String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(facts).unwrap();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn refusal(role: &str) -> BTreeMap<String, String> {
    let folder = Folder::new();
    let facts = folder.path("facts");
    facts_of(role_command(&me(), role, &facts), &facts)
}

#[test]
fn without_descriptors_it_is_refused_in_words() {
    let facts = refusal("without-files");
    assert_eq!(facts["reason"], "too many open files: sampling needs two descriptors for each CPU");
    assert_eq!(facts["remedy"], "raise the limit: ulimit -n 4096");
}

#[test]
fn behind_a_filter_of_system_calls_it_is_refused_in_words() {
    let facts = refusal("without-system-call");
    assert_eq!(facts["reason"], "perf_event_open is blocked by a seccomp filter (operation not permitted)");
    assert!(facts["remedy"].contains("docker"));
}

fn is_root() -> bool {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::geteuid() == 0 }
}

/// This binary where every user can read it, to be run by the user of this number without any privilege.
fn unprivileged(folder: &Folder, user: u32) -> Command {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path("unprivileged");
    fs::copy(me(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.args(["--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]).arg(program);
    command.current_dir("/");
    command
}

#[test]
fn a_plain_user_shares_locked_memory_with_his_other_recordings_until_it_is_used_up() {
    if !is_root() {
        println!("skipped: needs root, to become a user that records nothing else");
        return;
    }
    let folder = Folder::new();
    let facts = folder.path("facts");
    let mut command = unprivileged(&folder, 64_321);
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]).env(ROLE, "without-memory").env(FACTS, &facts);
    let facts = facts_of(command, &facts);
    let running: u32 = facts["running"].parse().unwrap();
    assert!(running >= 2, "later ones get smaller buffers: {running}");
    assert!(facts["reason"].starts_with("the memory that a user may lock for samples is used up"), "{facts:?}");
    assert!(facts["remedy"].contains("perf_event_mlock_kb"));
}

/// All of the above once more, by a user who may do nothing.
#[test]
fn everything_works_without_privilege() {
    if !is_root() || std::env::var_os(UNPRIVILEGED).is_some() {
        println!("skipped: only root can become another user");
        return;
    }
    let folder = Folder::new();
    let mut command = unprivileged(&folder, 65_534);
    let _turn = turn();
    let output = command.args(["--test-threads=1"]).env(UNPRIVILEGED, "1").envs(lists_in(&folder.0)).output().unwrap();
    take_over(&folder.0);
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Figures, for people: `cargo test -p longpole-capture --test recorder -- --ignored --nocapture figures`.
#[test]
#[ignore = "measures, asserts nothing"]
fn figures() {
    #[derive(Clone, Default)]
    struct Losses(Arc<Mutex<Vec<Loss>>>);
    impl ObservationSink for Losses {
        fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
            if let Observation::Loss(loss) = black_box(observation) {
                loss.merge_into(&mut self.0.lock().unwrap());
            }
            Ok(())
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            Ok(())
        }
    }
    let losses = Losses::default();
    let run = |role: &str, environment: &[(&str, &str)], options: Option<&Options>| {
        let folder = Folder::new();
        let facts = folder.path("facts");
        let mut command = role_command(&me(), role, &facts);
        command.envs(environment.iter().copied());
        let gated = Gated::new(&command);
        let start = std::time::Instant::now();
        let recorder = options.map(|o| Recorder::start(gated.pid(), o, Box::new(losses.clone())).unwrap());
        let started = start.elapsed();
        gated.run();
        let start = std::time::Instant::now();
        let stats = recorder.map(|r| r.finish());
        let ends = (started.as_secs_f64() * 1e3, start.elapsed().as_secs_f64() * 1e3);
        let facts = fs::read_to_string(facts).unwrap();
        let nanos = |name: &str| facts.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<f64>().ok()).unwrap() / 1e9;
        (nanos("wall "), nanos("cpu-of-all "), ends, stats)
    };
    type Load<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
    let loads: [Load<'_>; 5] = [
        ("one busy thread", "spin", &[("LONGPOLE_RECORDER_THREADS", "1"), ("LONGPOLE_RECORDER_ROUNDS", "1000000000")]),
        ("two busy threads", "spin", &[("LONGPOLE_RECORDER_THREADS", "2"), ("LONGPOLE_RECORDER_ROUNDS", "1000000000")]),
        ("20,000 switches/s", "switches", &[("LONGPOLE_RECORDER_ROUNDS", "10000")]),
        ("as many switches as can be", "switches", &[("LONGPOLE_RECORDER_ROUNDS", "50000"), ("LONGPOLE_RECORDER_WORK", "2000")]),
        ("500 × true", "execs", &[("LONGPOLE_RECORDER_ROUNDS", "500")]),
    ];
    for (name, role, environment) in loads {
        let (mut plain_best, mut best) = ((f64::MAX, f64::MAX), (f64::MAX, f64::MAX));
        for _ in 0..7 {
            let (wall, cpu, ..) = run(role, environment, None);
            plain_best = (plain_best.0.min(wall), plain_best.1.min(cpu));
            let (wall, cpu, (started, finished), stats) = run(role, environment, Some(&Options::default()));
            best = (best.0.min(wall), best.1.min(cpu));
            let stats = stats.unwrap();
            println!(
                "{name}: {wall:.3} s, start {started:.1} ms, finish {finished:.1} ms, {} samples, {} slices, {} lost, {} truncated, {} failed, recorder {:.1} ms CPU, {:.1} µs a sample",
                stats.samples,
                stats.cpu_slices,
                stats.lost,
                stats.truncated,
                stats.unwind_failed,
                stats.recorder_cpu_nanos as f64 / 1e6,
                stats.recorder_cpu_nanos as f64 / 1e3 / stats.samples.max(1) as f64,
            );
        }
        println!("{name}: losses {:?}", *losses.0.lock().unwrap());
        let (wall, cpu) = ((best.0 / plain_best.0 - 1.0) * 100.0, (best.1 / plain_best.1 - 1.0) * 100.0);
        println!(
            "{name}: best of 7: wall {:.3} -> {:.3} s ({wall:+.1} %), CPU {:.3} -> {:.3} s ({cpu:+.1} %)",
            plain_best.0, best.0, plain_best.1, best.1
        );
    }
}

/// A command that is not there: the recorder sees nothing and ends.
#[test]
fn a_command_that_never_executes_leaves_nothing() {
    let mut gate = Command::new("/bin/sh");
    gate.args(["-c", "read line; exit 0"]).stdin(Stdio::piped());
    let gated = Gated(gate.spawn().unwrap());
    let seen = Seen::default();
    let recorder = Recorder::start(gated.pid(), &Options::default(), Box::new(seen.clone())).unwrap();
    gated.run();
    let stats = recorder.finish();
    assert_eq!((stats.samples, stats.cpu_slices, stats.not_kept), (0, 0, 0));
    assert!(seen.0.lock().unwrap().iter().all(|o| matches!(o, Observation::Clock(_))));
}
