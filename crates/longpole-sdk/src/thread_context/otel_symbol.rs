//! `otel_thread_ctx_v1`: the name by which other profilers find the record of a thread (OTEP 4947).

#![allow(unsafe_code)]

use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use super::record::Record;

// `otel_thread_ctx_v1` of OTEP 4947: thread-local, a pointer to the part of the record in use that other profilers know, null
// where there is none. Rust has no stable word for a thread-local symbol with a name of its own. Weak, because another SDK in the
// same program may define it, too. Other profilers find it in a program only if the linker exports it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
std::arch::global_asm!(
    ".pushsection .tbss.otel_thread_ctx_v1,\"awT\",@nobits",
    ".balign 8",
    ".weak otel_thread_ctx_v1",
    ".type otel_thread_ctx_v1, @object",
    ".size otel_thread_ctx_v1, 8",
    "otel_thread_ctx_v1:",
    ".zero 8",
    ".popsection",
);

/// Points `otel_thread_ctx_v1` of this thread at a record. Once for each thread: what is current is then in the record.
pub(super) fn tell_other_profilers(record: *const Record) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let shown = if record.is_null() { ptr::null() } else { record.wrapping_byte_add(offset_of!(Record, trace_id)).cast() };
        // SAFETY: the variable is this thread's own and lives as long as the thread. Nothing in this program reads what it
        // points to; whoever stops the thread finds it null or at a record that is in use.
        unsafe { *name_for_others() = shown };
        compiler_fence(Ordering::SeqCst);
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = record;
}

/// Where `otel_thread_ctx_v1` of this thread lies: the sequence of instructions for a descriptor of thread-local storage that
/// linkers know, and make shorter in a program.
#[cfg(target_arch = "x86_64")]
pub(super) fn name_for_others() -> *mut *const u8 {
    let at: *mut *const u8;
    // SAFETY: the resolver takes and gives back `rax` and keeps all other registers; `fs:0` holds the thread pointer itself.
    unsafe {
        std::arch::asm!(
            "leaq otel_thread_ctx_v1@tlsdesc(%rip), %rax",
            "call *otel_thread_ctx_v1@tlscall(%rax)",
            "addq %fs:0, %rax",
            out("rax") at,
            options(att_syntax)
        );
    }
    at
}

/// The same for this machine.
#[cfg(target_arch = "aarch64")]
pub(super) fn name_for_others() -> *mut *const u8 {
    let at: *mut *const u8;
    // SAFETY: the resolver takes and gives back `x0`, uses `x1` and the link register, and keeps all others.
    unsafe {
        std::arch::asm!(
            "adrp x0, :tlsdesc:otel_thread_ctx_v1",
            "ldr x1, [x0, :tlsdesc_lo12:otel_thread_ctx_v1]",
            "add x0, x0, :tlsdesc_lo12:otel_thread_ctx_v1",
            ".tlsdesccall otel_thread_ctx_v1",
            "blr x1",
            "mrs x1, tpidr_el0",
            "add x0, x1, x0",
            out("x0") at,
            out("x1") _,
            out("x30") _,
        );
    }
    at
}
