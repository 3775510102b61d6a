//! The kernel's part of a stack, and the names of the kernel's functions.
//!
//! The kernel's call chain comes with the sample, as addresses. The names are in a long list, [`kallsyms`](super::kallsyms), which is read at
//! the end of the recording, or after 30 s. Until then the location of a function is its address, and its name follows.

use std::fs::File;
use std::io::Read;

use longpole_model::{AbsAddr, Loss, LossKind, Runtime, WaitKind};
use longpole_symbols::kernel::KernelSymbols;

use crate::frames::kallsyms::{Copy, Kallsyms, LIST};
use crate::frames::stacks::{FrameLocation, Name, ProgramId, Stacks, Truncation};
use crate::perf::record::KernelChain;
use crate::sink::ObservationWriter;
use longpole_model::fast_hash::FastMap;

/// The name of a function whose name is unknown.
const NAMELESS: &str = "[kernel]";

/// The kernel as a program: its addresses mean the same in all processes.
const PROGRAM: ProgramId = ProgramId(u32::MAX);

/// Most addresses whose location is remembered: 2 MB. A recording has a few thousand.
const KNOWN_MAX: usize = 1 << 16;

/// The names, as far as they are read.
enum Names {
    /// The list is not read yet.
    Unread,
    /// In a copy, which lacks functions that were loaded later.
    Copied(Copy),
    /// From the list.
    Read(KernelSymbols),
    /// There are none, and why.
    Hidden(Hidden),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// The kernel shows zeros for addresses.
    Zeros,
    /// There is no list.
    NoList,
}

/// The kernel under the programs of a recording.
pub(crate) struct Kernel {
    names: Names,
    list: Kallsyms,
    /// Most entries of a chain that the kernel reports.
    depth_max: usize,
    known: FastMap<u64, FrameLocation>,
    /// Samples in the kernel without names, not yet reported.
    nameless: u64,
}

impl Kernel {
    pub(crate) fn new(depth_max: usize, list: Kallsyms) -> Kernel {
        Kernel { names: Names::Unread, list, depth_max, known: FastMap::default(), nameless: 0 }
    }

    /// Finds out whether names are hidden, from the first line of the list, which is cheap.
    pub(crate) fn probe(&mut self) {
        let mut start = [0; 17];
        let read = File::open(LIST).and_then(|mut list| list.read_exact(&mut start));
        match read {
            Err(_) => self.names = Names::Hidden(Hidden::NoList),
            Ok(()) if start.iter().all(|byte| matches!(byte, b'0' | b' ')) => self.names = Names::Hidden(Hidden::Zeros),
            Ok(()) => {}
        }
    }

    /// Inserts the kernel's frames before those of user space. Returns why the kernel's stack is cut off, if it is.
    pub(crate) fn put(&mut self, chain: KernelChain<'_>, stacks: &mut Stacks, locations: &mut Vec<FrameLocation>) -> Option<Truncation> {
        let mut in_front = Vec::new();
        if let Names::Hidden(_) = self.names {
            // Without names one frame is as good as twenty.
            chain.addresses().next()?;
            self.nameless += 1;
            in_front.push(stacks.name(name(NAMELESS)));
        } else {
            for (depth, address) in chain.addresses().enumerate() {
                // All but the first are return addresses.
                in_front.push(self.location(if depth == 0 { address } else { address.saturating_sub(1) }, stacks));
            }
        }
        let cut = (in_front.len() >= self.depth_max).then_some(Truncation::KernelDeep);
        in_front.extend(cut.map(FrameLocation::Truncation));
        locations.splice(0..0, in_front);
        cut
    }

    fn location(&mut self, address: u64, stacks: &mut Stacks) -> FrameLocation {
        if let Names::Unread | Names::Hidden(_) = self.names {
            return FrameLocation::Unmapped { program: PROGRAM, address: AbsAddr(address) };
        }
        if let Some(location) = self.known.get(&address) {
            return *location;
        }
        self.read(&[address]);
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let location = stacks.name(name(&self.function(address).unwrap_or_else(|| NAMELESS.to_owned())));
        self.known.insert(address, location);
        location
    }

    fn function(&mut self, address: u64) -> Option<String> {
        match &mut self.names {
            Names::Copied(copy) => copy.name(address),
            Names::Read(symbols) => symbols.name(address).map(str::to_owned),
            Names::Unread | Names::Hidden(_) => None,
        }
    }

    /// Reads the names, including those of these addresses.
    fn read(&mut self, addresses: &[u64]) {
        if let Names::Unread = self.names
            && let Some(copy) = self.list.copy()
        {
            self.names = Names::Copied(copy);
        }
        let lacks = match &mut self.names {
            Names::Unread => true,
            Names::Copied(copy) => addresses.iter().any(|address| copy.name(*address).is_none()),
            Names::Read(_) | Names::Hidden(_) => false,
        };
        if lacks {
            self.names = match self.list.read() {
                Some(symbols) if !symbols.is_empty() => Names::Read(symbols),
                Some(_) => Names::Hidden(Hidden::Zeros),
                None => Names::Hidden(Hidden::NoList),
            };
        }
    }

    /// What a thread waits for whose kernel stack this is, and its system call; empty if unknown.
    pub(crate) fn wait(&mut self, chain: &[u64]) -> (WaitKind, String) {
        self.read(chain);
        let names: Vec<String> = chain.iter().filter_map(|address| self.function(*address)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let call = names.iter().find_map(|name| CALLS.iter().find_map(|prefix| name.strip_prefix(prefix)));
        (kind_of(&names), call.unwrap_or_default().to_owned())
    }

    /// Writes the names of locations that were written by address.
    pub(crate) fn name(&mut self, stacks: &mut Stacks, out: &mut ObservationWriter) {
        let addresses = stacks.unmapped(PROGRAM);
        if addresses.is_empty() {
            return;
        }
        self.read(&addresses);
        stacks.name_unmapped(PROGRAM, |address| Some(name(&self.function(address.0).unwrap_or_else(|| NAMELESS.to_owned()))), out);
    }

    /// Samples without names that are not yet reported.
    pub(crate) fn losses(&mut self) -> Option<Loss> {
        let count = std::mem::take(&mut self.nameless);
        let detail = match self.names {
            _ if count == 0 => return None,
            Names::Hidden(Hidden::Zeros) => {
                "samples in the kernel, which hides the names of its functions (sysctl kernel.kptr_restrict=0, with \
                 kernel.perf_event_paranoid=1 or CAP_SYSLOG)"
            }
            Names::Hidden(Hidden::NoList) => {
                "samples in the kernel, whose functions have no names: there is no /proc/kallsyms (CONFIG_KALLSYMS)"
            }
            Names::Unread | Names::Copied(_) | Names::Read(_) => return None,
        };
        Some(Loss::new(LossKind::FunctionsNotSeen, count, detail))
    }
}

/// Prefixes of the functions that system calls enter by.
const CALLS: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];

/// Prefixes of the kernel's functions that wait, and what they wait for.
const WAITS: &[(&str, WaitKind)] = &[
    ("futex_", WaitKind::Lock),
    ("flock_", WaitKind::Lock),
    ("locks_", WaitKind::Lock),
    ("fcntl_setlk", WaitKind::Lock),
    ("do_nanosleep", WaitKind::Sleep),
    ("hrtimer_nanosleep", WaitKind::Sleep),
    ("do_wait", WaitKind::Child),
    ("kernel_wait4", WaitKind::Child),
    ("wait_for_vfork_done", WaitKind::Child),
    ("kernel_clone", WaitKind::Child),
    ("pipe_", WaitKind::Pipe),
    ("anon_pipe_", WaitKind::Pipe),
    ("unix_", WaitKind::Network),
    ("sock_", WaitKind::Network),
    ("sk_", WaitKind::Network),
    ("inet_", WaitKind::Network),
    ("tcp_", WaitKind::Network),
    ("udp_", WaitKind::Network),
    ("__skb_wait", WaitKind::Network),
    ("io_schedule", WaitKind::Disk),
    ("blk_", WaitKind::Disk),
    ("submit_bio_wait", WaitKind::Disk),
    ("jbd2_", WaitKind::Disk),
    ("vfs_fsync", WaitKind::Disk),
];

/// What a thread in these functions, innermost first, waits for.
fn kind_of(names: &[&str]) -> WaitKind {
    if names.iter().any(|name| name.ends_with("exc_page_fault") || *name == "do_user_addr_fault" || *name == "do_mem_abort") {
        return WaitKind::PageFault;
    }
    let of = |name: &&str| WAITS.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, kind)| *kind);
    names.iter().find_map(of).unwrap_or(WaitKind::Other)
}

fn name(function: &str) -> Name {
    Name { runtime: Runtime::Kernel, function: function.to_owned(), file: String::new(), line: 0 }
}

/// Checks that the names of the kernel's functions can be read.
///
/// # Errors
///
/// What hides them, as a lower-case fragment.
pub fn can_name_functions() -> Result<(), &'static str> {
    let mut kernel = Kernel::new(usize::MAX, Kallsyms::default());
    kernel.probe();
    match kernel.names {
        Names::Hidden(Hidden::Zeros) => Err("kernel.kptr_restrict hides them from users without CAP_SYSLOG"),
        Names::Hidden(Hidden::NoList) => Err("there is no /proc/kallsyms"),
        Names::Unread | Names::Copied(_) | Names::Read(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains of Linux 6.18, innermost first.
    #[test]
    fn kernel_functions_show_what_a_thread_waits_for() {
        let of = |names: &str| kind_of(&names.split(' ').collect::<Vec<_>>());
        assert_eq!(of("__schedule schedule futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex"), WaitKind::Lock);
        assert_eq!(of("__schedule schedule do_nanosleep hrtimer_nanosleep common_nsleep"), WaitKind::Sleep);
        assert_eq!(of("__schedule schedule anon_pipe_read vfs_read ksys_read"), WaitKind::Pipe);
        assert_eq!(of("__schedule schedule schedule_timeout unix_stream_read_generic sock_recvmsg"), WaitKind::Network);
        assert_eq!(of("__schedule schedule io_schedule folio_wait_bit_common filemap_fault asm_exc_page_fault"), WaitKind::PageFault);
        assert_eq!(of("__schedule schedule io_schedule folio_wait_bit_common filemap_read ext4_file_read_iter"), WaitKind::Disk);
        assert_eq!(of("__schedule schedule do_wait kernel_wait4"), WaitKind::Child);
        assert_eq!(of("__schedule schedule schedule_hrtimeout_range do_sys_poll"), WaitKind::Other);
    }
}
