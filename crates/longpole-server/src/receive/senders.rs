//! Who may send: processes of the user who records, of root, and of the run.
//!
//! The ports are on loopback, which every user of the machine can reach, and what comes in is in the answer. Whose a connection is, the
//! kernel tells by its socket:
//!
//! | the client's socket is of | |
//! |---|---|
//! | the user who records, or root | taken: who is either could as well look into our memory |
//! | another user, its process is the command or descends from it, or has the run id in its environment | taken: the command became that user (`sudo -u`, `setpriv`) |
//! | another user, its process not to be seen (only root may), but the command has a process of that user | taken |
//! | our user, where that is the number which a user namespace shows for everybody it does not know | taken only if its process is of the command or has our run id |
//! | any other user | refused with 403 or `PERMISSION_DENIED`, and counted |
//! | nobody any more: it was closed before we came to look | only spans whose resource has the run's own `longpole.run.id` |
//! | not to be told on this machine (no socket tables: gVisor) | taken, and the recording says so |
//! | not to be told now (no descriptors left) | told to try again, and counted |

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use longpole_store::Secret;
use longpole_store::users::{Owner, unmapped_uid};

use crate::peer::{self, AskOwner, CommandProcess, HolderFinder, PeerFinder, SocketOwner};

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
    pub(super) owner: Option<SocketOwner>,
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
    own: Owner,
    /// The number of everybody whom this user namespace does not know.
    unmapped_uid: Option<u32>,
    /// Whose processes are of the run.
    command: CommandProcess,
    /// For where the kernel cannot be asked in a quick way.
    finder: Arc<Mutex<PeerFinder>>,
    /// Of connections that are judged: what other users bring about in it does not touch how the run's own are looked for.
    holders: HolderFinder,
}

impl Judge {
    pub(super) fn new(senders: Senders, ask: Option<AskOwner>, command: CommandProcess) -> Self {
        let holders = HolderFinder::new(command.clone());
        Judge { senders, ask, own: Owner::current(), unmapped_uid: unmapped_uid(), command, finder: Arc::default(), holders }
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
            _ if self.senders == Senders::Anybody => Known::Sender(Sender { owner: None, is_gone: false }),
            Some(Err(error)) => Known::Slow { never: peer::says_never(&error) },
            None => Known::Slow { never: true },
        }
    }

    fn known(&self, owner: Option<SocketOwner>) -> Known {
        match owner {
            _ if self.senders == Senders::Anybody => Known::Sender(Sender { owner, is_gone: false }),
            None => Known::Sender(Sender { owner, is_gone: true }),
            Some(SocketOwner { uid, .. }) if self.is_ours(uid) => Known::Sender(Sender { owner, is_gone: false }),
            Some(owner) => Known::Foreign(owner),
        }
    }

    /// Whether this is our user, or root. A number that stands for many users is neither, also where it is ours.
    fn is_ours(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own.uid && !self.stands_for_many(uid)
    }

    /// Whether this number is that of everybody whom our user namespace does not know.
    pub(super) fn stands_for_many(&self, uid: u32) -> bool {
        Some(uid) == self.unmapped_uid
    }

    /// What the tables of `/proc` tell, which takes milliseconds; an error where there are none.
    pub(super) fn by_table(&self, peer: SocketAddr, ours: SocketAddr, since: Instant) -> io::Result<Known> {
        let owner = self.finder.lock().unwrap_or_else(PoisonError::into_inner).owner(peer, ours, since)?;
        Ok(self.known(owner))
    }

    /// Whether a connection of another user is of the run. Reads through `/proc`.
    pub(super) fn is_of_the_run(&self, owner: SocketOwner) -> bool {
        let Senders::Run { id, .. } = &self.senders else { return true };
        match self.holders.find(owner) {
            Some(peer) => self.command.has(peer.pid) || peer::inherits_variable(peer.pid, RUN_ID_VARIABLE, id),
            // A number that stands for many users says nothing. Processes of the run that have it can be seen: they are of our user, or
            // were started by a root whom this namespace knows.
            None => !self.stands_for_many(owner.uid) && self.command.has_user(owner.uid),
        }
    }
}

/// Whether a resource is of the run with this id, by its own word.
pub(super) fn says_run(resource: &longpole_model::Resource, id: &str) -> bool {
    resource.attributes.get_str(RUN_ID) == Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_stands_for_many_users_is_not_our_user() {
        let run = Senders::Run { id: "0123456789abcdef0123456789abcdef".to_owned(), name: "0".repeat(32) };
        let mut judge = Judge {
            own: Owner { uid: 65_534, gid: 65_534 },
            unmapped_uid: Some(65_534),
            ..Judge::new(run, None, CommandProcess::default())
        };
        let owner = |uid| Some(SocketOwner { uid, inode: u64::MAX });
        let ours = |uid| Known::Sender(Sender { owner: owner(uid), is_gone: false });
        assert_eq!(judge.known(owner(65_534)), Known::Foreign(SocketOwner { uid: 65_534, inode: u64::MAX }));
        assert!(!judge.is_of_the_run(SocketOwner { uid: 65_534, inode: u64::MAX }), "nobody has this socket");
        assert_eq!(judge.known(owner(0)), ours(0));
        // In the initial namespace `nobody` is a user as others are, and so is everybody whom a namespace knows.
        judge.unmapped_uid = None;
        assert_eq!(judge.known(owner(65_534)), ours(65_534));
        (judge.own.uid, judge.unmapped_uid) = (1000, Some(65_534));
        assert_eq!(judge.known(owner(1000)), ours(1000));
    }
}
