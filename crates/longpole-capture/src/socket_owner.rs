//! The user and the inode of a client's socket on this machine, and which sockets listen, from netlink (sock_diag(7)): the kernel answers in
//! microseconds, where reading `/proc/net/tcp` takes milliseconds. One netlink socket serves all requests, so it is there when no descriptor is
//! left.
//!
//! ```text
//! nlmsghdr       len 72, type SOCK_DIAG_BY_FAMILY, flags REQUEST, sequence: the answer repeats it
//! inet_diag_req_v2   family, protocol TCP, states all, ports and addresses of the socket (big endian), no cookie
//! ◄ nlmsghdr     type SOCK_DIAG_BY_FAMILY; NLMSG_ERROR with -ENOENT where there is no such socket
//!   inet_diag_msg    … uid at byte 64, inode at byte 68
//!
//! nlmsghdr       flags REQUEST | DUMP; then inet_diag_req_v2 or unix_diag_req, with the state "listen" alone: the kernel does not walk the others
//! ◄ nlmsghdr …   one inet_diag_msg or unix_diag_msg (inode at byte 4) for each socket, then NLMSG_DONE
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use crate::sys::descriptors::{dropped_by, sock_diag_socket};

/// From `<linux/sock_diag.h>`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// From `<linux/netlink.h>`.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER_BYTES: usize = 16;
/// Header and `inet_diag_req_v2`.
const REQUEST_BYTES: usize = 72;
/// Offsets in an answer.
const UID_AT: usize = HEADER_BYTES + 64;
const INODE_AT: usize = HEADER_BYTES + 68;
const ERROR_AT: usize = HEADER_BYTES;
const SEQUENCE_AT: usize = 8;

/// The inode in an answer about a Unix socket.
const UNIX_INODE_AT: usize = HEADER_BYTES + 4;

/// The state of a socket that listens, as a bit: `TCP_LISTEN`.
const LISTENING: u32 = 1 << 10;

/// Sockets that listen, at most.
const LISTENING_MAX: usize = 4096;

/// Bytes of one answer with many sockets.
const DUMP_BYTES: usize = 32 << 10;

const AF_UNIX: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

/// The user id and the inode of the client's socket of a connection; `None` if its process has closed it.
///
/// The server's end of the connection must be open in this process.
///
/// # Errors
///
/// If the kernel does not answer: no sock_diag(7), or a seccomp filter.
pub fn owner_of_client(client: SocketAddr, server: SocketAddr) -> io::Result<Option<(u32, u64)>> {
    with_sock_diag(|sock_diag| sock_diag.owner_of_client(client, server))
}

/// How many attempts to connect to this listening socket the kernel has dropped, because too many waited for `accept`.
///
/// # Errors
///
/// If the kernel does not count them: before Linux 4.12, and in some sandboxes.
pub fn dropped_connections(listener: BorrowedFd<'_>) -> io::Result<u32> {
    dropped_by(listener)
}

/// The inodes of the sockets that listen in our network namespace.
///
/// # Errors
///
/// If the kernel does not answer: no sock_diag(7), or a seccomp filter.
pub(crate) fn listening_inodes() -> io::Result<Vec<u64>> {
    let mut inodes = Vec::new();
    with_sock_diag(|sock_diag| {
        sock_diag.dump(inet_listeners(AF_INET), INODE_AT, &mut inodes)?;
        sock_diag.dump(inet_listeners(AF_INET6), INODE_AT, &mut inodes)?;
        sock_diag.dump(unix_listeners(), UNIX_INODE_AT, &mut inodes)
    })?;
    Ok(inodes)
}

/// Opens the netlink socket, which the first request would do otherwise.
///
/// # Errors
///
/// If there is no sock_diag(7), or no descriptor.
pub fn prepare() -> io::Result<()> {
    with_sock_diag(|_| Ok(()))
}

fn with_sock_diag<T>(ask: impl FnOnce(&mut SockDiag) -> io::Result<T>) -> io::Result<T> {
    static OPENED: Mutex<Option<SockDiag>> = Mutex::new(None);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *opened {
        Some(sock_diag) => ask(sock_diag),
        none => ask(none.insert(SockDiag::open()?)),
    }
}

/// The netlink socket.
struct SockDiag {
    socket: File,
    /// Sequence of the last request.
    sequence: u32,
    /// The kernel has named a socket of TCP.
    knows_tcp: bool,
}

impl SockDiag {
    fn open() -> io::Result<Self> {
        Ok(SockDiag { socket: File::from(sock_diag_socket()?), sequence: 0, knows_tcp: false })
    }

    /// User id and inode of the client's socket of a connection; `None` if it is closed.
    fn owner_of_client(&mut self, client: SocketAddr, server: SocketAddr) -> io::Result<Option<(u32, u64)>> {
        if let Some(owner) = self.owner(client, server)? {
            self.knows_tcp = true;
            return Ok(Some(owner).filter(|(_, inode)| *inode != 0));
        }
        // A kernel without sock_diag for TCP answers that no socket exists. Ours does.
        if !self.knows_tcp && self.owner(server, client)?.is_none() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.knows_tcp = true;
        Ok(None)
    }

    /// The inodes in all answers to a request.
    fn dump(&mut self, mut request: Vec<u8>, inode_at: usize, inodes: &mut Vec<u64>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        request[SEQUENCE_AT..SEQUENCE_AT + 4].copy_from_slice(&self.sequence.to_ne_bytes());
        self.socket.write_all(&request)?;
        let mut bytes = vec![0; DUMP_BYTES];
        while inodes.len() < LISTENING_MAX {
            let length = self.socket.read(&mut bytes)?;
            if length == 0 {
                break;
            }
            let mut rest = &bytes[..length];
            while let Some((answer, others)) = first_message(rest) {
                rest = others;
                if !is_answer_to(self.sequence, answer) {
                    continue;
                }
                match kind(answer) {
                    Some(SOCK_DIAG_BY_FAMILY) => inodes.extend(word(answer, inode_at).map(u64::from)),
                    // A kernel without the table has no such socket to tell of.
                    Some(NLMSG_DONE | NLMSG_ERROR) => return Ok(()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// User id and inode of the socket at `local`; `None` if there is none.
    fn owner(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<(u32, u64)>> {
        let (local_ip, remote_ip) = (local.ip().to_canonical(), remote.ip().to_canonical());
        let family = if local_ip.is_ipv4() { AF_INET } else { AF_INET6 };
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.write_all(&request(self.sequence, family, (local_ip, local.port()), (remote_ip, remote.port())))?;
        let mut answer = [0; 1024];
        loop {
            let length = self.socket.read(&mut answer)?;
            // An answer to an earlier request, whose reader failed, is about another client.
            if is_answer_to(self.sequence, &answer[..length]) {
                return parse(&answer[..length]);
            }
        }
    }
}

/// Whether this answers the request with that sequence. An answer too short to have one answers any, and is an error.
fn is_answer_to(sequence: u32, answer: &[u8]) -> bool {
    answer.get(SEQUENCE_AT..SEQUENCE_AT + 4).is_none_or(|found| found == sequence.to_ne_bytes())
}

fn request(sequence: u32, family: u8, local: (IpAddr, u16), remote: (IpAddr, u16)) -> [u8; REQUEST_BYTES] {
    let mut out = Vec::with_capacity(REQUEST_BYTES);
    out.extend((REQUEST_BYTES as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    // The kernel fills in the sender.
    out.extend(sequence.to_ne_bytes());
    out.extend([0; 4]);
    // Family, protocol, no extensions, padding; every state.
    out.extend([family, IPPROTO_TCP, 0, 0]);
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(local.1.to_be_bytes());
    out.extend(remote.1.to_be_bytes());
    out.extend(address(local.0));
    out.extend(address(remote.0));
    // Any interface; no cookie.
    out.extend(0_u32.to_ne_bytes());
    out.extend([0xff; 8]);
    let mut request = [0; REQUEST_BYTES];
    request.copy_from_slice(&out);
    request
}

/// All sockets of TCP that listen.
fn inet_listeners(family: u8) -> Vec<u8> {
    let any: IpAddr = if family == AF_INET { [0; 4].into() } else { [0; 16].into() };
    let mut request = request(0, family, (any, 0), (any, 0)).to_vec();
    request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&LISTENING.to_ne_bytes());
    request
}

/// All Unix sockets that listen.
fn unix_listeners() -> Vec<u8> {
    let mut request = Vec::with_capacity(40);
    request.extend(40_u32.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.extend([0; 8]);
    request.extend([AF_UNIX, 0, 0, 0]);
    request.extend(LISTENING.to_ne_bytes());
    // No inode, nothing besides the sockets themselves, no cookie.
    request.extend([0; 16]);
    request
}

/// The first message of an answer, and what follows it.
fn first_message(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = word(answer, 0)? as usize;
    let (message, rest) = answer.split_at_checked(length).filter(|(message, _)| message.len() >= HEADER_BYTES)?;
    Some((message, rest.get(length.next_multiple_of(4) - length..).unwrap_or_default()))
}

fn word(answer: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?))
}

fn kind(answer: &[u8]) -> Option<u16> {
    answer.get(4..6).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]))
}

fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            bytes
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// User id and inode; `None` if there is no such socket.
fn parse(answer: &[u8]) -> io::Result<Option<(u32, u64)>> {
    let word = |at: usize| word(answer, at);
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    match kind(answer) {
        Some(SOCK_DIAG_BY_FAMILY) => {
            let (uid, inode) = word(UID_AT).zip(word(INODE_AT)).ok_or_else(cut)?;
            Ok(Some((uid, inode.into())))
        }
        Some(NLMSG_ERROR) => {
            let error = io::Error::from_raw_os_error((word(ERROR_AT).ok_or_else(cut)? as i32).wrapping_neg());
            if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
        }
        _ => Err(cut()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    #[test]
    fn a_client_has_an_owner_until_it_is_closed() {
        let us = std::fs::metadata("/proc/self").unwrap().uid();
        for (listen, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::1]:0", "::1")] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let client = TcpStream::connect((connect, listener.local_addr().unwrap().port())).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let ours = accepted.local_addr().unwrap();
            let (uid, inode) = owner_of_client(peer, ours).unwrap().unwrap();
            let link = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&client))).unwrap();
            assert_eq!((uid, format!("socket:[{inode}]")), (us, link.to_string_lossy().into_owned()));
            drop(client);
            assert_eq!(owner_of_client(peer, ours).unwrap(), None);
        }
        // Neither end exists, and this kernel is known to name those that do.
        let (client, server) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert_eq!(owner_of_client(client, server).unwrap(), None);
        // As on a kernel without sock_diag for TCP.
        assert!(SockDiag::open().unwrap().owner_of_client(client, server).is_err());
    }

    #[test]
    fn an_answer_to_an_earlier_request_is_skipped() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let ours = accepted.local_addr().unwrap();
            (client, accepted, peer, ours)
        };
        let (first, second) = (connect(), connect());
        let mut sock_diag = SockDiag::open().unwrap();
        let expected = sock_diag.owner(second.2, second.3).unwrap().unwrap();
        let (peer, ours) = (first.2, first.3);
        for sequence in [0, 77] {
            sock_diag.socket.write_all(&request(sequence, AF_INET, (peer.ip(), peer.port()), (ours.ip(), ours.port()))).unwrap();
        }
        assert_eq!(sock_diag.owner(second.2, second.3).unwrap(), Some(expected));
    }

    #[test]
    fn connections_that_nobody_accepts_are_counted_once_the_queue_is_full() {
        // The queue of the standard library: 128 and one.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(dropped_connections(listener.as_fd()).unwrap(), 0);
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(500));
        let clients: Vec<_> = (0..1000).map(connect).take_while(io::Result::is_ok).collect();
        assert!(clients.len() < 1000);
        assert!(dropped_connections(listener.as_fd()).unwrap() > 0);
    }

    #[test]
    fn messages_of_an_answer_are_separate() {
        let mut answer = vec![0; 40];
        (answer[0], answer[20]) = (17, 17);
        let (first, rest) = first_message(&answer).unwrap();
        let (second, rest) = first_message(rest).unwrap();
        assert_eq!((first.len(), second.len(), rest.len(), first_message(rest)), (17, 17, 0, None));
        answer[20] = 21;
        let (_, rest) = first_message(&answer).unwrap();
        assert_eq!(first_message(rest), None, "it is cut");
        answer[0] = 3;
        assert_eq!(first_message(&answer), None, "shorter than its header");
    }

    #[test]
    fn truncated_answers_are_errors() {
        assert!(parse(&[]).is_err());
        assert!(parse(&[0; 40]).is_err());
        let mut answer = vec![0; INODE_AT + 4];
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        answer[UID_AT..UID_AT + 4].copy_from_slice(&1000_u32.to_ne_bytes());
        answer[INODE_AT..].copy_from_slice(&77_u32.to_ne_bytes());
        assert_eq!(parse(&answer).unwrap(), Some((1000, 77)));
        assert!(parse(&answer[..INODE_AT + 3]).is_err());
    }
}
