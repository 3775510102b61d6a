//! A blocked thread as a probe found it.

use std::sync::Arc;

use longpole_model::{ContextRecord, Futex, WaitKind};
use longpole_symbols::unwind::{AddressSpace, Frame, Registers, StackEnd, StackWalker};

use super::goroutines::AwaitedGoroutine;
use crate::frames::jvm::Jvms;
use crate::frames::python::Ends;
use crate::slow_walks::SlowWalks;
use crate::sys::remote_memory::read_memory;

/// Most bytes of the stack of a thread of Java: frameworks call each other a hundred times.
const JAVA_STACK_BYTES_MAX: usize = 128 << 10;

/// A blocked thread. Its stack stays bytes until all mappings that it may lead through are known.
#[derive(Debug)]
pub(crate) struct BlockedThread {
    pub(crate) pid: u32,
    /// When it was switched out.
    pub(crate) since: u64,
    /// When it was probed.
    pub(crate) at: u64,
    pub(crate) kind: WaitKind,
    pub(crate) syscall: &'static str,
    /// Its instruction pointer and stack pointer.
    pub(crate) place: (u64, u64),
    /// Empty if it could not be read.
    pub(crate) stack: Vec<u8>,
    pub(crate) context: ContextRecord,
    pub(super) futex: Option<FutexWait>,
    /// When the time of its call runs out.
    pub(super) deadline: Option<u64>,
    /// For which goroutine it waits, if it is a thread of a Go program.
    pub(super) goroutine: Option<AwaitedGoroutine>,
    /// Whether it waits for several descriptors and is not idle: it may run an event loop.
    pub(super) is_polling: bool,
    /// The unwound stack, once it is unwound.
    pub(crate) walked: Option<(Vec<Frame>, StackEnd)>,
}

impl BlockedThread {
    /// Unwinds the stack, if there is one and that is not done. Reads more memory of the process as needed, if it lives.
    pub(crate) fn walk(
        &mut self,
        (walker, slow_walks): (&mut StackWalker, &mut SlowWalks),
        space: Option<&Arc<AddressSpace>>,
        jvms: &mut Jvms,
    ) {
        if self.walked.is_some() || self.stack.is_empty() {
            return;
        }
        let none = Arc::default();
        let space = space.unwrap_or(&none);
        if let Some(goroutine) = &self.goroutine {
            self.walked = Some(goroutine.stack(space));
            return;
        }
        let pid = self.pid;
        let read = |address, into: &mut [u8]| read_memory(pid, address, into).is_ok_and(|read| read == into.len());
        let mut frames = Vec::new();
        let (place, at) = (self.place, self.at);
        let mut walk = |stack: &[u8], jvms: &mut Jvms| {
            slow_walks.walk(pid, at, || walker.walk_asleep(space, place, stack, &mut frames, read, jvms.of(pid, at)))
        };
        let mut end = walk(&self.stack, jvms);
        if end.is_some_and(|end| end.is_truncated()) && jvms.has(pid) && self.read_more() {
            end = walk(&self.stack, jvms);
        }
        let registers = Registers { ip: place.0, sp: place.1, ..Registers::default() };
        let end = end.unwrap_or_else(|| StackWalker::leaf(space, &registers, &mut frames));
        self.walked = Some((frames, end));
    }

    /// Copies more of the stack, up to its end; whether there is more. It does not change while the thread sleeps.
    fn read_more(&mut self) -> bool {
        let had = self.stack.len();
        self.stack.resize(JAVA_STACK_BYTES_MAX.max(had), 0);
        let (top, rest) = (self.place.1.saturating_add(had as u64), self.stack.get_mut(had..).unwrap_or_default());
        let read = read_memory(self.pid, top, rest).unwrap_or(0);
        self.stack.truncate(had + read);
        read > 0
    }

    /// Whether the time of its call has run out by then.
    fn has_run_out(&self, end: u64) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= end)
    }

    /// How its wait ended, if it may be that of an event loop.
    pub(crate) fn ends(&self, end: u64) -> Ends {
        match self.has_run_out(end) {
            _ if !self.is_polling => Ends::Unasked,
            true => Ends::ByTimer,
            false => Ends::ByEvent,
        }
    }

    /// The futex that it waited at until `end`, and what it waited for. If its time ran out, nobody woke it, unless the futex names its holder.
    pub(crate) fn until(&self, end: u64) -> (Option<Futex>, WaitKind) {
        let kind_of_timer = |kind: WaitKind| if self.has_run_out(end) { WaitKind::Sleep } else { kind };
        if let Some(goroutine) = &self.goroutine {
            return (None, if goroutine.may_sleep { kind_of_timer(goroutine.kind) } else { goroutine.kind });
        }
        match &self.futex {
            Some(seen) if seen.futex.holder.is_some() => (Some(seen.futex), self.kind),
            // A server that looks around now and again is as idle as one that does not.
            _ if self.kind == WaitKind::Idle => (None, WaitKind::Idle),
            _ if self.has_run_out(end) => (None, WaitKind::Sleep),
            seen => (seen.map(|seen| seen.futex), self.kind),
        }
    }
}

/// A futex at which a thread waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct FutexWait {
    pub(super) futex: Futex,
    /// Whether it waits for the end of the holder (pthread_join(3)).
    pub(super) is_join: bool,
}

#[cfg(test)]
mod tests {
    use longpole_model::AbsAddr;

    use super::*;

    /// A thread that was blocked in this call from 0 on.
    fn blocked(kind: WaitKind, syscall: &'static str, deadline: Option<u64>) -> BlockedThread {
        let (context, stack) = (ContextRecord::Absent, Vec::new());
        let (futex, goroutine, walked) = (None, None, None);
        let (pid, since, at, place) = (1, 0, 5, (0, 0));
        BlockedThread { pid, since, at, kind, syscall, place, stack, context, futex, deadline, goroutine, is_polling: false, walked }
    }

    #[test]
    fn a_wait_for_several_descriptors_ends_by_its_timer_or_by_an_event() {
        let ends = |is_polling, deadline| BlockedThread { is_polling, ..blocked(WaitKind::Network, "epoll_wait", deadline) }.ends(100);
        assert_eq!([ends(true, Some(100)), ends(true, Some(101)), ends(true, None)], [Ends::ByTimer, Ends::ByEvent, Ends::ByEvent]);
        assert_eq!(ends(false, Some(100)), Ends::Unasked);
    }

    #[test]
    fn a_thread_that_timed_out_slept_unless_its_lock_has_a_holder() {
        let futex = Futex { address: AbsAddr(16), holder: None };
        let until = |futex: Option<Futex>, deadline| {
            let futex = futex.map(|futex| FutexWait { futex, is_join: false });
            BlockedThread { futex, ..blocked(WaitKind::Lock, "futex", deadline) }.until(100)
        };
        assert_eq!(until(Some(futex), None), (Some(futex), WaitKind::Lock));
        assert_eq!(until(Some(futex), Some(101)), (Some(futex), WaitKind::Lock));
        assert_eq!(until(Some(futex), Some(100)), (None, WaitKind::Sleep));
        let held = Futex { holder: Some(8), ..futex };
        assert_eq!(until(Some(held), Some(100)), (Some(held), WaitKind::Lock));
        assert_eq!((until(None, None), until(None, Some(100))), ((None, WaitKind::Lock), (None, WaitKind::Sleep)));
    }
}
