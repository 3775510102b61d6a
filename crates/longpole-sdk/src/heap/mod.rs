//! Heap profiles: which functions, and which spans, allocated the memory that is still in use.
//!
//! **You bring** the program. Make [`Allocator`] its global allocator and call [`start`] early in `main`:
//!
//! ```no_run
//! #[global_allocator]
//! static ALLOCATOR: longpole_sdk::heap::Allocator = longpole_sdk::heap::Allocator::new();
//!
//! fn main() -> std::io::Result<()> {
//!     longpole_sdk::heap::start();
//!     longpole_sdk::run(|| { /* the program */ });
//!     longpole_sdk::heap::write_pprof(&mut std::fs::File::create("heap.pb")?)
//! }
//! ```
//!
//! **It does** three things:
//!
//! - It samples one allocation in 512 KiB on average (`LONGPOLE_HEAP_SAMPLE_BYTES`), and keeps for each sample the stack, the size, and the
//!   current span of the thread with its name, until the program frees the block.
//! - It pushes a profile to `longpole serve`, or a Pyroscope, at `LONGPOLE_HEAP_SERVER` every 15 seconds, and when the process ends.
//! - [`write_pprof`] writes a profile at any time, for `go tool pprof` and the like.
//!
//! A profile has the types of Go's and jemalloc's heap profiles: `inuse_space` and `inuse_objects` (the default is the first), `alloc_space` and
//! `alloc_objects`. Numbers are estimates without bias: a sampled block of *s* bytes counts for *s* / (1 − exp(−*s* / 512 KiB)) bytes.
//!
//! **It refuses** to run on systems other than Linux: the allocator hands everything through there, and [`start`] says so on stderr. It does not see
//! memory that C libraries allocate, nor mappings.
//!
//! # What is exact, and what is not
//!
//! - Allocations before [`start`] are unknown; a thread that ran before joins after at most 64 KiB more.
//! - `inuse_*` of a row belongs to its span exactly. A pushed profile has `alloc_*` by span for the first 32,768 samples of an interval; the rest
//!   counts by stack. A written profile has `alloc_*` by span for the memory in use, and by stack for the rest: spans that left nothing behind are forgotten.
//! - The name of a span is the one in the source (`info_span!("this")`), not `otel.name`, and only with our own span processor; ids come with all.
//! - Functions have the names of the file's symbol table. An inlined function counts for its caller, and there are no lines. A stripped file has
//!   offsets and its build id.
//! - A forked child samples no more. Its parent goes on.
//!
//! # What it costs
//!
//! An allocation that is not sampled costs a subtraction and a branch, a free one a load and a test of a bit. A sample costs about 1 µs where the stack is that
//! of the last one, and up to 0.12 µs more for each frame that differs; the example `heap_cost` of this crate measures it. At most 98,304 samples are
//! live at a time (48 GiB at the default), of 32,767 different stacks of up to 128 frames: 27 MB of tables, and pages that are not used take no memory. What
//! does not fit is counted, written into the profile as a comment, and reported once on stderr.

mod allocator;
#[cfg(not(all(target_os = "linux", not(target_arch = "arm"))))]
mod elsewhere;
mod options;
#[cfg(all(target_os = "linux", not(target_arch = "arm")))]
mod profile;
#[cfg(all(target_os = "linux", not(target_arch = "arm")))]
mod push;
#[cfg(all(target_os = "linux", not(target_arch = "arm")))]
mod recorder;

use std::io::{self, Write};

pub use self::allocator::Allocator;
#[cfg(not(all(target_os = "linux", not(target_arch = "arm"))))]
use self::elsewhere as recorder;
pub use self::options::Options;

/// Starts sampling, as the environment says: [`Options::start`] with nothing chosen.
pub fn start() {
    Options::new().start();
}

/// Writes a heap profile as pprof, not compressed: what is in use now, and what was allocated since [`start`].
///
/// ```
/// let mut profile = Vec::new();
/// // Nothing was started here.
/// assert!(longpole_sdk::heap::write_pprof(&mut profile).is_err());
/// ```
///
/// # Errors
///
/// Sampling has not started, this is a forked child or no Linux, or `out` fails.
pub fn write_pprof(out: &mut impl Write) -> io::Result<()> {
    #[cfg(all(target_os = "linux", not(target_arch = "arm")))]
    return out.write_all(&profile::since_start()?);
    #[cfg(not(all(target_os = "linux", not(target_arch = "arm"))))]
    {
        let _ = out;
        Err(io::Error::new(io::ErrorKind::Unsupported, recorder::WHY_NOT))
    }
}
