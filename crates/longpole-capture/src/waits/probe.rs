//! Probes a blocked thread: what it waits for, without stopping it and without any privilege.
//!
//! ```text
//! thread     ===|                                        |======     switched out, switched in
//! probe                  ▼ syscall, stack, syscall again             once, after THRESHOLD_NANOS
//! wait          |----------------------------------------|           its times come from the switch records: exact
//! ```
//!
//! `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)) holds the system call that blocks a thread, its arguments, the stack pointer and the
//! instruction pointer; `process_vm_readv` copies the stack. Both are consistent if the file reads the same afterwards and no switch
//! record shows the thread running meanwhile.

use std::fs;

use longpole_model::ContextRecord;

use super::blocked_call::{BlockedCall, Denied};
use super::blocked_thread::FutexWait;
use super::futex::{self, Call};
use super::timeout;
use crate::span_context::context_record;
use crate::sys::remote_memory::{StackPages, read_memory, read_stack};

/// Most bytes of a stack that a probe copies.
const STACK_BYTES: usize = 16 << 10;

/// Bytes that hold a context record.
const RECORD_BYTES: usize = 64;

/// What a probe read of a blocked thread.
pub(super) struct Probed {
    pub(super) call: BlockedCall,
    pub(super) stack: Vec<u8>,
    pub(super) context: ContextRecord,
    pub(super) futex: Option<FutexWait>,
    pub(super) deadline: Option<u64>,
}

/// Probes a thread that was switched out at `since`. `None` if it runs, or ran during the probe. `hint` is the address at which its
/// context record was found last.
///
/// # Errors
///
/// [`Denied`] where the kernel does not let us read the thread's system call.
pub(super) fn probe((pid, tid, since): (u32, u32, u64), hint: Option<u64>, pages: &mut StackPages) -> Result<Option<Probed>, Denied> {
    let syscall = match fs::File::open(format!("/proc/{pid}/task/{tid}/syscall")) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Err(Denied),
        Err(_) => return Ok(None),
    };
    let Some(call) = BlockedCall::read(&syscall)? else { return Ok(None) };
    let mut stack = vec![0; STACK_BYTES];
    let copied = read_stack(pid, call.sp, &mut stack, pages).unwrap_or(0);
    stack.truncate(copied);
    let mut record = [0; RECORD_BYTES];
    let context = match hint {
        Some(address) if read_memory(pid, address, &mut record).is_ok_and(|read| read == RECORD_BYTES) => {
            context_record::find(&record, address, tid, &mut Some(address))
        }
        _ => context_record::find(&stack, call.sp, tid, &mut None),
    };
    let futex_call = (call.number == libc::SYS_futex).then(|| Call::of(&call.arguments)).flatten();
    let futex = futex_call.map(|futex_call| probe_futex((pid, tid), &futex_call));
    let deadline = timeout::deadline(&call, futex_call.as_ref(), (pid, since), &stack);
    match BlockedCall::read(&syscall)? {
        Some(after) if after == call => Ok(Some(Probed { call, stack, context, futex, deadline })),
        _ => Ok(None),
    }
}

/// Reads the futex of a call.
fn probe_futex((pid, tid): (u32, u32), call: &Call) -> FutexWait {
    let mut word = [0; futex::WORD_BYTES];
    let read = read_memory(pid, call.address, &mut word).unwrap_or(0);
    let is_thread = |number: u32| fs::exists(format!("/proc/{pid}/task/{number}")).unwrap_or(false);
    let (futex, is_join) = call.futex(tid, &word[..read], is_thread);
    FutexWait { futex, is_join }
}
