//! Functions of the kernel: where it was when a thread was sampled, and what its functions are called.
//!
//! The kernel's call chain comes with the sample, as addresses. Their names stand in a long list, which is read at the end of the recording
//! or when it has lasted a while, and never while a short command runs. Until then a function is told by its address, and its name
//! follows.

use std::fs::File;
use std::io::Read;

use longpole_model::{AbsAddr, Loss, LossKind, Runtime, WaitKind};
use longpole_symbols::kernel::KernelSymbols;

use crate::frames::kallsyms::{Kallsyms, LIST};
use crate::frames::stacks::{FrameLocation, Name, ProgramId, Stacks, Truncation};
use crate::number_map::NumberMap;
use crate::perf::record::KernelChain;
use crate::sink::ObservationWriter;

/// What is called a function whose name is not known.
const NAMELESS: &str = "[kernel]";

/// The kernel as a program: its addresses are the same in all processes.
const PROGRAM: ProgramId = ProgramId(u32::MAX);

/// Most addresses whose location is remembered: 2 MB. Those of a recording are some thousands.
const KNOWN_MAX: usize = 1 << 16;

/// What is known of names.
enum Names {
    /// The list was not read yet.
    Unread,
    Read(KernelSymbols),
    /// There are none to be had, and why.
    Hidden(Hidden),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// Addresses read as zero.
    Zeros,
    /// The list cannot be read.
    NoList,
}

/// The kernel under the programs of a recording.
pub(crate) struct Kernel {
    names: Names,
    list: Kallsyms,
    /// Whether the names are those of a copy, which lacks what has come since it was made.
    is_copy: bool,
    /// Entries of a chain beyond which the kernel does not tell.
    depth_max: usize,
    known: NumberMap<u64, FrameLocation>,
    /// Samples in the kernel whose functions have no names, since that was last told.
    nameless: u64,
}

impl Kernel {
    pub(crate) fn new(depth_max: usize, list: Kallsyms) -> Kernel {
        Kernel { names: Names::Unread, list, is_copy: false, depth_max, known: NumberMap::default(), nameless: 0 }
    }

    /// Finds out whether names are hidden: by the first line, so that it costs nothing.
    pub(crate) fn probe(&mut self) {
        let mut start = [0; 17];
        let read = File::open(LIST).and_then(|mut list| list.read_exact(&mut start));
        match read {
            Err(_) => self.names = Names::Hidden(Hidden::NoList),
            Ok(()) if start.iter().all(|byte| matches!(byte, b'0' | b' ')) => self.names = Names::Hidden(Hidden::Zeros),
            Ok(()) => {}
        }
    }

    /// Puts where the kernel was in front of the locations of user space. Returns why its own stack is cut, where it is.
    pub(crate) fn put(&mut self, chain: KernelChain<'_>, stacks: &mut Stacks, locations: &mut Vec<FrameLocation>) -> Option<Truncation> {
        let mut in_front = Vec::new();
        if let Names::Hidden(_) = self.names {
            // Without names one frame says as much as twenty.
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
        if !matches!(self.names, Names::Read(_)) {
            return FrameLocation::Unmapped { program: PROGRAM, address: AbsAddr(address) };
        }
        if let Some(location) = self.known.get(&address) {
            return *location;
        }
        self.read(&[address]);
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let location = stacks.name(name(self.function(address)));
        self.known.insert(address, location);
        location
    }

    fn function(&self, address: u64) -> &str {
        match &self.names {
            Names::Read(symbols) => symbols.name(address).unwrap_or(NAMELESS),
            Names::Unread | Names::Hidden(_) => NAMELESS,
        }
    }

    /// Sees to it that names are read, those of these addresses among them.
    fn read(&mut self, addresses: &[u64]) {
        if let Names::Unread = self.names
            && let Some(copy) = self.list.copy()
        {
            (self.names, self.is_copy) = (Names::Read(copy), true);
        }
        let lacks = match &self.names {
            Names::Unread => true,
            Names::Read(symbols) => self.is_copy && addresses.iter().any(|address| symbols.name(*address).is_none()),
            Names::Hidden(_) => false,
        };
        if lacks {
            self.is_copy = false;
            self.names = match self.list.read() {
                Some(symbols) if !symbols.is_empty() => Names::Read(symbols),
                Some(_) => Names::Hidden(Hidden::Zeros),
                None => Names::Hidden(Hidden::NoList),
            };
        }
    }

    /// What a thread waits for that left its CPU here, and the system call it is in.
    pub(crate) fn wait(&mut self, chain: &[u64]) -> (WaitKind, String) {
        self.read(chain);
        let Names::Read(symbols) = &self.names else { return (WaitKind::Other, String::new()) };
        let names: Vec<&str> = chain.iter().filter_map(|address| symbols.name(*address)).collect();
        let call = names.iter().find_map(|name| CALLS.iter().find_map(|prefix| name.strip_prefix(prefix)));
        (kind_of(&names), call.unwrap_or_default().to_owned())
    }

    /// Names what was told by address, if there is such.
    pub(crate) fn name(&mut self, stacks: &mut Stacks, out: &mut ObservationWriter) {
        let addresses = stacks.unmapped(PROGRAM);
        if addresses.is_empty() {
            return;
        }
        self.read(&addresses);
        stacks.name_unmapped(PROGRAM, |address| Some(name(self.function(address.0))), out);
    }

    /// What got no name since this was asked last.
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
            Names::Unread | Names::Read(_) => return None,
        };
        Some(Loss::new(LossKind::FunctionsNotSeen, count, detail))
    }
}

/// How the functions that system calls begin with are called.
const CALLS: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];

/// Beginnings of names of the kernel's functions in which threads wait, and what for.
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

/// What a thread in these functions waits for, innermost first.
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

/// Whether names of the kernel's functions can be read; if not, what hides them.
pub fn can_name_functions() -> Result<(), &'static str> {
    let mut kernel = Kernel::new(usize::MAX, Kallsyms::default());
    kernel.probe();
    match kernel.names {
        Names::Hidden(Hidden::Zeros) => Err("kernel.kptr_restrict hides them from who has not CAP_SYSLOG"),
        Names::Hidden(Hidden::NoList) => Err("there is no /proc/kallsyms"),
        Names::Unread | Names::Read(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains of Linux 6.18, innermost first.
    #[test]
    fn functions_of_the_kernel_tell_what_is_waited_for() {
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
