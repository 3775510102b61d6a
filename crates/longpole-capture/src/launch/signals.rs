//! Which signals to forward to the command, and which are our own.
//!
//! The command must get the signals that it would get without us, once each:
//!
//! | source | reaches | so we |
//! |---|---|---|
//! | the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, resize) | the foreground group: the command and us | do nothing |
//! | the terminal's end, when we lead the session | us alone, SIGHUP and SIGCONT | hand it on |
//! | a timer that we inherited (`alarm` before exec) | us alone | hand it on |
//! | `kill PID`, a supervisor, `docker stop` | us alone | hand it on |
//! | `kill -PGID`, `kill %1` | the command and us | do nothing |
//! | the command itself, or its descendants by `kill 0` | us too | do nothing |
//!
//! `si_code` shows a handler whether the kernel or a process sent a signal, but not whether it went to the group (sigaction(2)). That matters: a
//! deployment engine takes the first SIGINT as a request and the second as an order to drop everything, and a script that traps SIGTERM with
//! `kill 0` would get its own signal for ever. So [`install`] starts a *signal witness*: a process in our group that only reports whether it got a
//! signal from the same sender. It has no open files, no arguments and another name; it ends when the command ends or when we die. Without
//! a witness, or without its answer, we forward the signal: twice is better than never. A sender that signals each process in turn, like a
//! service manager with a control group, may also cause two: then it depends on whether the witness had its signal before we asked.
//!
//! No process can catch SIGKILL and SIGSTOP. A fault is for the process that it hits, but batch systems and people send some of them as well:
//! we catch SIGFPE, SIGTRAP and SIGSYS, and they end us as usual if the kernel sent them. We leave SIGSEGV, SIGBUS and SIGILL alone. A SIGXCPU of
//! the kernel is about our own CPU time, and not for the command, which has a count of its own. SIGTTIN and SIGTTOU keep their inherited
//! disposition: the kernel sends them to the whole group and restarts what they interrupt, so a handler would cause a busy loop.
//!
//! Before the command starts, SIGINT, SIGTERM, SIGHUP and SIGQUIT end us ([`begin`]): the command would have no handler yet either.
//!
//! After the command has ended, SIGINT, SIGTERM, SIGHUP and SIGQUIT interrupt us ([`interrupted`]); a second one ends us at once, with the
//! status of the command. Others are dropped.

use std::sync::{Mutex, OnceLock, PoisonError};

use longpole_model::Exit;

use crate::launch::error::LaunchError;
use crate::launch::signal_witness;
use crate::sys::handler::{self, Events};
use crate::sys::inherited;
use crate::sys::job_control;
use crate::sys::signal::{self, Event, Pid, SignalSet};
use crate::sys::signal_witness::SENDER_KERNEL;

/// The signals to catch, besides the real-time signals.
const CAUGHT: [i32; 23] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGCHLD,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGURG,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSYS,
];

/// The signals that interrupt us once the command has ended.
const INTERRUPTS: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The signals that get their inherited disposition back once the command has ended: job control is then ours alone.
const GIVEN_BACK: [i32; 2] = [libc::SIGTSTP, libc::SIGCONT];

/// The stop signals that the kernel sends to a group.
const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

static EVENTS: OnceLock<Events> = OnceLock::new();
/// Which signals are taken over.
static INSTALLED: Mutex<Installed> = Mutex::new(Installed::None);

/// How far the signals of this process are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Installed {
    /// None.
    None,
    /// All except those that interrupt.
    ButInterrupts,
    /// All, until the command ends.
    All,
}

fn caught() -> SignalSet {
    SignalSet::of(CAUGHT.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()))
}

/// The signals that the main thread, and threads that it starts, block while the command lives. SIGABRT and SIGPIPE may be our own.
fn held_back() -> SignalSet {
    caught().without(SignalSet::of([libc::SIGABRT, libc::SIGPIPE]))
}

/// Takes over the signals of this process except SIGINT, SIGTERM, SIGHUP and SIGQUIT, which still end us: a user can end a run that waits before its
/// command starts, such as for a store on a disk that does not answer. Call it from the main thread, first in a run. Signals that come before
/// the command starts wait for it.
///
/// # Errors
///
/// If the system refuses handlers or descriptors.
pub fn begin() -> Result<(), LaunchError> {
    // As PID 1 nothing ends us that has no handler: the kernel would drop it, and the command never see it.
    take_over(if job_control::own_pid() == 1 { Installed::All } else { Installed::ButInterrupts })
}

/// Takes over all signals of this process that [`begin`] left. Call it from the main thread before the run starts threads: they leave all signals to
/// the main thread. Signals that come before the command starts wait for it. A second call does nothing until that command has ended, and
/// then begins anew. One command at a time.
///
/// # Errors
///
/// If the system refuses handlers or descriptors.
pub fn install() -> Result<(), LaunchError> {
    take_over(Installed::All)
}

fn take_over(wanted: Installed) -> Result<(), LaunchError> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed >= wanted {
        return Ok(());
    }
    let failed = |source| LaunchError::Setup { what: "the signal handlers", source };
    let interrupts = SignalSet::of(INTERRUPTS);
    if *installed == Installed::None {
        inherited::ensure_inherited_is_recorded();
        if EVENTS.get().is_none() {
            let events = handler::open_events(held_back()).map_err(failed)?;
            EVENTS.get_or_init(|| events);
        }
        handler::install_handlers(caught().without(interrupts), held_back().without(interrupts), interrupts).map_err(failed)?;
        handler::ignore_file_size_signal();
        signal_witness::start();
        *installed = Installed::ButInterrupts;
    }
    if wanted == Installed::All {
        handler::install_handlers(interrupts, held_back().and(interrupts), interrupts).map_err(failed)?;
        *installed = Installed::All;
    }
    Ok(())
}

/// Blocks all signals in the main thread, which only waits for another thread from now on: that one handles them.
pub fn leave_to_other_threads() {
    signal::block(SignalSet::ALL);
}

/// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT interrupt us ([`interrupted`]), without a command of ours. A second one ends us at once.
///
/// # Errors
///
/// If the system refuses a handler.
pub fn install_interrupts() -> std::io::Result<()> {
    inherited::ensure_inherited_is_recorded();
    let interrupts = SignalSet::of(INTERRUPTS);
    handler::install_handlers(interrupts, SignalSet::of([]), interrupts)?;
    handler::command_has_ended(Exit::Code(0), &[]);
    Ok(())
}

/// Whether an interrupt came since the command ended: Ctrl-C, SIGTERM, SIGHUP or SIGQUIT. The steps after the command (symbols, analysis,
/// summary) check it in between; the recording stays.
pub fn interrupted() -> bool {
    handler::interrupted()
}

/// Sends SIGTERM to a child of ours.
pub fn terminate(child: &std::process::Child) {
    if let Ok(pid) = Pid::try_from(child.id()) {
        signal::kill(pid, libc::SIGTERM);
    }
}

/// Where to wait for signals.
pub(crate) fn events() -> Option<&'static Events> {
    EVENTS.get()
}

/// From now on a recording that is incomplete because we abort is a failure.
pub fn be_strict() {
    handler::be_strict();
}

/// Signals that came, and what the witness reports of them.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// In no particular order: pending signals have none.
    pub(crate) events: Vec<Event>,
    /// What went to the group, by signal and sender.
    group: Vec<(i32, Pid)>,
    /// Whether the group got a stop signal after a SIGCONT was taken here and before the witness answered: then the kernel removed the SIGCONT from
    /// the queue of the witness.
    group_was_stopped: bool,
}

impl Round {
    /// Everything that came so far.
    ///
    /// Two signals are one while the first is pending. So that the witness counts as we do, it answers before and after a signal is taken: between
    /// two signals that we see as two.
    ///
    /// `leftover` is that of the round before.
    pub(crate) fn take(leftover: Vec<(i32, Pid)>) -> Round {
        let mut round = Round { group: leftover, ..Round::default() };
        let mut pending = signal::pending().and(held_back());
        let strays = EVENTS.get().into_iter().flat_map(|events| std::iter::from_fn(|| events.next_stray()));
        round.events.extend(strays);
        // The usual case, the end of the command, needs no witness.
        let own = SignalSet::of([libc::SIGCHLD]);
        if pending.without(own).is_empty() && round.events.iter().all(|event| event.signal == libc::SIGCHLD) {
            signal::take(pending);
            return round;
        }
        round.ask_witness();
        // A stop before this moment takes a SIGCONT out of our own queue, once it has reached us as it has reached the witness.
        job_control::finish_group_signals();
        round.group_was_stopped = false;
        while !pending.is_empty() {
            let Some(event) = signal::take(pending) else { break };
            pending = pending.without(SignalSet::of([event.signal]));
            round.events.push(event);
        }
        round.ask_witness();
        round
    }

    fn ask_witness(&mut self) {
        let Some(signals) = signal_witness::ask() else { return };
        self.group_was_stopped |= signals.iter().any(|(signal, _)| STOPS.contains(signal));
        self.group.extend(signals.into_iter().filter(|(_, sender)| *sender != SENDER_KERNEL));
    }

    /// Whether a signal from a process went to our group. Each signal of the witness matches one of ours. A SIGCONT that a later stop of the group
    /// can have removed from the queue of the witness counts, too: it must not continue what is stopping since.
    pub(crate) fn went_to_group(&mut self, event: &Event) -> bool {
        if let Some(at) = self.group.iter().position(|known| *known == (event.signal, event.sender)) {
            self.group.swap_remove(at);
            return true;
        }
        event.signal == libc::SIGCONT && self.group_was_stopped
    }

    /// Signals that the witness got and we have not seen yet. The others were one signal here and two there.
    pub(crate) fn leftover(mut self) -> Vec<(i32, Pid)> {
        let pending = signal::pending();
        self.group.retain(|(signal, _)| pending.contains(*signal));
        self.group
    }
}

/// From now on signals are our own. `is_for_command` says whether a late signal was for the command; if it was, and is an interrupt, it interrupts
/// us.
pub(crate) fn command_has_ended(exit: Exit, is_for_command: impl Fn(&Event, &mut Round) -> bool) {
    handler::command_has_ended(exit, &GIVEN_BACK);
    let mut late = Round::take(Vec::new());
    for event in std::mem::take(&mut late.events) {
        let asks = INTERRUPTS.contains(&event.signal) && !inherited::inherited_as_ignored(event.signal);
        if asks && is_for_command(&event, &mut late) {
            handler::set_interrupted();
        }
    }
    signal_witness::dismiss();
    signal::unblock(held_back());
    *INSTALLED.lock().unwrap_or_else(PoisonError::into_inner) = Installed::None;
}

/// The situation in which a signal came.
pub(crate) struct Situation {
    /// Before the command started.
    pub(crate) early: bool,
    /// Our own pid.
    pub(crate) own: Pid,
    /// The command's pid.
    pub(crate) child: Pid,
    /// Whether we lead our session.
    pub(crate) leads_session: bool,
}

/// Whether to forward the signal to the command. `went_to_group` is called last, and only for a signal from a process.
pub(crate) fn is_for_command(event: &Event, situation: &Situation, went_to_group: impl FnOnce(&Event) -> bool) -> bool {
    let sent_by_process = event.is_sent();
    match event.signal {
        libc::SIGCHLD => false,
        libc::SIGXCPU if !sent_by_process => false,
        _ if sent_by_process && (event.sender == situation.own || event.sender == situation.child) => false,
        // The command missed it; but a command that has not started needs no SIGCONT.
        _ if situation.early => event.signal != libc::SIGCONT,
        _ if sent_by_process => !went_to_group(event),
        libc::SIGHUP | libc::SIGCONT => situation.leads_session,
        libc::SIGALRM | libc::SIGVTALRM | libc::SIGPROF | libc::SIGIO | libc::SIGURG | libc::SIGPWR => true,
        signal => signal >= libc::SIGRTMIN(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Pid = 100;
    const CHILD: Pid = 101;
    const SHELL: Pid = 50;

    #[test]
    fn each_signal_reaches_the_command_once() {
        let kernel = |signal| Event { signal, code: 0x80, sender: 0, value: 0 };
        let from = |sender, signal| Event { signal, code: libc::SI_USER, sender, value: 0 };
        let check = |event: Event, early, leads_session, group, expected, why: &str| {
            let situation = Situation { early, own: OWN, child: CHILD, leads_session };
            assert_eq!(is_for_command(&event, &situation, |_| group), expected, "{why}");
        };
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH] {
            check(kernel(signal), false, false, false, false, "the terminal's group");
            check(kernel(signal), false, true, false, false, "the terminal's group, we lead the session");
            check(kernel(signal), true, false, false, true, "the terminal's group, before there was a command");
        }
        check(kernel(libc::SIGHUP), false, false, false, false, "the end of the terminal, for the group");
        check(kernel(libc::SIGHUP), false, true, false, true, "the end of the terminal, for the leader");
        check(kernel(libc::SIGCONT), false, true, false, true, "comes with it");
        check(kernel(libc::SIGALRM), false, false, false, true, "a timer set before our exec");
        check(kernel(libc::SIGXCPU), false, false, false, false, "our own CPU time");
        check(kernel(libc::SIGCHLD), false, false, false, false, "ours");
        check(kernel(libc::SIGCHLD), true, false, false, false, "ours");
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGUSR1,
            libc::SIGWINCH,
            libc::SIGCONT,
            libc::SIGXCPU,
            libc::SIGFPE,
            libc::SIGRTMIN(),
        ] {
            check(from(SHELL, signal), false, false, false, true, "sent to us alone");
            check(from(SHELL, signal), false, false, true, false, "sent to the group");
            check(from(CHILD, signal), false, false, false, false, "sent by the command");
            check(from(OWN, signal), false, false, false, false, "sent by ourselves");
        }
        check(from(SHELL, libc::SIGTERM), true, false, true, true, "sent before there was a command");
        check(from(SHELL, libc::SIGCONT), true, false, false, false, "a command that has not started is not stopped");
    }

    #[test]
    fn what_cannot_be_caught_or_must_not_is_left_alone() {
        for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL] {
            assert!(!caught().contains(signal), "{signal}");
        }
        assert!(!held_back().contains(libc::SIGPIPE) && held_back().contains(libc::SIGINT));
    }
}
