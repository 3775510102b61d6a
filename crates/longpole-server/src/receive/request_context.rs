//! The context of every request: the way to the ingester, memory for bodies, places, and the counters of losses.

use std::sync::Arc;

use bytes::Bytes;
use longpole_model::LossKind;
use longpole_recording::loss_counters::LossBook;
use longpole_wire::Limits;
use longpole_wire::redact::Redactor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::CountDropped;
use super::allowed_senders::SenderCheck;
use super::connection::{Connection, Keeping};
use super::job::{Content, Intake, Job, UNPROVEN, Verdict};
use super::memory::MemoryAccount;
use super::tokens::AccessTokens;
use super::web_pages::AllowedOrigins;
use crate::otlp_request::Compression;

/// What every request needs.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(super) intake: Intake,
    pub(super) memory: Arc<MemoryAccount>,
    pub(super) sender_check: SenderCheck,
    /// Places for event streams.
    pub(super) event_streams: Semaphore,
    pub(super) limits: Limits,
    pub(super) keep_credentials: bool,
    pub(super) book: Arc<LossBook>,
    /// Reads from the kernel how many connections it dropped.
    pub(super) count_dropped: Option<CountDropped>,
    /// Whether the process at the other end of a connection is looked for.
    pub(super) finds_processes: bool,
    /// Whether profiles are kept, so that Pyroscope's clients may send.
    pub(super) takes_profiles: bool,
    /// Whether requests may name any host.
    pub(super) any_host: bool,
    /// Web pages that may send spans.
    pub(super) origins: AllowedOrigins,
    /// One of them is needed to send or read.
    pub(super) tokens: Option<AccessTokens>,
}

impl RequestContext {
    /// Takes credentials out of spans, unless they are to be kept.
    pub(super) fn redactor(&self) -> Option<Redactor> {
        (!self.keep_credentials).then(Redactor::default)
    }

    /// Hands a request to the ingester, and counts it if it is refused. Every protocol that answers comes through here.
    pub(super) async fn take(&self, content: Content, compression: Compression, body: Bytes, connection: &Arc<Connection>) -> Verdict {
        let _keeping = Keeping::of(connection);
        let verdict = self.intake.take(Job { content, compression, body, connection: Arc::clone(connection), _memory: None }).await;
        match &verdict {
            Verdict::Kept { .. } => {}
            Verdict::Undecodable(reason) | Verdict::TooLarge(reason) | Verdict::Unproven(reason) => self.refused_of(connection, reason),
            Verdict::NotKept(reason) => self.refused(&format!("{reason}; the client may try again")),
            Verdict::NeverKept(reason) => self.refused(reason),
        }
        verdict
    }

    /// Hands over a request whose client waits for no answer, and counts it if it is refused.
    pub(super) fn take_unanswered(context: &Arc<Self>, job: Job) {
        let Some(outcome) = context.intake.hand(job) else {
            context.refused("packets that came when the receiver was ending");
            return;
        };
        let context = Arc::clone(context);
        tokio::spawn(async move {
            // Without an outcome the ingester has ended, and has counted why.
            let Ok(outcome) = outcome.await else { return };
            outcome.settled().await.refusal().into_iter().for_each(|reason| context.refused(reason));
        });
    }

    /// Room for this number of bytes in the memory that all bodies share, if there is some.
    pub(super) fn memory_of(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if self.memory.is_short() { None } else { self.memory.bodies.room_now(bytes) }
    }

    /// Counts a request of this connection as refused. If the client has closed its connection, its user is unknown, so the recording
    /// keeps nothing that it sent, not even in the text of an error: it counts as unproven, whatever is wrong with it.
    pub(super) fn refused_of(&self, connection: &Connection, reason: &str) {
        self.refused(if connection.sender_is_gone() { UNPROVEN } else { reason });
    }

    pub(super) fn refused(&self, reason: &str) {
        self.book.add(LossKind::RequestsRefused, 1, reason);
    }
}
