//! Which user and which process is behind a loopback connection: socket table → user and inode → owner of the descriptor.
//!
//! ```text
//! /proc/net/tcp   the client's own socket: its local address is our peer, its remote address is ours → user 1000, inode 81245
//! /proc/4711/fd/9 → socket:[81245]                                                                  → pid 4711
//! ```
//!
//! A client may hold an IPv6 socket and speak IPv4 through it; then its row stands in `/proc/net/tcp6`, with the addresses
//! mapped. A process that ended has no inode any more; who it was is then unknown. An inode is never given twice, a port and a pid are:
//! so the row is looked up while the connection is surely that of its client, and a pid is believed only as long as the process that
//! was found lives.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::io::{BufRead, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use longpole_model::proc_stat::ProcStat;
use longpole_store::users::Owner;

use crate::limits::{
    ANCESTORS_MAX, ENVIRONMENT_BYTES_MAX, PEER_LINKS_MAX, PEER_SEARCH_LINKS_MAX, PEER_TABLE_BYTES_MAX, UNRELATED_PAUSE_FACTOR,
};

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketOwner {
    /// The user that made it.
    pub uid: u32,
    /// Its inode, which is not 0.
    pub inode: u64,
}

/// Reads from the kernel which user and inode the client's end of a connection has, by the addresses of client and server. `None` if the
/// client has closed it; an error if the kernel does not say.
pub type AskOwner = fn(SocketAddr, SocketAddr) -> io::Result<Option<SocketOwner>>;

/// A process, and not another one that has its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) pid: u32,
    /// Clock ticks after boot.
    started: u64,
}

impl Peer {
    fn of(pid: u32) -> Option<Self> {
        Some(Peer { pid, started: started(pid)? })
    }

    pub(crate) fn lives(self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// Processes that a search visits first: most connections come from a process that made one before.
const RECENT_PIDS_MAX: usize = 8;

/// Finds peers, and remembers what helps to find the next one.
///
/// Reading the table of sockets costs some milliseconds on a machine with much memory (the kernel walks a hash table sized
/// for it), so one reading serves every connection that was there when it was made.
#[derive(Debug, Default)]
pub(crate) struct PeerFinder {
    /// Local address and owner of the sockets whose remote address is ours.
    sockets: HashMap<(IpAddr, u16), SocketOwner>,
    read_at: Option<Instant>,
    holders: HolderFinder,
}

impl PeerFinder {
    /// For a run with this command.
    pub(crate) fn new(command: CommandProcess) -> Self {
        PeerFinder { holders: HolderFinder::new(command), ..PeerFinder::default() }
    }

    /// Whose the other end of the connection from `peer` to `ours` is, which was accepted at `since`. `None` where it is closed, an error
    /// where the system has no table.
    pub(crate) fn owner(&mut self, peer: SocketAddr, ours: SocketAddr, since: Instant) -> io::Result<Option<SocketOwner>> {
        // A row that was read before the connection was made may be of an earlier one with the same port.
        if self.read_at.is_none_or(|read_at| read_at <= since) {
            self.sockets.clear();
            self.read_at = None;
            let read_at = Instant::now();
            let mut is_there = false;
            for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
                match read_table(path) {
                    Ok(text) => {
                        is_there = true;
                        self.sockets.extend(sockets_to(&text, ours));
                    }
                    // A machine without IPv6 has only one.
                    Err(error) if says_never(&error) => {}
                    // With half of the tables, another user's connection would pass for one that its client has closed.
                    Err(error) => return Err(error),
                }
            }
            if !is_there {
                return Err(io::ErrorKind::Unsupported.into());
            }
            self.read_at = Some(read_at);
        }
        Ok(self.sockets.get(&plain(peer)).copied())
    }

    /// As [`HolderFinder::find`].
    pub(crate) fn holder(&self, owner: SocketOwner) -> Option<Peer> {
        self.holders.find(owner)
    }

    /// Whether a search for a holder has been given up since the last call, because there were too many descriptors.
    pub(crate) fn has_given_up(&self) -> bool {
        std::mem::take(&mut self.holders.state().has_given_up)
    }

    /// Whether searches omit descriptors on this machine, so that a socket can have a holder that they do not find.
    pub(crate) fn omits_any(&self) -> bool {
        self.holders.state().omits_any
    }
}

/// Finds the process that holds a socket by a search through descriptors: first of the processes of the run, then of the socket's user,
/// then of unrelated processes. Otherwise processes with many descriptors, which any user can start, would use up the limits.
#[derive(Debug, Default)]
pub(crate) struct HolderFinder {
    command: CommandProcess,
    state: Mutex<HolderState>,
}

#[derive(Debug, Default)]
struct HolderState {
    recent_pids: Vec<u32>,
    /// When searches include again the processes that belong neither to the run nor to the socket's user.
    unrelated_again_at: Option<Instant>,
    has_given_up: bool,
    /// A search was given up at any time.
    omits_any: bool,
}

impl HolderFinder {
    /// For a run with this command.
    pub(crate) fn new(command: CommandProcess) -> Self {
        HolderFinder { command, ..HolderFinder::default() }
    }

    /// The process that holds this socket; `None` if it has ended, if longpole may not inspect it or does not find it within the limits,
    /// or if the system has no `/proc`. Several searches may run at the same time: a long one must not hold up others.
    pub(crate) fn find(&self, owner: SocketOwner) -> Option<Peer> {
        let began = Instant::now();
        let (recent, with_unrelated) = {
            let state = self.state();
            (state.recent_pids.clone(), state.unrelated_again_at.is_none_or(|at| at <= began))
        };
        let wanted = socket_name(owner.inode);
        let mut search = Search::new(|pid, links_left: &mut usize| holds(pid, &wanted, links_left));
        let (mut is_kin, is_of_user) = (self.command.kin(), |pid| belongs_to(pid, owner.uid));
        // Not the holders of other users' sockets: they can have as many descriptors as they like.
        let found = recent.into_iter().find(|pid| (is_kin(*pid) || is_of_user(*pid)) && search.holds(*pid));
        let found = found.or_else(|| search.first(&all_pids()?, &mut is_kin, is_of_user, with_unrelated));
        let Some(mut pid) = found else {
            if search.was_cut {
                let mut state = self.state();
                state.has_given_up = true;
                state.omits_any = true;
                if with_unrelated {
                    let now = Instant::now();
                    state.unrelated_again_at = now.checked_add(UNRELATED_PAUSE_FACTOR * (now - began));
                }
            }
            return None;
        };
        // A fork inherits the descriptor, so the oldest ancestor that holds it too is the one that connected.
        while let Some(parent) = parent_of(pid).filter(|parent| search.holds(*parent)) {
            pid = parent;
        }
        let mut state = self.state();
        state.recent_pids.retain(|recent| *recent != pid);
        state.recent_pids.insert(0, pid);
        state.recent_pids.truncate(RECENT_PIDS_MAX);
        Peer::of(pid)
    }

    fn state(&self) -> MutexGuard<'_, HolderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One search for a descriptor, with its limits: for each process, and for all.
struct Search<L> {
    /// Whether a process has the descriptor; subtracts the descriptors that it reads from the number.
    inspect: L,
    links_left: usize,
    /// The search omitted descriptors.
    was_cut: bool,
}

impl<L: FnMut(u32, &mut usize) -> bool> Search<L> {
    fn new(inspect: L) -> Self {
        Search { inspect, links_left: PEER_SEARCH_LINKS_MAX, was_cut: false }
    }

    fn holds(&mut self, pid: u32) -> bool {
        let allowed = self.links_left.min(PEER_LINKS_MAX);
        let mut left = allowed;
        let holds = allowed > 0 && (self.inspect)(pid, &mut left);
        self.links_left -= allowed - left;
        self.was_cut |= !holds && left == 0;
        holds
    }

    /// The first that holds it. Youngest first within each group: the process that just connected most likely just started.
    fn first(
        &mut self,
        pids: &[u32],
        mut is_kin: impl FnMut(u32) -> bool,
        is_of_user: impl Fn(u32) -> bool,
        with_unrelated: bool,
    ) -> Option<u32> {
        let mut others = Vec::new();
        for pid in pids {
            if !is_kin(*pid) {
                others.push(*pid);
            } else if self.holds(*pid) {
                return Some(*pid);
            }
        }
        let (of_user, unrelated): (Vec<u32>, Vec<u32>) = others.into_iter().partition(|pid| is_of_user(*pid));
        if let Some(pid) = of_user.into_iter().find(|pid| self.holds(*pid)) {
            return Some(pid);
        }
        if with_unrelated {
            return unrelated.into_iter().find(|pid| self.holds(*pid));
        }
        self.was_cut |= !unrelated.is_empty();
        None
    }
}

/// Whether a process is of this user.
fn belongs_to(pid: u32, uid: u32) -> bool {
    match fs::metadata(format!("/proc/{pid}")).map(|metadata| metadata.uid()) {
        Ok(found) if found == uid => true,
        // A process that became another user has root's files here until it executes a program.
        Ok(0) => uid_of(pid) == Some(uid),
        Ok(_) | Err(_) => false,
    }
}

/// The effective user of a process: `Uid: real effective saved filesystem`.
fn uid_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The command of a run, once it is started: a process is of the run if it is the command or descends from it.
///
/// A descendant of longpole is not enough: as PID 1 of a container, or as a child subreaper, longpole inherits all orphans there.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandProcess(Arc<OnceLock<Peer>>);

impl CommandProcess {
    /// Notes that it is started. A command that has already ended has no descendants.
    pub(crate) fn note(&self, pid: u32) {
        if let Some(peer) = Peer::of(pid) {
            // There is one command.
            let _ = self.0.set(peer);
        }
    }

    /// Whether a process is the command, or descends from it.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.kin()(pid)
    }

    /// Whether a living process of the command has this user.
    pub(crate) fn has_user(&self, uid: u32) -> bool {
        let mut is_kin = self.kin();
        all_pids().unwrap_or_default().into_iter().any(|pid| uid_of(pid) == Some(uid) && is_kin(pid))
    }

    /// Says of many processes whether they belong to the command, and reads each parent once. None does before the command starts, nor
    /// after it has ended, when another process may have its number.
    fn kin(&self) -> impl FnMut(u32) -> bool {
        let command = self.0.get().copied();
        let mut known: HashMap<u32, bool> = command.map(|command| (command.pid, true)).into_iter().collect();
        move |pid| {
            let Some(command) = command else { return false };
            let mut line = Vec::new();
            let mut next = Some(pid);
            let is_kin = loop {
                match next {
                    Some(pid) if known.contains_key(&pid) => break known[&pid],
                    Some(pid) if line.len() < ANCESTORS_MAX => {
                        line.push(pid);
                        next = parent_of(pid);
                    }
                    Some(_) | None => break false,
                }
            };
            known.extend(line.into_iter().map(|pid| (pid, is_kin)));
            is_kin && command.lives()
        }
    }
}

/// Whether a process lives in a namespace of process ids other than ours, where it and its neighbours call themselves by numbers that are
/// those of other processes here.
pub(crate) fn counts_otherwise(pid: u32) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    namespace(&pid.to_string()).zip(namespace("self")).is_some_and(|(theirs, ours)| theirs != ours)
}

/// Whether this is one of the numbers that a process has in its namespaces: `NSpid: 4711 12 1`, ours first.
pub(crate) fn is_called(pid: u32, number: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    numbers.split_ascii_whitespace().any(|found| found.parse() == Ok(number))
}

/// Whether a process, or one that it descends from, has this variable in the environment that it was started with, where we may see it.
///
/// Reads only processes of root and of our user. Another user's process can choose the memory that it shows as its environment
/// (`PR_SET_MM`, prctl(2)): memory without an end, or of a file system that never delivers it, so that the reader cannot even be killed.
pub(crate) fn inherits_variable(pid: u32, name: &str, value: &str) -> bool {
    let own = Owner::current();
    let is_trusted = |pid: u32| uid_of(pid).is_some_and(|uid| own.relies_on(uid));
    let has_it = |pid: u32| {
        let Some(environment) = is_trusted(pid).then(|| fs::File::open(format!("/proc/{pid}/environ")).ok()).flatten() else {
            return false;
        };
        // It may have become another program, of another user, before it was opened.
        is_trusted(pid) && has_variable(environment, name, value)
    };
    std::iter::successors(Some(pid), |pid| parent_of(*pid)).take(ANCESTORS_MAX).any(has_it)
}

fn has_variable(environment: impl Read, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    let mut pairs = io::BufReader::new(environment.take(ENVIRONMENT_BYTES_MAX)).split(0).map_while(Result::ok);
    pairs.any(|pair| pair == wanted.as_bytes())
}

/// Whether some client of one of `ours` has sent what the kernel did not deliver yet: one of `clients`, where these are given. On loopback
/// that takes no time, unless the machine is so busy that the kernel leaves it to a thread of its own, which waits its turn as others do.
pub(crate) fn is_on_its_way(ours: &[SocketAddr], clients: Option<&[SocketAddr]>) -> bool {
    let clients: Option<HashSet<_>> = clients.map(|clients| clients.iter().map(|client| plain(*client)).collect());
    let awaited = |client: (IpAddr, u16)| clients.as_ref().is_none_or(|clients| clients.contains(&client));
    let mut tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(table_text);
    tables.any(|text| ours.iter().any(|ours| has_unsent(&text, *ours, awaited)))
}

/// Whether a row whose remote address is `remote` has something that was not acknowledged: a beginning, bytes, or an end.
fn has_unsent(table: &str, remote: SocketAddr, awaited: impl Fn((IpAddr, u16)) -> bool) -> bool {
    const SYN_SENT: &str = "02";
    table.lines().skip(1).any(|row| {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let client = fields.next().and_then(parse_address);
        let is_ours = fields.next().and_then(parse_address) == Some(plain(remote));
        let begins = fields.next() == Some(SYN_SENT);
        let unsent =
            fields.next().and_then(|queues| queues.split_once(':')).is_some_and(|(sent, _)| sent.bytes().any(|digit| digit != b'0'));
        is_ours && (begins || unsent) && client.is_some_and(&awaited)
    })
}

/// A table of sockets; `None` where it is not there, or not text.
pub(crate) fn table_text(path: &str) -> Option<String> {
    read_table(path).ok()
}

fn read_table(path: &str) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(PEER_TABLE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether this is the error of a system that never says whose a socket is. One that lacks descriptors or memory says it at another time,
/// and anybody can bring it there.
pub(crate) fn says_never(error: &io::Error) -> bool {
    /// EPROTONOSUPPORT, ESOCKTNOSUPPORT and EAFNOSUPPORT of `<asm-generic/errno.h>`: no sockets of this kind, or none for us.
    const NO_SUCH_SOCKETS: [i32; 3] = [93, 94, 97];
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
        || error.raw_os_error().is_some_and(|code| NO_SUCH_SOCKETS.contains(&code))
}

/// Local address and owner of each row whose remote address is `remote`.
fn sockets_to(table: &str, remote: SocketAddr) -> impl Iterator<Item = ((IpAddr, u16), SocketOwner)> {
    table.lines().skip(1).filter_map(move |row| {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let local = parse_address(fields.next()?)?;
        if parse_address(fields.next()?)? != plain(remote) {
            return None;
        }
        // After the two addresses: state, queues, timer, retransmits, uid, timeout, inode. A socket that its process closed has no inode,
        // and its uid is then that of root, whoever it was.
        let uid = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok().filter(|inode| *inode != 0)?;
        Some((local, SocketOwner { uid, inode }))
    })
}

/// `0100007F:1F90`: each 32-bit word of the address as the kernel holds it, printed as a number of the host's byte order.
pub(crate) fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (i, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(8 * i)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((address, port))
}

pub(crate) fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// What a descriptor of this socket is called.
pub(crate) fn socket_name(inode: u64) -> String {
    format!("socket:[{inode}]")
}

/// Every process, youngest first.
pub(crate) fn all_pids() -> Option<Vec<u32>> {
    let mut pids: Vec<u32> = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable_by(|a, b| b.cmp(a));
    Some(pids)
}

/// Whether the process has a descriptor of this name. Another user's process, or one that ended meanwhile, has none that
/// we see.
pub(crate) fn holds(pid: u32, wanted: &str, links_left: &mut usize) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    for descriptor in descriptors.flatten() {
        match links_left.checked_sub(1) {
            Some(left) => *links_left = left,
            None => return false,
        }
        if fs::read_link(descriptor.path()).is_ok_and(|target| target.as_os_str() == wanted) {
            return true;
        }
    }
    false
}

pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    with_stat(pid, |stat| stat.parent()).filter(|parent| *parent != 0)
}

fn started(pid: u32) -> Option<u64> {
    with_stat(pid, |stat| stat.start_ticks())
}

fn with_stat<T>(pid: u32, field: impl FnOnce(ProcStat<'_>) -> Option<T>) -> Option<T> {
    // A program may give itself a name that is no text.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    field(ProcStat::parse(&String::from_utf8_lossy(&stat))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// Rows of a real machine, little-endian.
    #[cfg(target_endian = "little")]
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50001 1 ffff8881 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 50002 1 ffff8882 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 50003 1 ffff8883 20 4 30 10 -1
   3: 0100007F:C351 0100007F:1F90 06 00000000:00000000 03:00000A2B 00000000     0        0 0 3 ffff8884
";
    #[cfg(target_endian = "little")]
    const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:C352 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 60001 1 ffff 20 4 30 10 -1
   1: 00000000000000000000000001000000:C353 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000     0        0 60002 1 ffff 20 4 30 10 -1
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_rows_of_clients_are_found_in_both_tables() {
        let check = |table, to: &str, expected: &[(&str, u32, u64)]| {
            let owner = |(from, uid, inode): &(&str, u32, u64)| (plain(from.parse().unwrap()), SocketOwner { uid: *uid, inode: *inode });
            let expected: Vec<_> = expected.iter().map(owner).collect();
            assert_eq!(sockets_to(table, to.parse().unwrap()).collect::<Vec<_>>(), expected);
        };
        // Not our own end, not the listener, not the socket that is closing.
        check(TCP, "127.0.0.1:8080", &[("127.0.0.1:50000", 1000, 50003)]);
        // IPv4 through an IPv6 socket.
        check(TCP6, "127.0.0.1:8080", &[("127.0.0.1:50002", 0, 60001)]);
        check(TCP6, "[::1]:8080", &[("[::1]:50003", 0, 60002)]);
        check("header\n1: zz:1 0:0\n\n:", "127.0.0.1:2", &[]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn what_is_not_delivered_yet_is_seen() {
        let row = |state: &str, queues: &str| {
            format!("header\n   2: 0100007F:C350 0100007F:1F90 {state} {queues} 00:00000000 00000000  1000        0 50003 1 ffff8883 20")
        };
        let check = |state, queues, to: &str| has_unsent(&row(state, queues), to.parse().unwrap(), |_| true);
        assert!(!check("01", "00000000:00000000", "127.0.0.1:8080"), "idle");
        assert!(!check("01", "00000000:00000009", "127.0.0.1:8080"), "an answer that the client does not read");
        assert!(!check("06", "00000000:00000000", "127.0.0.1:8080"), "over");
        assert!(check("02", "00000000:00000000", "127.0.0.1:8080"), "a connection that begins");
        assert!(check("01", "00000200:00000000", "127.0.0.1:8080"), "bytes");
        assert!(check("04", "00000001:00000000", "127.0.0.1:8080"), "an end");
        assert!(!check("01", "00000200:00000000", "127.0.0.1:8081"), "somebody else's");
    }

    #[test]
    fn connections_of_this_process_are_its_own_and_those_that_are_gone_are_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut finder = PeerFinder::default();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, peer) = listener.accept().unwrap();
            (client, peer, ours.local_addr().unwrap(), Instant::now())
        };
        let (first, second) = (connect(), connect());
        let us = std::process::id();
        for (_, peer, ours, since) in [&first, &second] {
            let owner = finder.owner(*peer, *ours, *since).unwrap().unwrap();
            assert_eq!(owner.uid, Owner::current().uid);
            let peer = finder.holder(owner).unwrap();
            assert!(peer.pid == us && peer.lives(), "{peer:?}");
        }
        let (client, peer, ours, since) = connect();
        let owner = finder.owner(peer, ours, since).unwrap().unwrap();
        drop(client);
        assert_eq!(finder.owner(peer, ours, Instant::now()).unwrap(), None);
        assert_eq!(finder.holder(owner), None);
        assert!(!finder.has_given_up(), "the search was complete");
    }

    /// Searches for the holder among processes, youngest first: number, user, of the run, descriptors, whether the last of them is the
    /// one. Returns the holder, whether the search omitted descriptors, and how many it read.
    fn search(processes: &[(u32, u32, bool, usize, bool)], uid: u32, with_unrelated: bool) -> (Option<u32>, bool, usize) {
        let of = |pid: u32| processes.iter().find(|process| process.0 == pid).unwrap();
        let mut looked = 0;
        let mut search = Search::new(|pid, links_left: &mut usize| {
            let (_, _, _, links, holds) = *of(pid);
            let seen = links.min(*links_left);
            *links_left -= seen;
            looked += seen;
            holds && seen == links
        });
        let pids: Vec<u32> = processes.iter().map(|process| process.0).collect();
        let found = search.first(&pids, |pid| of(pid).2, |pid| of(pid).1 == uid, with_unrelated);
        let was_cut = search.was_cut;
        (found, was_cut, looked)
    }

    #[test]
    fn young_processes_of_others_with_many_descriptors_do_not_hide_who_sends() {
        let hogs = [(99, 65_534, false, 19_895, false), (98, 65_534, false, 19_895, false), (97, 65_534, false, 19_895, false)];
        let among = |client| [&hogs[..], &[client]].concat();
        // A process of the run, also as another user; one of the socket's user; one that is neither, behind too many descriptors.
        assert_eq!(search(&among((9, 0, true, 10, true)), 0, true), (Some(9), false, 10));
        assert_eq!(search(&among((9, 33, true, 10, true)), 65_534, true), (Some(9), false, 10));
        assert_eq!(search(&among((9, 0, false, 10, true)), 0, true), (Some(9), false, 10));
        assert_eq!(search(&among((9, 33, false, 10, true)), 0, true), (None, true, PEER_SEARCH_LINKS_MAX));
        // Until the pause is over, a search omits unrelated processes.
        assert_eq!(search(&among((9, 0, false, 10, true)), 0, false), (Some(9), false, 10));
        assert_eq!(search(&among((9, 33, false, 10, true)), 0, false), (None, true, 0));
        // One process with more descriptors than the limit does not hide the next.
        let large = (12, 0, true, 1_000_000, false);
        assert_eq!(search(&[large, (9, 0, true, 10, true)], 0, true), (Some(9), true, PEER_LINKS_MAX + 10));
        // The holder has ended: the search is complete and finds none.
        assert_eq!(search(&[(12, 0, true, 10, false), (11, 1, false, 10, false)], 0, true), (None, false, 20));
    }

    #[test]
    fn a_search_that_gave_up_says_so_and_the_holders_that_are_near_are_found_still() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, peer) = listener.accept().unwrap();
        let mut finder = PeerFinder::default();
        let owner = finder.owner(peer, ours.local_addr().unwrap(), Instant::now()).unwrap().unwrap();
        let of_another = SocketOwner { uid: 4_000_000_000, ..owner };
        assert!(finder.holder(of_another).is_some() && !finder.has_given_up(), "the search was complete");
        finder.holders.state().unrelated_again_at = Instant::now().checked_add(std::time::Duration::from_secs(1000));
        assert!(finder.holder(of_another).is_none() && finder.has_given_up() && !finder.has_given_up());
        assert!(finder.holder(owner).is_some_and(|peer| peer.pid == std::process::id()) && !finder.has_given_up());
        // A run's own processes are found whoever they are.
        let finder = HolderFinder::default();
        finder.command.note(std::process::id());
        finder.state().unrelated_again_at = Instant::now().checked_add(std::time::Duration::from_secs(1000));
        assert!(finder.find(of_another).is_some_and(|peer| peer.pid == std::process::id()) && !finder.state().has_given_up);
        drop(client);
    }

    #[test]
    fn a_variable_is_found_in_the_environment_of_a_parent_and_never_in_memory_of_another_user() {
        use std::os::unix::process::CommandExt;
        // The number of a process that became another user: with the variable itself, and below a parent that has it.
        let number_of = |script: &str, uid: u32| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", script]).env("LONGPOLE_RUN_ID", "of this run").stdin(std::process::Stdio::piped());
            let mut shell = command.stdout(std::process::Stdio::piped()).uid(uid).spawn().unwrap();
            let mut line = String::new();
            io::BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
            (shell, line.trim().parse::<u32>().unwrap())
        };
        let inherits = |pid| inherits_variable(pid, "LONGPOLE_RUN_ID", "of this run");
        let own = Owner::current().uid;
        // Both live until their standard input ends.
        let (mut parent, child) = number_of("env -i sh -c 'echo $$; cat'; :", own);
        assert!(child != parent.id() && inherits(child));
        if own == 0 {
            let (mut other, itself) = number_of("echo $$; cat", 65_534);
            assert!(!inherits(itself));
            drop(other.stdin.take());
            other.wait().unwrap();
        } else {
            longpole_testing::skip("the environment of another user's process", "only root may look at it");
        }
        drop(parent.stdin.take());
        parent.wait().unwrap();
    }

    #[test]
    fn an_environment_without_an_end_ends() {
        assert!(!has_variable(io::repeat(0), "A", "b") && !has_variable(io::repeat(b'x'), "A", "b"));
        assert!(has_variable(&b"B=c\0A=b\0"[..], "A", "b") && !has_variable(&b"AA=b\0A=bc\0"[..], "A", "b"));
    }

    #[test]
    fn a_system_without_descriptors_is_not_one_that_never_tells() {
        // ENOENT, EPROTONOSUPPORT, EAFNOSUPPORT, ENOSYS, EACCES; EMFILE, ENFILE, ENOMEM, EAGAIN, ENOBUFS, EINTR.
        assert_eq!([2, 93, 97, 38, 13].map(|code| says_never(&io::Error::from_raw_os_error(code))), [true; 5]);
        assert_eq!([24, 23, 12, 11, 105, 4].map(|code| says_never(&io::Error::from_raw_os_error(code))), [false; 6]);
        assert!(says_never(&io::ErrorKind::Unsupported.into()) && !says_never(&io::ErrorKind::UnexpectedEof.into()));
    }

    #[test]
    fn who_descends_from_the_command_is_known_by_its_parents_and_a_number_alone_is_nobody() {
        let mut child = std::process::Command::new("sleep").arg("1000").env("LONGPOLE_RUN_ID", "of this run").spawn().unwrap();
        let peer = Peer::of(child.id()).unwrap();
        let command = CommandProcess::default();
        assert!(!command.has(peer.pid) && !command.has_user(Owner::current().uid), "it is not started");
        command.note(peer.pid);
        assert!(peer.lives() && command.has(peer.pid) && command.has_user(Owner::current().uid));
        assert!(!command.has(std::process::id()) && !command.has(1));
        assert!(!command.has_user(4_000_000_000));
        // The child is there before it has executed its program, with our own environment, and then for a moment without any.
        let executes = || fs::read_link(format!("/proc/{}/exe", peer.pid)).unwrap() != fs::read_link("/proc/self/exe").unwrap();
        while !executes() || fs::read(format!("/proc/{}/environ", peer.pid)).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let inherits = |value| inherits_variable(peer.pid, "LONGPOLE_RUN_ID", value);
        assert!(inherits("of this run") && !inherits("of this"));
        assert!(!Peer { started: peer.started + 1, ..peer }.lives(), "another process with its number");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!peer.lives() && !command.has(peer.pid));
    }

    #[test]
    fn a_child_of_ours_that_the_command_did_not_start_is_not_of_the_command() {
        // What PID 1 and a subreaper are given: a child of ours, and what it started.
        let start = || {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", "sh -c 'echo $$; cat'; :"]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            let mut shell = shell.spawn().unwrap();
            let mut line = String::new();
            io::BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
            (shell, line.trim().parse::<u32>().unwrap())
        };
        let ((mut ours, child), (mut orphan, grandchild)) = (start(), start());
        let command = CommandProcess::default();
        command.note(ours.id());
        let mut is_kin = command.kin();
        assert_eq!(
            [ours.id(), child, orphan.id(), grandchild, child, grandchild].map(&mut is_kin),
            [true, true, false, false, true, false]
        );
        assert!(child != ours.id() && command.has(child) && !command.has(grandchild));
        for shell in [&mut ours, &mut orphan] {
            drop(shell.stdin.take());
            shell.wait().unwrap();
        }
        assert!(!is_kin(child) && !is_kin(std::process::id()), "it has ended");
    }
}
