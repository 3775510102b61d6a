//! The clients of the page: it serves connections of the user who opened it, and of root.
//!
//! The key alone is not enough. Browsers send the cookie to every port of 127.0.0.1, and so also to another user's server. So the page
//! reads from the kernel, once for each connection it accepts, which user the client's socket belongs to:
//!
//! | owner of the client's socket | |
//! |---|---|
//! | our user, or root (ssh forwards a port as either), or the user who called `sudo` | served |
//! | another user | refused with 403, whatever key it has |
//! | none that this kernel knows: the socket was closed, or is on another system (Windows around WSL) | served with the key, but not with the one for one use |
//! | unknown (no socket tables: gVisor; our number stands for all users that a user namespace does not map) | served with the key; `open` says so |
//!
//! The page finds out what the kernel can say once, before anybody else can connect. A later error does not open the page, because another
//! user may have caused it.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use longpole_store::users::{Owner, unmapped_uid};

use crate::limits::PROBE_CONNECTIONS_MAX;
use crate::peer_process::{AskOwner, PeerFinder};

/// Whose connections the page serves beside those of our user and root.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageClients {
    /// Reads the owner of a connection from the kernel; without it the page reads the tables of `/proc`, which takes milliseconds.
    pub ask_owner: Option<AskOwner>,
    /// A further user that the page serves: the one who called `sudo longpole open` has the browser.
    pub also: Option<u32>,
}

/// The client of a connection that the page serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageClient {
    /// Our user, or root.
    Ours,
    /// This kernel has no such socket. A client that has closed it reads no answer.
    Gone,
    /// The kernel does not say which user it is.
    Unknown,
}

/// Whether the page serves a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Served(PageClient),
    OtherUser,
}

/// How the kernel names the owner of a connection.
enum Way {
    AtOnce(AskOwner),
    ByTable(Mutex<PeerFinder>),
    Nowhere,
}

/// Checks connections.
pub(crate) struct ClientCheck {
    way: Way,
    own: Owner,
    also: Option<u32>,
    /// The number of everybody whom this user namespace does not know.
    unmapped_uid: Option<u32>,
}

impl ClientCheck {
    /// Finds out what this kernel says, by a connection of our own to a port that nobody knows yet.
    pub(crate) fn new(clients: PageClients, listener: &TcpListener) -> io::Result<Self> {
        let ours = listener.local_addr()?;
        let client = TcpStream::connect(ours)?;
        let peer = client.local_addr()?;
        // Another client may have been faster. Its connection proves nothing, and is closed.
        let accepted = (0..PROBE_CONNECTIONS_MAX).find_map(|_| match listener.accept() {
            Ok((accepted, from)) if from == peer => Some(Ok(accepted)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        let accepted = accepted.unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))?;
        let way = way(clients.ask_owner, peer, ours)?;
        let check = ClientCheck { way, own: Owner::current(), also: clients.also, unmapped_uid: unmapped_uid() };
        drop((client, accepted));
        Ok(check)
    }

    /// Serves everybody.
    pub(crate) fn of_everybody() -> Self {
        ClientCheck { way: Way::Nowhere, own: Owner::current(), also: None, unmapped_uid: None }
    }

    /// Whether the kernel distinguishes other users from our own.
    pub(crate) fn tells_users_apart(&self) -> bool {
        self.tells_users() && self.unmapped_uid.is_none_or(|uid| !self.is_ours(uid))
    }

    /// Whether the kernel gives the number of a user.
    fn tells_users(&self) -> bool {
        !matches!(self.way, Way::Nowhere)
    }

    fn is_ours(&self, uid: u32) -> bool {
        self.own.relies_on(uid) || self.also == Some(uid)
    }

    /// Whether an answer takes milliseconds.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self.way, Way::ByTable(_))
    }

    /// The owner of the connection that was accepted at `since`. After an error it is unknown, and the page must not serve the connection.
    pub(crate) fn admission(&self, peer: SocketAddr, ours: SocketAddr, since: Instant) -> io::Result<Admission> {
        if !self.tells_users() {
            return Ok(Admission::Served(PageClient::Unknown));
        }
        let owner = match &self.way {
            Way::AtOnce(ask) => ask(peer, ours)?,
            // The table is read up to a limit. Another user could be beyond it, so a missing row does not mean that the client is gone.
            Way::ByTable(finder) => {
                let owner = finder.lock().unwrap_or_else(PoisonError::into_inner).owner(peer, ours, since)?;
                Some(owner.ok_or(io::ErrorKind::NotFound)?)
            }
            Way::Nowhere => None,
        };
        Ok(match owner.map(|owner| owner.uid) {
            None => Admission::Served(PageClient::Gone),
            // Ours, or anybody's.
            Some(uid) if self.is_ours(uid) && Some(uid) == self.unmapped_uid => Admission::Served(PageClient::Unknown),
            Some(uid) if self.is_ours(uid) => Admission::Served(PageClient::Ours),
            Some(_) => Admission::OtherUser,
        })
    }
}

/// How the kernel names the owner of this connection of our own. An error if it could, but something ran out.
fn way(ask: Option<AskOwner>, peer: SocketAddr, ours: SocketAddr) -> io::Result<Way> {
    if let Some(ask) = ask {
        match ask(peer, ours) {
            Ok(Some(_)) => return Ok(Way::AtOnce(ask)),
            Err(error) if ran_out(&error) => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    let mut finder = PeerFinder::default();
    match finder.owner(peer, ours, Instant::now()) {
        Ok(Some(_)) => Ok(Way::ByTable(Mutex::new(finder))),
        Ok(None) | Err(_) => Ok(Way::Nowhere),
    }
}

/// Whether an error says that there is not enough of something, and nothing of what the kernel can tell: `ENOMEM`, `ENFILE`, `EMFILE`,
/// `ENOBUFS`.
fn ran_out(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer_process::SocketOwner;

    fn owner(uid: u32) -> io::Result<Option<SocketOwner>> {
        Ok(Some(SocketOwner { uid, inode: 7 }))
    }

    /// The verdict on the connection of port 1, if the kernel answers this for it, and our own user for all others.
    fn admission(ask: AskOwner, also: Option<u32>) -> io::Result<Admission> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let check = ClientCheck::new(PageClients { ask_owner: Some(ask), also }, &listener).unwrap();
        assert!(check.tells_users_apart() && !check.is_slow());
        check.admission("127.0.0.1:1".parse().unwrap(), listener.local_addr().unwrap(), Instant::now())
    }

    #[test]
    fn our_user_and_root_are_served_and_nobody_else_whatever_goes_wrong() {
        fn is_first(peer: SocketAddr) -> bool {
            peer.port() != 1
        }
        let ours = Admission::Served(PageClient::Ours);
        assert_eq!(admission(|_, _| owner(Owner::current().uid), None).unwrap(), ours);
        assert_eq!(admission(|_, _| owner(0), None).unwrap(), ours);
        assert_eq!(admission(|_, _| owner(4_000_000_000), None).unwrap(), Admission::OtherUser);
        assert_eq!(admission(|_, _| owner(4_000_000_000), Some(4_000_000_000)).unwrap(), ours);
        assert_eq!(
            admission(|peer, _| if is_first(peer) { owner(0) } else { Ok(None) }, None).unwrap(),
            Admission::Served(PageClient::Gone)
        );
        let error = admission(|peer, _| if is_first(peer) { owner(0) } else { Err(io::Error::from_raw_os_error(24)) }, None);
        assert_eq!(error.unwrap_err().raw_os_error(), Some(24));
        // Without a descriptor left, the page learns nothing from the kernel and does not start.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ask_owner: Option<AskOwner> = Some(|_, _| Err(io::Error::from_raw_os_error(24)));
        assert!(ClientCheck::new(PageClients { ask_owner, also: None }, &listener).is_err());
    }

    #[test]
    fn a_number_that_stands_for_many_users_does_not_say_whose_a_connection_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ask_owner: Option<AskOwner> = Some(|peer, _| owner(u32::from(peer.port())));
        let mut check = ClientCheck::new(PageClients { ask_owner, also: None }, &listener).unwrap();
        let admission = |check: &ClientCheck, uid: u16| {
            let ours = listener.local_addr().unwrap();
            check.admission(SocketAddr::from(([127, 0, 0, 1], uid)), ours, Instant::now()).unwrap()
        };
        for (own, also) in [(65_534, None), (1000, Some(65_534))] {
            (check.own.uid, check.also, check.unmapped_uid) = (own, also, Some(65_534));
            assert!(!check.tells_users_apart(), "open warns");
            assert_eq!(admission(&check, 65_534), Admission::Served(PageClient::Unknown));
            assert_eq!(admission(&check, 1001), Admission::OtherUser, "the namespace maps this user");
            // In the initial namespace `nobody` is a user as others are.
            check.unmapped_uid = None;
            assert!(check.tells_users_apart());
            assert_eq!(admission(&check, 65_534), Admission::Served(PageClient::Ours));
        }
        (check.own.uid, check.also, check.unmapped_uid) = (1000, None, Some(65_534));
        assert!(check.tells_users_apart());
        assert_eq!(admission(&check, 65_534), Admission::OtherUser);
    }

    #[test]
    fn the_tables_serve_if_the_kernel_answers_no_query() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ask_owner: Option<AskOwner> = Some(|_, _| Err(io::ErrorKind::Unsupported.into()));
        // A client that is faster than our own connection does not pass for it.
        let faster = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let check = ClientCheck::new(PageClients { ask_owner, also: None }, &listener).unwrap();
        assert!(check.tells_users_apart() && check.is_slow());
        drop(faster);
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        let ours = accepted.local_addr().unwrap();
        assert_eq!(check.admission(peer, ours, Instant::now()).unwrap(), Admission::Served(PageClient::Ours));
        drop(client);
        assert!(check.admission(peer, ours, Instant::now()).is_err());
    }
}
