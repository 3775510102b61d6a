//! Reads parts of another process's memory while that process runs (process_vm_readv(2)).

#![expect(unsafe_code, reason = "process_vm_readv")]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use longpole_symbols::memory::{Memory, MemoryPart, Unreadable};
use longpole_symbols::python::ReadError;

use crate::sys::limits::page_bytes;

/// Most parts of one call (`IOV_MAX`).
const PARTS_OF_CALL_MAX: usize = 1024;

/// The memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    /// Its id.
    pub(crate) pid: u32,
}

impl Memory for ProcessMemory {
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable> {
        let mut next = 0;
        while next < parts.len() {
            let end = parts.len().min(next + PARTS_OF_CALL_MAX);
            let copied = read_parts(self.pid, &parts[next..end], bytes).map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => Unreadable::Gone,
                _ => Unreadable::Closed,
            })?;
            for part in &mut parts[next..next + copied] {
                part.is_there = true;
            }
            // The part after the last copied one cannot be read; those after it may be.
            next = if next + copied < end { next + copied + 1 } else { end };
        }
        Ok(())
    }
}

/// Copies the bytes at `address` in process `pid`, and returns how many it could read before the first page that it could not.
///
/// # Errors
///
/// If the process is gone, or this user may not read it (another user, `kernel.yama.ptrace_scope`, a program that is not dumpable).
pub(crate) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let page = page_bytes() as u64;
    let mut parts = Vec::new();
    let mut at = 0;
    while at < into.len() {
        let Some(start) = address.checked_add(at as u64) else { break };
        // A part ends with its page: what lies above a stack may not be there.
        let length = usize::try_from(page - start % page).unwrap_or(into.len()).min(into.len() - at);
        parts.push(MemoryPart { address: start, place: at..at + length, is_there: false });
        at += length;
    }
    let mut copied = 0;
    for some in parts.chunks(PARTS_OF_CALL_MAX) {
        let whole = read_parts(pid, some, into)?;
        copied += some[..whole].iter().map(|part| part.place.len()).sum::<usize>();
        if whole < some.len() {
            break;
        }
    }
    Ok(copied)
}

/// Whether a page is in memory or in swap space: bits of an entry of `/proc/PID/pagemap` (proc_pid_pagemap(5)).
const PAGE_IS_THERE: u64 = 1 << 63 | 1 << 62;

/// Bytes of such an entry.
const PAGE_ENTRY_BYTES: usize = 8;

/// Present pages of a stack, with nothing above them; empty if there are holes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StackPages {
    first: u64,
    count: usize,
}

/// Whether each of these pages is in memory or in swap space; `None` where the kernel does not tell.
fn present_pages(pid: u32, first: u64, count: usize) -> Option<Vec<bool>> {
    let mut entries = vec![0; count * PAGE_ENTRY_BYTES];
    // Some kernels have no such file.
    let map = File::open(format!("/proc/{pid}/pagemap")).ok()?;
    let told = map.read_at(&mut entries, first.saturating_mul(PAGE_ENTRY_BYTES as u64));
    told.is_ok_and(|told| told > 0).then(|| {
        let entries = entries.as_chunks::<PAGE_ENTRY_BYTES>().0;
        entries.iter().map(|entry| u64::from_ne_bytes(*entry) & PAGE_IS_THERE != 0).collect()
    })
}

/// Copies the bytes above a stack pointer, as [`read_memory`] does, but reads present pages only: absent ones are zero, and nothing is copied above
/// the last present one. `known` holds the pages found the last time, which are not looked up again while the stack pointer is on the same page.
///
/// A program may have its stack in a file of a file system that does not answer, and a read from a FUSE daemon cannot be interrupted, not even by
/// the end of our process.
///
/// # Errors
///
/// As [`read_memory`].
pub(crate) fn read_stack(pid: u32, sp: u64, into: &mut [u8], known: &mut StackPages) -> io::Result<usize> {
    let page = page_bytes();
    let (first, inside) = (sp / page as u64, (sp % page as u64) as usize);
    if known.count > 0 && known.first == first {
        let bytes = (known.count * page - inside).min(into.len());
        return read_memory(pid, sp, &mut into[..bytes]);
    }
    let Some(present) = present_pages(pid, first, (inside + into.len()).div_ceil(page)) else { return read_memory(pid, sp, into) };
    let mut parts = Vec::with_capacity(present.len());
    for (number, is_there) in present.into_iter().enumerate() {
        if is_there {
            let place = (number * page).saturating_sub(inside)..((number + 1) * page - inside).min(into.len());
            parts.push(MemoryPart { address: sp.saturating_add(place.start as u64), place, is_there: false });
        }
    }
    let has_no_hole = parts.last().is_none_or(|part| part.place.end == (parts.len() * page - inside).min(into.len()));
    *known = if has_no_hole { StackPages { first, count: parts.len() } } else { StackPages::default() };
    into.fill(0);
    let mut copied = 0;
    for some in parts.chunks(PARTS_OF_CALL_MAX) {
        let whole = read_parts(pid, some, into)?;
        copied = some[..whole].last().map_or(copied, |part| part.place.end);
        if whole < some.len() {
            break;
        }
    }
    Ok(copied)
}

/// Copies bytes as [`read_memory`] does, up to the first page that is neither in memory nor in swap space: the program has never written it, or it
/// lies in a file, of a file system that may not answer. See [`read_stack`].
///
/// # Errors
///
/// As [`read_memory`].
pub(crate) fn read_present(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let page = page_bytes();
    let (first, inside) = (address / page as u64, (address % page as u64) as usize);
    let Some(present) = present_pages(pid, first, (inside + into.len()).div_ceil(page)) else { return read_memory(pid, address, into) };
    let pages = present.into_iter().take_while(|is_there| *is_there).count();
    let bytes = (pages * page).saturating_sub(inside).min(into.len());
    read_memory(pid, address, &mut into[..bytes])
}

/// Copies parts in their order, up to the first that cannot be read as a whole, and returns how many.
fn read_parts(pid: u32, parts: &[MemoryPart], bytes: &mut [u8]) -> io::Result<usize> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let mut local = Vec::with_capacity(parts.len());
    let mut remote = Vec::with_capacity(parts.len());
    for part in parts {
        let (Some(here), Ok(there)) = (bytes.get_mut(part.place.clone()), usize::try_from(part.address)) else { break };
        // No address of user space: the kernel would refuse the whole call.
        if there.checked_add(here.len()).is_none_or(|end| end > usize::MAX / 2) {
            break;
        }
        local.push(libc::iovec { iov_base: here.as_mut_ptr().cast(), iov_len: here.len() });
        remote.push(libc::iovec { iov_base: there as *mut libc::c_void, iov_len: here.len() });
    }
    if local.is_empty() {
        return Ok(0);
    }
    // SAFETY: each local piece lies within `bytes`, which is borrowed mutably and outlives the call; the kernel writes nowhere else.
    // Remote addresses are checked by the kernel against the other process's memory and never touched here.
    let read = unsafe {
        let count = local.len() as libc::c_ulong;
        libc::process_vm_readv(pid, local.as_ptr(), count, remote.as_ptr(), count, 0)
    };
    if read < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            // A seccomp filter may refuse the call and allow the file; the kernel itself treats both alike.
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => read_parts_of_file(pid, parts, bytes).map_err(|_| error),
            Some(libc::ESRCH) => Err(error),
            _ => Ok(0),
        };
    }
    // The kernel copies whole pieces only.
    let mut left = read as usize;
    let copied = parts[..local.len()].iter().take_while(|part| {
        let is_whole = part.place.len() <= left;
        left = left.saturating_sub(part.place.len());
        is_whole
    });
    Ok(copied.count())
}

/// What [`read_parts`] does, through `/proc/PID/mem`: a system call for each part.
fn read_parts_of_file(pid: libc::pid_t, parts: &[MemoryPart], bytes: &mut [u8]) -> io::Result<usize> {
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let is_read = |part: &&MemoryPart| {
        let Some(here) = bytes.get_mut(part.place.clone()) else { return false };
        memory.read_at(here, part.address).is_ok_and(|read| read == here.len())
    };
    Ok(parts.iter().take_while(is_read).count())
}

/// Checks that the memory of a child that waits at its gate can be read, as the functions of interpreters require.
///
/// # Errors
///
/// Why not, as a lower-case fragment.
pub fn can_read_memory(pid: u32) -> Result<(), String> {
    // The child is a copy of this process, so it has the same bytes at the same address.
    static WORD: [u8; 8] = *b"longpole";
    let mut part = [MemoryPart { address: WORD.as_ptr().addr() as u64, place: 0..8, is_there: false }];
    let mut bytes = [0; 8];
    match (ProcessMemory { pid }).copy(&mut part, &mut bytes) {
        Ok(()) if bytes == WORD => Ok(()),
        Ok(()) => Err("the kernel does not copy it".to_owned()),
        Err(error) => Err(ReadError::from(error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(pid: u32, addresses: &[u64]) -> (Result<(), Unreadable>, Vec<bool>, Vec<u8>) {
        let mut parts: Vec<MemoryPart> = addresses
            .iter()
            .enumerate()
            .map(|(i, address)| MemoryPart { address: *address, place: i * 4..i * 4 + 4, is_there: false })
            .collect();
        let mut bytes = vec![0; addresses.len() * 4];
        let outcome = ProcessMemory { pid }.copy(&mut parts, &mut bytes);
        (outcome, parts.iter().map(|part| part.is_there).collect(), bytes)
    }

    #[test]
    fn present_parts_are_copied_and_absent_ones_skipped() {
        let own = std::process::id();
        let (a, b) = (*b"abcd", *b"efgh");
        let there = |bytes: &[u8; 4]| bytes.as_ptr() as u64;
        let (outcome, whole, bytes) = copy(own, &[there(&a), 8, u64::MAX - 1, there(&b), 1 << 62]);
        assert_eq!((outcome, whole), (Ok(()), vec![true, false, false, true, false]));
        assert_eq!((&bytes[..4], &bytes[12..16]), (&a[..], &b[..]));
        let many: Vec<u64> = (0..3_000).map(|i| if i % 700 == 3 { 16 } else { there(&a) }).collect();
        let (outcome, whole, _) = copy(own, &many);
        assert_eq!((outcome, whole.iter().filter(|it| !**it).count()), (Ok(()), 5));
    }

    #[test]
    fn the_mem_file_yields_the_same_bytes() {
        let bytes = *b"abcdefgh";
        let own = libc::pid_t::try_from(std::process::id()).unwrap();
        let part = |address: u64, place| MemoryPart { address, place, is_there: false };
        let there = bytes.as_ptr() as u64;
        let mut copy = [0; 12];
        let parts = [part(there, 0..4), part(there + 4, 4..8), part(8, 8..12)];
        assert_eq!(read_parts_of_file(own, &parts, &mut copy).unwrap(), 2);
        assert_eq!(&copy[..8], &bytes);
        assert!(read_parts_of_file(5_000_000, &parts, &mut copy).is_err());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert_eq!(copy(4_000_000_000, &[4096]).0, Err(Unreadable::Gone));
        assert_eq!(copy(5_000_000, &[4096]).0, Err(Unreadable::Gone));
    }

    #[test]
    fn only_present_pages_of_a_stack_are_read() {
        let page = page_bytes();
        let own = std::process::id();
        // SAFETY: the memory is new and has eight pages, each absent until it is written; only this test uses it, and it stays.
        let stack = unsafe {
            let (all, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let stack = libc::mmap(std::ptr::null_mut(), page * 8, all, flags, -1, 0);
            assert_ne!(stack, libc::MAP_FAILED);
            libc::madvise(stack, page * 8, libc::MADV_NOHUGEPAGE);
            std::slice::from_raw_parts_mut(stack.cast::<u8>(), page * 8)
        };
        stack[..page].fill(7);
        stack[page * 2..page * 3].fill(7);
        let mut copy = vec![1; page * 6];
        let sp = stack.as_ptr() as u64 + 8;
        let mut known = StackPages::default();
        let mut read_stack = |pid, sp, into: &mut [u8]| (read_stack(pid, sp, into, &mut known), known.count);
        assert_eq!(read_stack(own, sp, &mut copy).0.unwrap(), page * 3 - 8, "to the end of the last page that is there");
        assert!(copy[..page - 8].iter().all(|byte| *byte == 7) && copy[page - 8..page * 2 - 8].iter().all(|byte| *byte == 0));
        assert!(copy[page * 2 - 8..page * 3 - 8].iter().all(|byte| *byte == 7));
        assert_eq!(read_stack(own, sp, &mut copy[..100]).0.unwrap(), 100);
        assert_eq!(read_stack(own, 8, &mut copy).0.unwrap(), 0, "the first page is nobody's");
        assert!(read_stack(own, u64::MAX - 4, &mut copy).0.unwrap_or(0) == 0 && read_stack(u32::MAX, 4096, &mut copy).0.is_err());
        // Without a hole the pages are known the next time, and later pages are not seen while the thread sleeps in the same place.
        let (last, copy) = (stack.as_ptr() as u64 + 2 * page as u64 + 16, &mut copy[..page * 4]);
        let (read, count) = read_stack(own, last, copy);
        assert_eq!((read.unwrap(), count), (page - 16, 1));
        stack[page * 3..page * 4].fill(7);
        assert_eq!(read_stack(own, last + 16, copy).0.unwrap(), page - 32);
        assert_eq!(read_stack(own, sp, copy).0.unwrap(), page * 4 - 8);
        assert_eq!(read_stack(own, last, copy).0.unwrap(), page * 2 - 16);
    }

    #[test]
    fn memory_is_read_up_to_the_first_absent_page() {
        let bytes: Vec<u8> = (0..page_bytes() * 3).map(|i| i as u8).collect();
        let mut copy = vec![0; bytes.len()];
        let own = std::process::id();
        assert_eq!(read_memory(own, bytes.as_ptr() as u64, &mut copy).unwrap(), bytes.len());
        assert_eq!(copy, bytes);
        assert_eq!(read_memory(own, 8, &mut copy).unwrap(), 0, "the first page is nobody's");
        assert_eq!(read_memory(own, u64::MAX - 4, &mut copy).unwrap(), 0);
        assert!(read_memory(u32::MAX, 4096, &mut copy).is_err());
    }
}
