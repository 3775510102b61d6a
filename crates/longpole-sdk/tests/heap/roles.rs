//! Programs whose memory is known. The functions that a profile is to show are never inlined, and end in `black_box`: a function whose last act is a call
//! leaves no frame.

#![allow(unsafe_code, reason = "forks, exit handlers, and blocks that no safe type allocates")]
#![allow(clippy::exit, reason = "children end by it")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::cell::RefCell;
use std::hint::black_box;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

use longpole_sdk::heap;
use tracing::info_span;

pub(crate) const KNOWN_RATE: u64 = 32 << 10;
pub(crate) const KNOWN_BLOCKS: usize = 40_000;
pub(crate) const KNOWN_BYTES: usize = 1_500;

pub(crate) const THREADS: usize = 6;
pub(crate) const BLOCKS: usize = 5_000;

pub(crate) fn play(role: &str) {
    // Sampling is off: there is no profile.
    assert!(heap::write_pprof(&mut Vec::new()).unwrap_err().to_string().contains("heap::start()"));
    // A block from before the start may be freed after it.
    let early = black_box(vec![1_u8; 100]);
    let rate = if role == "known" { KNOWN_RATE } else { 1 };
    heap::Options::new().sample_bytes(rate).start();
    drop(early);
    match role {
        "known" => longpole_sdk::run(known),
        "threads" => threads(),
        "realloc" => {
            let (grown, shrunk) = (grows(), shrinks());
            write_profile();
            drop((grown, shrunk));
        }
        "unusual" => unusual(),
        "fork" => fork(),
        "storage" => storage(),
        "deep" => {
            let block = deep_down(300);
            write_profile();
            drop(block);
        }
        "push" => push(),
        other => panic!("{other} is no role"),
    }
}

fn write_profile() {
    let mut profile = Vec::new();
    heap::write_pprof(&mut profile).unwrap();
    std::io::stdout().write_all(&profile).unwrap();
}

#[inline(never)]
fn keeps() -> Vec<Box<[u8]>> {
    black_box((0..KNOWN_BLOCKS).map(|_| black_box(vec![1; KNOWN_BYTES].into_boxed_slice())).collect())
}

#[inline(never)]
fn frees() {
    for _ in 0..KNOWN_BLOCKS {
        black_box(vec![1_u8; KNOWN_BYTES]);
    }
}

#[inline(never)]
fn known() {
    let kept = info_span!("keeping").in_scope(|| {
        let traceparent = longpole_sdk::current_traceparent().unwrap();
        std::io::stderr().write_all(format!("{traceparent}\n").as_bytes()).unwrap();
        keeps()
    });
    info_span!("freeing").in_scope(frees);
    write_profile();
    drop(kept);
}

#[inline(never)]
fn allocates_for_others() -> Box<[u8; 24]> {
    black_box(Box::new([7; 24]))
}

/// Each thread sends its blocks to the next one, which frees them; half of the threads end before their blocks are freed.
fn threads() {
    std::thread::scope(|scope| {
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel::<Box<[u8; 24]>>()).unzip();
        senders.rotate_left(1);
        for (number, sender) in senders.into_iter().enumerate() {
            let receiver = receivers.remove(0);
            scope.spawn(move || {
                for _ in 0..BLOCKS {
                    sender.send(allocates_for_others()).unwrap();
                    if number % 2 == 0 {
                        receiver.try_iter().take(2).for_each(drop);
                    }
                }
                drop(sender);
                std::thread::spawn(move || receiver.into_iter().for_each(drop)).join().unwrap();
            });
        }
        // Meanwhile profiles are written.
        for _ in 0..20 {
            heap::write_pprof(&mut std::io::sink()).unwrap();
        }
    });
    write_profile();
}

#[inline(never)]
fn grows() -> Vec<u32> {
    let mut grown: Vec<u32> = Vec::with_capacity(1);
    (0..1 << 18).for_each(|number| {
        if grown.len() == grown.capacity() {
            grown.reserve_exact(grown.capacity());
        }
        grown.push(number);
    });
    black_box(grown)
}

#[inline(never)]
fn shrinks() -> Vec<u8> {
    let mut shrunk: Vec<u8> = Vec::with_capacity(1 << 20);
    shrunk.resize(100, 1);
    shrunk.shrink_to_fit();
    black_box(shrunk)
}

const PAGE: Layout = match Layout::from_size_align(8_192, 4_096) {
    Ok(layout) => layout,
    Err(_) => panic!("a valid layout"),
};

#[inline(never)]
fn over_aligned() -> *mut u8 {
    // SAFETY: the layout has a size, and each block is freed at most once, with it.
    let [freed, kept] = [(); 2].map(|()| black_box(unsafe { alloc(PAGE) }));
    assert!(kept.addr() % 4_096 == 0);
    // SAFETY: as above.
    unsafe { dealloc(freed, PAGE) };
    black_box(kept)
}

#[inline(never)]
#[allow(clippy::type_complexity, reason = "what has no size")]
fn without_size() -> (Vec<()>, Box<()>, Vec<[u8; 0]>) {
    black_box((vec![(); 1_000], Box::new(()), Vec::with_capacity(10)))
}

#[inline(never)]
fn zeroed() -> *mut u8 {
    // SAFETY: the layout has a size.
    let block = unsafe { alloc_zeroed(Layout::new::<[u8; 5_000]>()) };
    // SAFETY: the block has 5,000 bytes, which are zero.
    assert!((0..5_000).all(|at| unsafe { *block.add(at) } == 0));
    black_box(block)
}

#[inline(never)]
fn too_large() -> *mut u8 {
    const TOO_LARGE: usize = isize::MAX as usize / 2;
    let small = Layout::new::<[u8; 300]>();
    // SAFETY: the layouts have a size, and what cannot be allocated is null.
    unsafe {
        // The compiler may leave out a block that nobody uses, and then it is not null.
        assert!(black_box(alloc(Layout::from_size_align(TOO_LARGE, 8).unwrap())).is_null());
        let block = black_box(alloc(small));
        assert!(black_box(realloc(block, small, TOO_LARGE)).is_null());
        black_box(block)
    }
}

fn unusual() {
    let (aligned, nothing, zeroed, small) = (over_aligned(), without_size(), zeroed(), too_large());
    write_profile();
    drop(nothing);
    // SAFETY: each block is freed once, with its layout.
    unsafe {
        dealloc(aligned, PAGE);
        dealloc(zeroed, Layout::new::<[u8; 5_000]>());
        dealloc(small, Layout::new::<[u8; 300]>());
    }
}

#[inline(never)]
fn before_the_fork() -> Box<[u8; 77]> {
    black_box(Box::new([1; 77]))
}

/// Forks while other threads sample without a pause, so that some child is made while the lock is held.
fn fork() {
    // A child frees it, too.
    let mut kept = Some(before_the_fork());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    black_box(vec![1_u8; 50]);
                }
            });
        }
        for _ in 0..50 {
            // SAFETY: the child allocates, as programs do that make daemons, and ends.
            match unsafe { libc::fork() } {
                0 => in_the_child(kept.take()),
                child => {
                    let mut status = 0;
                    // SAFETY: waits for a child, and `status` is a valid place for the answer.
                    unsafe { libc::waitpid(child, &mut status, 0) };
                    assert_eq!(status, 0, "a child that hangs is ended by its alarm");
                }
            }
        }
        is_over.store(true, Relaxed);
    });
    write_profile();
    drop(kept);
}

fn in_the_child(kept: Option<Box<[u8; 77]>>) -> ! {
    // SAFETY: takes a number.
    unsafe { libc::alarm(20) };
    drop(kept);
    let blocks: Vec<Vec<u8>> = (1..2_000).map(|size| black_box(vec![1; size])).collect();
    drop(blocks);
    let error = heap::write_pprof(&mut std::io::sink()).unwrap_err();
    assert!(error.to_string().contains("forked child"));
    heap::start();
    std::process::exit(0)
}

/// Allocates when it is dropped.
struct Late(Option<Vec<u8>>);

#[inline(never)]
fn in_a_destructor() -> Vec<u8> {
    black_box(vec![1; 64])
}

impl Drop for Late {
    fn drop(&mut self) {
        self.0 = Some(in_a_destructor());
    }
}

thread_local! {
    static FIRST: RefCell<Late> = const { RefCell::new(Late(None)) };
    static LAST: RefCell<Late> = const { RefCell::new(Late(None)) };
}

extern "C" fn at_exit() {
    drop(in_a_destructor());
}

fn storage() {
    for _ in 0..50 {
        std::thread::spawn(|| FIRST.with(|_| LAST.with(|last| last.borrow_mut().0 = Some(black_box(vec![2; 3]))))).join().unwrap();
    }
    write_profile();
    // SAFETY: the handler has the required signature and lives as long as the program.
    unsafe { libc::atexit(at_exit) };
}

#[inline(never)]
fn deep_down(left: usize) -> Box<[u8; 1_000]> {
    black_box(if left == 0 { Box::new([1; 1_000]) } else { deep_down(left - 1) })
}

#[inline(never)]
fn pushed(bytes: usize) -> Vec<u8> {
    black_box(vec![1; bytes])
}

/// Waits for two pushes, and ends.
fn push() {
    let kept = pushed(3_000);
    {
        let _span = longpole_sdk::enter_span_context([7; 16], [9; 8], 1);
        drop(pushed(50_000));
    }
    // Two turns of a second each: nobody tells when a push has arrived.
    std::thread::park_timeout(Duration::from_millis(2_300));
    // In use to the end.
    std::mem::forget(kept);
}
