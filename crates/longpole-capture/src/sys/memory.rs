//! Memory of another process, read while that process goes on.

#![allow(unsafe_code)]

use std::io;

use super::perf::page_bytes;

/// Copies what lies at `address` in process `pid`; returns how many bytes could be read before the first page that could not.
///
/// Fails where the process is gone, or may not be looked into (another user, `ptrace_scope`, a program that keeps itself closed).
pub(crate) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let (Ok(pid), Ok(base)) = (libc::pid_t::try_from(pid), usize::try_from(address)) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    // The kernel copies whole pieces only, so a piece ends with its page: what lies above a stack may not be there.
    let page = page_bytes();
    let mut pieces = Vec::with_capacity(into.len() / page + 2);
    let mut at = 0;
    while at < into.len() {
        let Some(start) = base.checked_add(at) else { break };
        let length = (page - start % page).min(into.len() - at);
        pieces.push(libc::iovec { iov_base: start as *mut libc::c_void, iov_len: length });
        at += length;
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: at };
    // SAFETY: the local piece is `into`, of which no more than its length is written; remote addresses are checked by the kernel
    // against the other process's memory and never touched here.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, pieces.as_ptr(), pieces.len() as libc::c_ulong, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_up_to_what_is_not_there() {
        let bytes: Vec<u8> = (0..page_bytes() * 3).map(|i| i as u8).collect();
        let mut copy = vec![0; bytes.len()];
        let own = std::process::id();
        assert_eq!(read_memory(own, bytes.as_ptr() as u64, &mut copy).unwrap(), bytes.len());
        assert_eq!(copy, bytes);
        assert!(read_memory(own, 8, &mut copy).is_err(), "the first page is nobody's");
        assert!(read_memory(own, u64::MAX - 4, &mut copy).is_err());
        assert!(read_memory(u32::MAX, 4096, &mut copy).is_err());
    }
}
