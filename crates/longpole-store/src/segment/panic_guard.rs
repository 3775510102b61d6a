//! A guard around Arrow and Parquet: what panics behind it comes back as an error, and prints nothing.
//!
//! Their readers check much of what they read, and not all of it. What they miss ends in a slice out of range or a failed
//! `assert`. A damaged file is no bug of ours, so its reader must neither end the process nor print a backtrace.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether panics of this thread are somebody's result, not somebody's message.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Adds to the panic hook that quiet threads say nothing. Every other thread keeps the hook that was there.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.try_with(Cell::get).unwrap_or(false) {
                before(panic);
            }
        }));
    });
}

/// From now on no panic of this thread prints anything. For threads that catch and return every panic.
pub fn quiet_thread() {
    install();
    IS_QUIET.set(true);
}

/// Calls into Arrow and Parquet. A panic there is an error here, with its message.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    install();
    let before = IS_QUIET.replace(true);
    // What a panic leaves half done is the reader, which the caller drops with the error.
    let called = panic::catch_unwind(AssertUnwindSafe(call));
    IS_QUIET.set(before);
    called.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
        format!("it is damaged: Parquet's reader gave up: {}", text.unwrap_or("no reason given"))
    })
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_is_an_error_and_the_next_call_works() {
        let nothing: &[u8] = std::hint::black_box(&[]);
        assert!(guarded(|| nothing[7]).unwrap_err().contains("out of bounds"));
        assert_eq!(guarded(|| 7), Ok(7));
    }
}
