//! The processes that may send spans: those of the user who records, of root, and of the run.
//!
//! The ports are on loopback, which every user of the machine can reach, and all spans count in the answer. The kernel names the owner of
//! a connection's socket:
//!
//! | owner of the client's socket | |
//! |---|---|
//! | the user who records, or root | accepted: either could read our memory as well |
//! | another user, and its process is the command or descends from it, or has the run id in its environment | accepted: the command became that user (`sudo -u`, `setpriv`) |
//! | another user, and its process is hidden from us (only root sees it), but the command has a process of that user | accepted |
//! | our user, if its number is the one that a user namespace shows for all users it does not map | accepted only if its process belongs to the command or has our run id |
//! | any other user | refused with 403 or `PERMISSION_DENIED`, and counted |
//! | none any more: the client closed the socket before the receiver could read its owner | accepted only for spans whose resource has the run's own `longpole.run.id` |
//! | unknown on this machine (no socket tables: gVisor) | accepted, and the recording says so |
//! | unknown now (no descriptors left) | answered with 503 or `UNAVAILABLE`, and counted |

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use longpole_store::Secret;
use longpole_store::users::{Owner, unmapped_uid};

use crate::peer_process::{self, AskOwner, CommandProcess, HolderFinder, PeerFinder, SocketOwner};

/// The processes that may send spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AllowedSenders {
    /// Every process of this machine.
    #[default]
    Anybody,
    /// Processes of this user, of root, and of the run with this id.
    Run {
        /// `longpole.run.id` of the run's resources, `LONGPOLE_RUN_ID` of its environment. A secret: a process that has it belongs to the
        /// run.
        id: String,
        /// Stands for the id in the log and in forwarded requests.
        name: String,
    },
}

/// Attribute of the resources of a run's spans.
const RUN_ID: &str = "longpole.run.id";

/// Its variable.
const RUN_ID_VARIABLE: &str = "LONGPOLE_RUN_ID";

/// The owner of a connection that may send spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    /// The client's socket, if the kernel named its owner.
    pub(super) owner: Option<SocketOwner>,
    /// The client closed it before the receiver read its owner: only its spans themselves can prove that they belong to the run.
    pub(super) is_gone: bool,
}

/// The first verdict on a connection, when the receiver accepts it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SenderVerdict {
    /// It may send.
    Sender(Sender),
    /// It belongs to another user, and the receiver has to check whether its process belongs to the run.
    Foreign(SocketOwner),
    /// The kernel does not answer the quick query: never, or not now.
    Slow { never: bool },
}

/// Checks whether a connection may send spans.
#[derive(Debug)]
pub(super) struct SenderCheck {
    senders: AllowedSenders,
    ask: Option<AskOwner>,
    own: Owner,
    /// The number that stands for all users that this user namespace does not map.
    unmapped_uid: Option<u32>,
    /// The command, whose descendants belong to the run.
    command: CommandProcess,
    /// Reads the tables if the kernel does not answer the quick query.
    finder: Arc<Mutex<PeerFinder>>,
    /// Finds the processes of connections that need a check. Apart from the finder of the run's own, so that other users cannot slow
    /// that one down.
    holders: HolderFinder,
}

impl SenderCheck {
    pub(super) fn new(senders: AllowedSenders, ask: Option<AskOwner>, command: CommandProcess) -> Self {
        let holders = HolderFinder::new(command.clone());
        SenderCheck { senders, ask, own: Owner::current(), unmapped_uid: unmapped_uid(), command, finder: Arc::default(), holders }
    }

    /// The run whose id the spans of closed connections must have.
    pub(super) fn run_id(&self) -> Option<&str> {
        match &self.senders {
            AllowedSenders::Anybody => None,
            AllowedSenders::Run { id, .. } => Some(id),
        }
    }

    /// The same, to find and hide it.
    pub(super) fn secret(&self) -> Option<Secret> {
        match &self.senders {
            AllowedSenders::Anybody => None,
            AllowedSenders::Run { id, name } => Secret::new(id, name),
        }
    }

    /// The verdict that takes no time.
    pub(super) fn at_once(&self, peer: SocketAddr, ours: SocketAddr) -> SenderVerdict {
        match self.ask.map(|ask| ask(peer, ours)) {
            Some(Ok(owner)) => self.known(owner),
            _ if self.senders == AllowedSenders::Anybody => SenderVerdict::Sender(Sender { owner: None, is_gone: false }),
            Some(Err(error)) => SenderVerdict::Slow { never: peer_process::says_never(&error) },
            None => SenderVerdict::Slow { never: true },
        }
    }

    fn known(&self, owner: Option<SocketOwner>) -> SenderVerdict {
        match owner {
            _ if self.senders == AllowedSenders::Anybody => SenderVerdict::Sender(Sender { owner, is_gone: false }),
            None => SenderVerdict::Sender(Sender { owner, is_gone: true }),
            Some(SocketOwner { uid, .. }) if self.is_ours(uid) => SenderVerdict::Sender(Sender { owner, is_gone: false }),
            Some(owner) => SenderVerdict::Foreign(owner),
        }
    }

    /// Whether this is our user, or root. A number that stands for many users is neither, also where it is ours.
    fn is_ours(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own.uid && !self.stands_for_many(uid)
    }

    /// Whether this number stands for all users that our user namespace does not map.
    pub(super) fn stands_for_many(&self, uid: u32) -> bool {
        Some(uid) == self.unmapped_uid
    }

    /// The verdict by the tables of `/proc`, which takes milliseconds; an error if there are none.
    pub(super) fn by_table(&self, peer: SocketAddr, ours: SocketAddr, since: Instant) -> io::Result<SenderVerdict> {
        let owner = self.finder.lock().unwrap_or_else(PoisonError::into_inner).owner(peer, ours, since)?;
        Ok(self.known(owner))
    }

    /// Whether a connection of another user belongs to the run. Searches through `/proc`.
    pub(super) fn is_of_the_run(&self, owner: SocketOwner) -> bool {
        let AllowedSenders::Run { id, .. } = &self.senders else { return true };
        match self.holders.find(owner) {
            Some(peer) => self.command.has(peer.pid) || peer_process::inherits_variable(peer.pid, RUN_ID_VARIABLE, id),
            // A number that stands for many users proves nothing. Processes of the run that have it are visible: they belong to our
            // user, or a root that this namespace maps started them.
            None => !self.stands_for_many(owner.uid) && self.command.has_user(owner.uid),
        }
    }
}

/// Whether a resource names the run with this id.
pub(super) fn says_run(resource: &longpole_model::Resource, id: &str) -> bool {
    resource.attributes.get_str(RUN_ID) == Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_stands_for_many_users_is_not_our_user() {
        let run = AllowedSenders::Run { id: "0123456789abcdef0123456789abcdef".to_owned(), name: "0".repeat(32) };
        let mut check = SenderCheck {
            own: Owner { uid: 65_534, gid: 65_534 },
            unmapped_uid: Some(65_534),
            ..SenderCheck::new(run, None, CommandProcess::default())
        };
        let owner = |uid| Some(SocketOwner { uid, inode: u64::MAX });
        let ours = |uid| SenderVerdict::Sender(Sender { owner: owner(uid), is_gone: false });
        assert_eq!(check.known(owner(65_534)), SenderVerdict::Foreign(SocketOwner { uid: 65_534, inode: u64::MAX }));
        assert!(!check.is_of_the_run(SocketOwner { uid: 65_534, inode: u64::MAX }), "nobody has this socket");
        assert_eq!(check.known(owner(0)), ours(0));
        // In the initial namespace `nobody` is a user like others, and so is every user that a namespace maps.
        check.unmapped_uid = None;
        assert_eq!(check.known(owner(65_534)), ours(65_534));
        (check.own.uid, check.unmapped_uid) = (1000, Some(65_534));
        assert_eq!(check.known(owner(1000)), ours(1000));
    }
}
