//! Which sockets listen for connections, as the kernel says once for each new socket that a thread waits for ([`crate::socket_owner`]).

use std::fs;

use longpole_model::fast_hash::FastMap;

use crate::socket_owner::listening_inodes;

/// Sockets to remember.
const KNOWN_MAX: usize = 16_384;

/// Sockets by inode, and whether they listen.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    known: FastMap<u64, bool>,
}

impl Listeners {
    /// Whether the socket behind `socket:[123]`, a descriptor of this process, listens.
    pub(super) fn is_listening(&mut self, pid: u32, target: &str) -> bool {
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')).and_then(|inode| inode.parse().ok());
        let Some(inode) = inode else { return false };
        if let Some(listens) = self.known.get(&inode) {
            return *listens;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        // A socket listens from the first time that its program waits for it, or never.
        self.known.insert(inode, false);
        if is_in_our_network(pid) {
            let listening = listening_inodes().unwrap_or_default();
            self.known.extend(listening.into_iter().map(|inode| (inode, true)));
        }
        self.known.get(&inode) == Some(&true)
    }
}

/// The kernel lists sockets of our own network namespace only.
fn is_in_our_network(pid: u32) -> bool {
    let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    network("self").is_some_and(|ours| network(&pid.to_string()) == Some(ours))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_listens_or_not() {
        let mut listeners = Listeners::default();
        let mut listens = |descriptor: i32| {
            let pid = std::process::id();
            let target = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).unwrap();
            listeners.is_listening(pid, target.to_str().unwrap())
        };
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert_eq!((listens(listener.as_raw_fd()), listens(stream.as_raw_fd())), (true, false), "{address}");
        }
        let path = std::env::temp_dir().join(format!("longpole-listens-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (stream, _) = UnixStream::pair().unwrap();
        assert_eq!((listens(listener.as_raw_fd()), listens(stream.as_raw_fd())), (true, false));
    }
}
