//! Ports that are open, before somebody serves them.

use std::io;
use std::net::{SocketAddr, TcpListener};

use tokio::io::unix::AsyncFd;
use tokio::net::{TcpSocket, UdpSocket};
use tokio::runtime::Runtime;

use super::Clients;
use crate::limits::BACKLOG;

/// An address at which the receiver cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("listen at {address}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// Why not.
    pub source: io::Error,
}

/// The ports of a receiver. The kernel takes connections and packets for them, which wait until the receiver starts.
#[derive(Debug)]
pub struct OpenPorts {
    pub(super) runtime: Runtime,
    pub(super) http: Vec<AsyncFd<TcpListener>>,
    pub(super) udp: Vec<UdpSocket>,
    pub(super) appdash: Vec<AsyncFd<TcpListener>>,
}

impl OpenPorts {
    /// Opens the ports of these clients.
    ///
    /// # Errors
    ///
    /// With a [`ListenError`] inside if one of them cannot be opened: another program has it.
    pub fn of(clients: &Clients) -> io::Result<OpenPorts> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (http, udp, appdash) = clients.addresses();
        let opened = {
            let _of_runtime = runtime.enter();
            let http = http.into_iter().map(|address| at(address, listen)).collect::<io::Result<_>>()?;
            let appdash = appdash.into_iter().map(|address| at(address, listen)).collect::<io::Result<_>>()?;
            let udp = udp.into_iter().map(|address| at(address, open_udp)).collect::<io::Result<_>>()?;
            (http, udp, appdash)
        };
        let (http, udp, appdash) = opened;
        Ok(OpenPorts { runtime, http, udp, appdash })
    }

    /// The number of a port of HTTP, by its place among them.
    pub fn port_of(&self, place: usize) -> Option<u16> {
        self.http.get(place)?.get_ref().local_addr().ok().map(|address| address.port())
    }

    /// The listener of a port of HTTP once more, by its place among them: whoever has it may accept connections, too.
    pub fn another_listener(&self, place: usize) -> io::Result<TcpListener> {
        self.http.get(place).ok_or(io::ErrorKind::NotFound)?.get_ref().try_clone()
    }
}

fn at<T>(address: SocketAddr, open: impl FnOnce(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    open(address).map_err(|source| io::Error::new(source.kind(), ListenError { address, source }))
}

fn listen(address: SocketAddr) -> io::Result<AsyncFd<TcpListener>> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that starts again takes its port at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?.into_std()?;
    #[expect(deprecated, reason = "the new constructor is unsafe; a listener of std keeps its descriptor, as that one requires")]
    AsyncFd::new(listener)
}

fn open_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}
