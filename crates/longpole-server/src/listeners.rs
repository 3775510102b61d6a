//! Which process takes connections at an address that a span calls.
//!
//! A client's span names the address that it connected to. When the span arrives, some hundred milliseconds after the call and mostly
//! before the end of the server, the receiver reads from `/proc` which process listens there: the row of the socket names its inode, and
//! the process that holds a descriptor of it listens. It reads nothing unless a span calls an address of this machine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::limits::{LISTENER_LINKS_MAX, LISTENERS_MAX};
use crate::peer_process::{all_pids, holds, parent_of, parse_address, table_text};

/// State of a socket that takes connections.
const LISTEN: &str = "0A";

/// Pause before the next search for an address with a known listener: another process may have it now.
const FOUND_AGAIN: Duration = Duration::from_secs(10);

/// Pause before the next search for an address without a listener.
const MISSING_AGAIN: Duration = Duration::from_secs(1);

/// Sockets of one address, at most: workers of one server share it.
const SOCKETS_MAX: usize = 16;

/// What searches may take at once, and what part of the time beyond that: others wait for the receiver meanwhile.
const SEARCH_MAX: Duration = Duration::from_secs(1);
const SEARCH_PART: u32 = 20;

/// Finds listeners, each once.
#[derive(Debug, Default)]
pub(crate) struct ListenerFinder {
    /// Addresses of earlier searches, with the time of the search and the processes that listened.
    known: HashMap<SocketAddr, (Instant, Vec<u32>)>,
    /// When the searches so far are paid for: each moves it by its length times [`SEARCH_PART`].
    paid_at: Option<Instant>,
}

impl ListenerFinder {
    /// Whether another search may begin: all but [`SEARCH_MAX`] of those before is paid for.
    fn may_search(&self) -> bool {
        self.paid_at.is_none_or(|paid_at| paid_at.saturating_duration_since(Instant::now()) < SEARCH_MAX * SEARCH_PART)
    }

    fn pay(&mut self, since: Instant) {
        let now = Instant::now();
        let cost = now.saturating_duration_since(since) * SEARCH_PART;
        self.paid_at = Some(self.paid_at.map_or(now, |paid_at| paid_at.max(now)) + cost);
    }

    /// The processes that listen at these addresses and that no earlier search found.
    pub(crate) fn search(&mut self, called: &[SocketAddr], now: Instant) -> Vec<(u32, SocketAddr)> {
        let is_due = |address: &&SocketAddr| match self.known.get(*address) {
            None => self.known.len() < LISTENERS_MAX,
            Some((at, pids)) => now.saturating_duration_since(*at) >= if pids.is_empty() { MISSING_AGAIN } else { FOUND_AGAIN },
        };
        let due: Vec<SocketAddr> = called.iter().filter(is_due).copied().collect();
        if due.is_empty() {
            return Vec::new();
        }
        let rows: Vec<SocketRow> =
            ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(table_text).flat_map(|text| rows(&text)).collect();
        let mut new_ones = Vec::new();
        let mut holders: HashMap<u64, Vec<u32>> = HashMap::new();
        for address in due {
            let mut pids = Vec::new();
            for inode in inodes(&rows, address).into_iter().take(SOCKETS_MAX) {
                let holders = match holders.entry(inode) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        // What is left is searched with a later span.
                        if !self.may_search() {
                            return new_ones;
                        }
                        let since = Instant::now();
                        let holders = listening_processes(inode);
                        self.pay(since);
                        new.insert(holders)
                    }
                };
                pids.extend_from_slice(holders);
            }
            let (at, known) = self.known.entry(address).or_insert((now, Vec::new()));
            *at = now;
            for pid in pids {
                if !known.contains(&pid) {
                    known.push(pid);
                    new_ones.push((pid, address));
                }
            }
        }
        new_ones
    }
}

/// A socket: where it is, whether it listens, its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SocketRow {
    local: (IpAddr, u16),
    /// 0 where it does not listen.
    inode: u64,
}

fn rows(table: &str) -> Vec<SocketRow> {
    let row = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = parse_address(fields.next()?)?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        Some(SocketRow { local, inode: if state == LISTEN { inode } else { 0 } })
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// The listening sockets that a connection to this address reaches: those of the very address, else those that listen at all addresses
/// of this machine. `localhost` may mean the address of IPv6.
fn inodes(rows: &[SocketRow], called: SocketAddr) -> Vec<u64> {
    let of = |ip: IpAddr| -> Vec<u64> {
        let listens = |row: &&SocketRow| row.inode != 0 && row.local == (ip, called.port());
        rows.iter().filter(listens).map(|row| row.inode).collect()
    };
    let ip = called.ip().to_canonical();
    let mut found = of(ip);
    let is_here = ip.is_loopback() || rows.iter().any(|row| row.local.0 == ip);
    if found.is_empty() && is_here {
        found = of(Ipv4Addr::UNSPECIFIED.into());
        found.extend(of(Ipv6Addr::UNSPECIFIED.into()));
    }
    if found.is_empty() && ip == Ipv4Addr::LOCALHOST {
        found = of(Ipv6Addr::LOCALHOST.into());
    }
    found
}

/// The oldest process that holds this socket, and its forks, which hold it too and run the same program. A program that merely
/// inherited the descriptor does not listen.
fn listening_processes(inode: u64) -> Vec<u32> {
    let wanted = format!("socket:[{inode}]");
    let mut links_left = LISTENER_LINKS_MAX;
    let mut all = all_pids().unwrap_or_default();
    all.retain(|pid| holds(*pid, &wanted, &mut links_left));
    let Some(mut oldest) = all.first().copied() else { return Vec::new() };
    while let Some(parent) = parent_of(oldest).filter(|parent| all.contains(parent)) {
        oldest = parent;
    }
    let program = |pid: u32| std::fs::read_link(PathBuf::from(format!("/proc/{pid}/exe"))).ok();
    let same = program(oldest);
    all.retain(|pid| *pid == oldest || (same.is_some() && program(*pid) == same));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_very_address_wins_over_all_addresses() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50001 1 ffff8881 100 0 0 10 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50002 1 ffff8881 100 0 0 10 0
   2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50003 1 ffff8881 100 0 0 10 0
   3: 0700000A:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 50004 1 ffff8882 20 4 30 10 -1
";
        let tcp6 = "header
   0: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 60001 1
   1: 00000000000000000000000000000000:1F93 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 60002 1
garbage
";
        let all: Vec<SocketRow> = [tcp, tcp6].into_iter().flat_map(rows).collect();
        let check = |called: &str, expected: &[u64]| assert_eq!(inodes(&all, called.parse().unwrap()), expected, "{called}");
        check("127.0.0.1:8080", &[50001]);
        check("127.0.0.2:8080", &[50002]);
        check("127.0.0.1:8081", &[50003]);
        // An address of this machine, as some connection from it shows, and one of another.
        check("10.0.0.7:8081", &[50003]);
        check("10.0.0.8:8081", &[]);
        check("127.0.0.1:8082", &[60001]);
        check("[::1]:8082", &[60001]);
        check("127.0.0.1:8083", &[60002]);
        check("127.0.0.1:50000", &[]);
    }

    #[test]
    fn this_process_is_found_once_where_it_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, now) = (listener.local_addr().unwrap(), Instant::now());
        let mut finder = ListenerFinder::default();
        let found = finder.search(&[address], now);
        assert!(found.contains(&(std::process::id(), address)), "{found:?}");
        assert_eq!(finder.search(&[address], now + FOUND_AGAIN), []);
        drop(listener);
        assert_eq!(ListenerFinder::default().search(&[address], now), []);
    }
}
