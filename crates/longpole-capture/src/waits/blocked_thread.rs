//! A blocked thread as a probe found it.

use std::sync::Arc;

use longpole_model::{ContextRecord, Futex, WaitKind};
use longpole_symbols::unwind::{AddressSpace, Frame, StackEnd, StackWalker};

use crate::sys::remote_memory::read_memory;

/// A thread as it sleeps. Its stack stays bytes until all mappings that it may lead through are known.
#[derive(Debug)]
pub(crate) struct BlockedThread {
    pub(crate) pid: u32,
    /// When it was switched out.
    pub(crate) since: u64,
    /// When it was looked at.
    pub(crate) at: u64,
    pub(crate) kind: WaitKind,
    pub(crate) syscall: &'static str,
    /// Where it will go on, instruction and stack pointer.
    pub(crate) place: (u64, u64),
    /// Empty where it could not be read.
    pub(crate) stack: Vec<u8>,
    pub(crate) context: ContextRecord,
    pub(super) futex: Option<FutexWait>,
    /// Where the stack leads, as soon as it was walked.
    pub(crate) walked: Option<(Vec<Frame>, StackEnd)>,
}

impl BlockedThread {
    /// Walks the stack, if there is one and that was not done. What it needs besides is read from the process, if that lives.
    pub(crate) fn walk(&mut self, walker: &mut StackWalker, space: Option<&Arc<AddressSpace>>) {
        if self.walked.is_some() || self.stack.is_empty() {
            return;
        }
        let read = |address, into: &mut [u8]| read_memory(self.pid, address, into).is_ok_and(|read| read == into.len());
        let mut frames = Vec::new();
        let end = walker.walk_asleep(space.unwrap_or(&Arc::default()), self.place, &self.stack, &mut frames, read);
        self.walked = Some((frames, end));
    }

    /// The futex that it waited at until then; none where its time ran out: then nobody woke it, unless the futex names who should have.
    pub(crate) fn futex_until(&self, end: u64) -> Option<Futex> {
        let has_run_out = |seen: &FutexWait| seen.deadline.is_some_and(|deadline| deadline <= end);
        let told = self.futex.as_ref().filter(|seen| seen.futex.holder.is_some() || !has_run_out(seen));
        told.map(|seen| seen.futex)
    }
}

/// A futex at which a thread sleeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct FutexWait {
    pub(super) futex: Futex,
    /// Whether it waits for the end of the thread that the futex names.
    pub(super) is_join: bool,
    /// When it goes on by itself.
    pub(super) deadline: Option<u64>,
}

#[cfg(test)]
mod tests {
    use longpole_model::AbsAddr;

    use super::*;

    #[test]
    fn who_was_not_woken_but_ran_out_of_time_waited_for_nobody() {
        let futex = Futex { address: AbsAddr(16), holder: None };
        let seen = |futex, deadline| Some(FutexWait { futex, is_join: false, deadline });
        let blocked = |futex| {
            let (kind, context) = (WaitKind::Lock, ContextRecord::Absent);
            BlockedThread {
                pid: 1,
                since: 0,
                at: 5,
                kind,
                syscall: "futex",
                place: (0, 0),
                stack: Vec::new(),
                context,
                futex,
                walked: None,
            }
        };
        assert_eq!(blocked(seen(futex, None)).futex_until(100), Some(futex));
        assert_eq!(blocked(seen(futex, Some(101))).futex_until(100), Some(futex));
        assert_eq!(blocked(seen(futex, Some(100))).futex_until(100), None);
        let held = Futex { holder: Some(8), ..futex };
        assert_eq!(blocked(seen(held, Some(100))).futex_until(100), Some(held));
        assert_eq!(blocked(None).futex_until(100), None);
    }
}
