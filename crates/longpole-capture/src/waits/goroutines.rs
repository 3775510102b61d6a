//! What the threads of a Go program wait for on behalf of its goroutines.
//!
//! A goroutine that waits has no thread. The last thread of a process that has nothing to run waits in `runtime.netpoll` for the timers and sockets of
//! all goroutines, and goes on with the first of them that can. So the wait of that thread is theirs, and one of them is chosen to name it:
//!
//! ```text
//! main.main      WaitGroup.Wait                 waits for others
//! main.main.1    Mutex.Lock                     waits for others
//! main.main.2    time.Sleep ◄─ main.callBank    its wait has an end of its own: chosen
//! thread         epoll_pwait ◄─ runtime.netpoll
//! ```
//!
//! The choice is inferred: with several that wait for something outside, any may be the one that matters.

use std::collections::HashMap;
use std::sync::Arc;

use longpole_model::{AbsAddr, CodeAddress, Loss, LossKind, WaitKind};
use longpole_symbols::go::{GoProgram, Goroutine, Goroutines, Missing, Reason, Whose};
use longpole_symbols::unwind::{AddressSpace, Code, Frame, StackEnd};

use super::blocked_call::BlockedCall;
use crate::cpu_budget::CpuBudget;
use crate::execs::Execs;
use crate::perf::record::{Body, MapRecord, Record};
use crate::sys::clock::thread_cpu_nanos;
use crate::sys::remote_memory::ProcessMemory;
use longpole_model::fast_hash::FastMap;

/// Bytes of the stack of a thread in which `runtime.netpoll` must be: two small functions lie below it.
const POLL_WITHIN: usize = 1024;

/// Looks may take one part in this many of a CPU on average: 10 to 500 µs each, by the number of goroutines. Beyond that only the last one that was
/// chosen is read.
const LOOKS_PART: i64 = 100;

/// CPU time that looks may take in a burst.
const LOOKS_NANOS_AT_ONCE: i64 = 5_000_000;

/// The goroutine for which a thread waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwaitedGoroutine {
    /// Return addresses, leaf first.
    pub(crate) callers: Vec<u64>,
    /// Whether the last of them is the root.
    pub(crate) is_whole: bool,
    pub(crate) kind: WaitKind,
    /// Whether it waits for a timer if the time of the thread's call runs out.
    pub(crate) may_sleep: bool,
}

impl AwaitedGoroutine {
    /// Its stack, in the mappings of its process.
    pub(super) fn stack(&self, space: &AddressSpace) -> (Vec<Frame>, StackEnd) {
        let frame = |caller: &u64| {
            let address = CodeAddress::Return(AbsAddr(*caller));
            Frame { address, place: space.locate(address.for_lookup()), sp: 0, fp: 0 }
        };
        (self.callers.iter().map(frame).collect(), if self.is_whole { StackEnd::Root } else { StackEnd::Astray })
    }
}

/// A Go program in a process.
#[derive(Debug)]
struct Home {
    since: u64,
    program: Arc<GoProgram>,
    /// Added to an address that the binary states.
    bias: u64,
    reader: Result<Goroutines, Missing>,
    /// The last goroutine that was chosen.
    last: Option<Goroutine>,
}

/// The Go programs of a recording.
#[derive(Debug)]
pub(crate) struct GoPrograms {
    homes: FastMap<u32, Home>,
    /// Waits whose goroutine is unknown, by reason.
    missed: HashMap<Missing, u64>,
    budget: CpuBudget,
}

impl GoPrograms {
    pub(crate) fn new() -> GoPrograms {
        let budget = CpuBudget::new(LOOKS_PART, LOOKS_NANOS_AT_ONCE);
        GoPrograms { homes: FastMap::default(), missed: HashMap::new(), budget }
    }

    /// A record of the tracker has arrived, possibly out of order. `execs` has taken it.
    pub(crate) fn arrived(&mut self, record: &Record<'_>, execs: &Execs) {
        match record.body {
            Body::Comm { exec: true, .. } if self.homes.get(&record.pid).is_some_and(|home| home.since < execs.last(record.pid)) => {
                self.homes.remove(&record.pid);
            }
            Body::Exit { pid, tid } if pid == tid => {
                self.homes.remove(&pid);
            }
            _ => {}
        }
    }

    /// The code of a mapping was read.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, map: &MapRecord<'_>, code: &Code, execs: &Execs) {
        let Code::Mapped { binary: Some(binary), .. } = code else { return };
        let Some(program) = binary.go() else { return };
        if time < execs.last(pid) || self.homes.contains_key(&pid) {
            return;
        }
        let Some(bias) = binary.address_in_process(0, map.start, map.file_offset) else { return };
        let bias = bias.0;
        let reader = Goroutines::new(program, |stated| Some(stated.wrapping_add(bias)));
        self.homes.insert(pid, Home { since: time, program: Arc::clone(program), bias, reader, last: None });
    }

    /// The goroutine for which a thread waits; `None` if the process is no Go program, or its threads wait for something else.
    pub(super) fn awaited(&mut self, (pid, now): (u32, u64), call: &BlockedCall, stack: &[u8], kind: WaitKind) -> Option<AwaitedGoroutine> {
        let home = self.homes.get_mut(&pid)?;
        // A server that waits to be called is idle, whatever its goroutines do.
        if !is_epoll(call.number) || kind == WaitKind::Idle {
            return None;
        }
        let before = thread_cpu_nanos();
        let outcome = home.awaited(pid, stack, kind, self.budget.has_some(now));
        self.budget.spend(thread_cpu_nanos().saturating_sub(before));
        match outcome {
            Ok(awaited) => awaited,
            Err(Missing::Gone) => None,
            Err(missing) => {
                *self.missed.entry(missing).or_insert(0) += 1;
                None
            }
        }
    }

    /// What is missing and not yet reported.
    pub(crate) fn losses(&mut self) -> Vec<Loss> {
        let missed = self.missed.drain();
        let loss =
            |(missing, count): (Missing, u64)| Loss::new(LossKind::FunctionsNotSeen, count, format!("goroutines that wait: {missing}"));
        let mut losses: Vec<Loss> = missed.map(loss).collect();
        losses.sort_by(|a, b| a.detail.cmp(&b.detail));
        losses
    }
}

fn is_epoll(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return true;
    }
    number == libc::SYS_epoll_pwait || number == libc::SYS_epoll_pwait2
}

impl Home {
    fn awaited(&mut self, pid: u32, stack: &[u8], kind: WaitKind, has_time: bool) -> Result<Option<AwaitedGoroutine>, Missing> {
        let reader = self.reader.as_mut().map_err(|missing| *missing)?;
        let symbols = self.program.symbols.as_ref().ok_or(Missing::NoSymbols)?;
        let bias = self.bias;
        let stated = |address: u64| address.wrapping_sub(bias);
        let words = stack[..stack.len().min(POLL_WITHIN)].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        if !words.into_iter().any(|word| symbols.poll.contains(&stated(word))) {
            return Ok(None);
        }
        let whose = |address: u64| symbols.packages.at(stated(address));
        let is_root = |address: u64| whose(address) == Whose::Root;
        let memory = ProcessMemory { pid };
        let with_standing = |it: Goroutine| (Standing::of((it.id, it.reason, &it.callers), whose), it);
        let (most, otherwise) = if has_time {
            let look = reader.read(&memory, is_root)?;
            let most = look.waiting.into_iter().map(with_standing).max_by_key(|(standing, _)| *standing);
            (most, if look.are_more { Err(Missing::TooMany) } else { Ok(None) })
        } else {
            let again = self.last.as_ref().map(|last| reader.read_again(&memory, last, is_root)).transpose()?.flatten();
            (again.map(with_standing).filter(|(standing, _)| standing.waits == For::Outside), Err(Missing::NoTime))
        };
        let Some((standing, goroutine)) = most.filter(|(standing, _)| standing.in_program) else { return otherwise };
        self.last = Some(goroutine.clone());
        let Some(Goroutine { callers, is_whole, reason, .. }) = reader.read_whole(&memory, goroutine, is_root)? else {
            return Err(Missing::Torn);
        };
        let (kind, may_sleep) = kind_of(reason, standing.waits, kind);
        Ok(Some(AwaitedGoroutine { callers, is_whole, kind, may_sleep }))
    }
}

/// What a goroutine waits for, the least telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum For {
    /// To be called.
    Calls,
    /// Other goroutines.
    Others,
    /// Others, or a timer.
    OthersOrTimer,
    /// Something outside: its wait ends by itself.
    Outside,
}

/// How well a goroutine explains why its process waits, the least telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    /// Whether it runs functions of the program.
    in_program: bool,
    /// Whether it is that of `main.main`, and does not wait for others.
    is_main: bool,
    waits: For,
    /// What was started last is mostly what the others wait for; what has run from the start serves them.
    id: u64,
}

impl Standing {
    /// By the functions between the wait and the program's own.
    fn of((id, reason, callers): (u64, Reason, &[u64]), whose: impl Fn(u64) -> Whose) -> Standing {
        let mut owners = callers.iter().map(|caller| whose(caller.wrapping_sub(1)));
        let (mut in_program, mut accepts, mut is_outside) = (false, false, false);
        for owner in &mut owners {
            match owner {
                Whose::Program => {
                    in_program = true;
                    break;
                }
                Whose::Accepts => accepts = true,
                Whose::Outside => is_outside = true,
                Whose::Plain | Whose::Root => {}
            }
        }
        let waits = match reason {
            _ if accepts => For::Calls,
            Reason::Sleep | Reason::Network => For::Outside,
            Reason::Channel if is_outside => For::Outside,
            Reason::Channel => For::OthersOrTimer,
            Reason::Lock | Reason::Others => For::Others,
        };
        Standing { in_program, is_main: id == 1 && waits == For::Outside, waits, id }
    }
}

/// The kind of the wait, and whether a timer may end it; `kind` is that of the descriptors that the thread watches.
fn kind_of(reason: Reason, waits: For, kind: WaitKind) -> (WaitKind, bool) {
    let is_outside = matches!(kind, WaitKind::Network | WaitKind::Pipe);
    match reason {
        _ if waits == For::Calls => (WaitKind::Idle, false),
        Reason::Sleep => (WaitKind::Sleep, true),
        Reason::Network if is_outside => (kind, false),
        Reason::Network => (WaitKind::Network, false),
        Reason::Channel if waits == For::Outside && is_outside => (kind, false),
        Reason::Channel => (WaitKind::Queue, true),
        Reason::Lock => (WaitKind::Lock, false),
        Reason::Others => (WaitKind::Queue, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the one that is chosen, of goroutines with a number, a reason and the owners of their functions, leaf first.
    fn chosen(goroutines: &[(u64, Reason, &[Whose])]) -> Option<u64> {
        let standing = |(id, reason, owners): &(u64, Reason, &[Whose])| {
            let callers: Vec<u64> = (1..=owners.len() as u64).collect();
            Standing::of((*id, *reason, &callers), |address| owners[address as usize])
        };
        goroutines.iter().map(standing).max().filter(|standing| standing.in_program).map(|standing| standing.id)
    }

    #[test]
    fn the_goroutine_of_the_program_whose_wait_ends_by_itself_is_chosen() {
        use Whose::{Accepts, Outside, Plain, Program, Root};
        let main = (1, Reason::Others, &[Plain, Program][..]);
        let sleeps = (7, Reason::Sleep, &[Plain, Plain, Program, Root][..]);
        let locks = (9, Reason::Lock, &[Plain, Program][..]);
        assert_eq!(chosen(&[main, sleeps, locks]), Some(7), "the others wait for it");
        let of_library = (8, Reason::Network, &[Plain, Outside, Root][..]);
        let asks = (5, Reason::Channel, &[Plain, Outside, Program][..]);
        assert_eq!(chosen(&[main, of_library, asks]), Some(5), "an answer comes to a goroutine of the library first");
        let channel = (6, Reason::Channel, &[Plain, Program, Outside][..]);
        assert_eq!(chosen(&[main, channel, asks]), Some(5));
        assert_eq!(chosen(&[main, channel]), Some(6));
        let main_sleeps = (1, Reason::Sleep, &[Plain, Program][..]);
        assert_eq!(chosen(&[main_sleeps, sleeps]), Some(1), "what others do beside it is over when it is");
        let accepts = (20, Reason::Network, &[Plain, Accepts, Outside, Program][..]);
        assert_eq!(chosen(&[accepts, main]), Some(1));
        assert_eq!((chosen(&[of_library]), chosen(&[])), (None, None));
    }

    #[test]
    fn the_kind_of_a_wait_is_that_of_its_goroutine() {
        let of = |reason, waits, kind| kind_of(reason, waits, kind);
        assert_eq!(of(Reason::Sleep, For::Outside, WaitKind::Queue), (WaitKind::Sleep, true));
        assert_eq!(of(Reason::Network, For::Outside, WaitKind::Pipe), (WaitKind::Pipe, false));
        assert_eq!(of(Reason::Network, For::Outside, WaitKind::Queue), (WaitKind::Network, false));
        assert_eq!(of(Reason::Network, For::Calls, WaitKind::Network), (WaitKind::Idle, false));
        assert_eq!(of(Reason::Channel, For::Outside, WaitKind::Network), (WaitKind::Network, false));
        assert_eq!(of(Reason::Channel, For::OthersOrTimer, WaitKind::Network), (WaitKind::Queue, true));
        assert_eq!(of(Reason::Lock, For::Others, WaitKind::Queue), (WaitKind::Lock, false));
        assert_eq!(of(Reason::Others, For::Others, WaitKind::Queue), (WaitKind::Queue, false));
    }
}
