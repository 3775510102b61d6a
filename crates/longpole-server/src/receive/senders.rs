//! Who may send: processes of the user who records, of root, and of the run.
//!
//! The ports are on loopback, which every user of the machine can reach, and what comes in is in the answer. Whose a connection is, the
//! kernel tells by its socket:
//!
//! | the client's socket is of | |
//! |---|---|
//! | the user who records, or root | taken: who is either could as well look into our memory |
//! | another user, its process descends from `longpole run` or has its run id in its environment | taken: the command became that user (`sudo -u`, `setpriv`) |
//! | another user, its process not to be seen (only root may), but the command has a process of that user | taken |
//! | any other user | refused with 403 or `PERMISSION_DENIED`, and counted |
//! | nobody any more: it was closed before we came to look | only spans whose resource has the run's own `longpole.run.id` |
//! | not to be told on this machine (no socket tables: gVisor) | taken, and the recording says so |
//! | not to be told now (no descriptors left) | told to try again, and counted |

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::secret::Secret;
use crate::peer::{self, AskOwner, PeerFinder, SocketOwner};

/// From whom spans are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Senders {
    /// From every process of this machine.
    #[default]
    Anybody,
    /// From processes of this user, of root, and of the run with this id.
    Run {
        /// `longpole.run.id` of the run's resources, `LONGPOLE_RUN_ID` of its environment. A secret: who knows it is of the run.
        id: String,
        /// Stands for the id in what is kept and handed on.
        name: String,
    },
}

/// Attribute of the resources of a run's spans.
const RUN_ID: &str = "longpole.run.id";

/// Its variable.
const RUN_ID_VARIABLE: &str = "LONGPOLE_RUN_ID";

/// Whose a connection is, as far as spans may be taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    /// The client's socket, where it was found.
    pub(super) inode: Option<u64>,
    /// The client closed it before it was found: only what its spans say themselves can speak for it.
    pub(super) is_gone: bool,
}

/// What is known of a connection when it is accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is taken.
    Sender(Sender),
    /// It is of another user, which has to be looked into.
    Foreign(SocketOwner),
    /// The kernel could not be asked in a quick way: never, or not now.
    Slow { never: bool },
}

/// Judges connections.
#[derive(Debug)]
pub(super) struct Judge {
    senders: Senders,
    ask: Option<AskOwner>,
    own_uid: Option<u32>,
    /// For where the kernel cannot be asked in a quick way.
    finder: Arc<Mutex<PeerFinder>>,
}

impl Judge {
    pub(super) fn new(senders: Senders, ask: Option<AskOwner>) -> Self {
        Judge { senders, ask, own_uid: peer::own_uid(), finder: Arc::default() }
    }

    /// The run whose id must stand in the spans of who is gone.
    pub(super) fn run_id(&self) -> Option<&str> {
        match &self.senders {
            Senders::Anybody => None,
            Senders::Run { id, .. } => Some(id),
        }
    }

    /// The same, to be found and hidden.
    pub(super) fn secret(&self) -> Option<Secret> {
        match &self.senders {
            Senders::Anybody => None,
            Senders::Run { id, name } => Secret::new(id, name),
        }
    }

    /// What can be told without delay.
    pub(super) fn at_once(&self, peer: SocketAddr, ours: SocketAddr) -> Known {
        match self.ask.map(|ask| ask(peer, ours)) {
            Some(Ok(owner)) => self.known(owner),
            _ if self.senders == Senders::Anybody => Known::Sender(Sender { inode: None, is_gone: false }),
            Some(Err(error)) => Known::Slow { never: peer::says_never(&error) },
            None => Known::Slow { never: true },
        }
    }

    fn known(&self, owner: Option<SocketOwner>) -> Known {
        let inode = owner.map(|owner| owner.inode);
        match owner {
            _ if self.senders == Senders::Anybody => Known::Sender(Sender { inode, is_gone: false }),
            None => Known::Sender(Sender { inode, is_gone: true }),
            Some(SocketOwner { uid, .. }) if uid == 0 || Some(uid) == self.own_uid => Known::Sender(Sender { inode, is_gone: false }),
            Some(owner) => Known::Foreign(owner),
        }
    }

    /// What the tables of `/proc` tell, which takes milliseconds; an error where there are none.
    pub(super) fn by_table(&self, peer: SocketAddr, ours: SocketAddr, since: Instant) -> io::Result<Known> {
        let owner = self.finder.lock().unwrap_or_else(PoisonError::into_inner).owner(peer, ours, since)?;
        Ok(self.known(owner))
    }

    /// Whether a connection of another user is of the run. Reads through `/proc`.
    pub(super) fn is_of_the_run(&self, owner: SocketOwner) -> bool {
        let Senders::Run { id, .. } = &self.senders else { return true };
        let holder = self.finder.lock().unwrap_or_else(PoisonError::into_inner).holder(owner.inode);
        match holder {
            Some(peer) => peer::descends_from_us(peer.pid) || peer::has_variable(peer.pid, RUN_ID_VARIABLE, id),
            None => peer::is_user_of_a_descendant(owner.uid),
        }
    }
}

/// Whether a resource is of the run with this id, by its own word.
pub(super) fn says_run(resource: &longpole_model::Resource, id: &str) -> bool {
    resource.attributes.get_str(RUN_ID) == Some(id)
}
