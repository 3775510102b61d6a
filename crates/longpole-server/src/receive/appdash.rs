//! AppDash over TCP: packets in one direction, no answer.
//!
//! The client writes inside the traced program, under a lock, and waits for the kernel to take it. So this reads as fast as it
//! can whatever happens behind it, and counts spans as lost that there is no memory for. Spans are decoded here, because only the
//! decoder knows where a packet ends, and go to the ingester as requests of ours.

use std::io;
use std::sync::Arc;

use longpole_model::{LossKind, SpanBatch};
use longpole_wire::appdash::FrameReader;
use longpole_wire::otlp;
use longpole_wire::redact::Redactor;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::connection::Connection;
use super::job::{Content, Job};
use super::redaction::redact_spans;
use super::request_context::RequestContext;
use crate::limits::{APPDASH_READ_BYTES, CONVERTED_SPANS_MAX, HEAD_TIME_MAX};
use crate::otlp_request::Compression;

/// Bytes of an unfinished packet that are not charged to the memory of bodies.
const UNCHARGED_BYTES_MAX: usize = 1 << 20;

/// Reads one connection to its end, or until the receiver hangs up. Spans that are not complete then are kept as unfinished.
///
/// Between packets it may be idle without a limit: the client writes when something happens. A packet that has begun must end within
/// [`HEAD_TIME_MAX`]. Before its first packet the connection counts as inside one, because clients connect to write.
pub(super) async fn serve(stream: TcpStream, context: &RequestContext, connection: &Arc<Connection>) {
    // The ingester finds the process while it surely lives: its first span may be its last act.
    context.intake.hand(Job::new(Content::Hello, connection));
    let mut reader = FrameReader::new(&context.limits);
    let mut batch = SpanBatch::default();
    let mut redactor = context.redactor();
    let mut buffer = vec![0; APPDASH_READ_BYTES];
    let (mut packets, mut inside_since) = (0, None);
    // Shares of the memory of bodies, for a large packet.
    let mut held: Vec<(usize, OwnedSemaphorePermit)> = Vec::new();
    loop {
        let read = stream.try_read(&mut buffer);
        connection.note_read(read.is_err());
        match read {
            Ok(0) => break,
            Ok(length) => {
                connection.note_progress();
                let pushed = reader.push(&buffer[..length], &mut batch);
                give(&mut batch, redactor.as_mut(), context, connection);
                if reader.packets() != packets {
                    (packets, inside_since) = (reader.packets(), None);
                }
                // A packet of less is charged to nobody: connections are few.
                let charged = reader.held_bytes().saturating_sub(UNCHARGED_BYTES_MAX);
                if charged > held.iter().map(|(bytes, _)| bytes).sum() {
                    let more = charged - held.iter().map(|(bytes, _)| bytes).sum::<usize>() + UNCHARGED_BYTES_MAX;
                    match context.memory_of(more) {
                        Some(memory) => held.push((more, memory)),
                        None => {
                            context.refused("appdash packets for which longpole had no memory");
                            break;
                        }
                    }
                } else if charged == 0 {
                    held.clear();
                }
                if let Err(error) = pushed {
                    // The border to the next packet is lost. The client connects again with its next packet.
                    context.refused(&format!("appdash packet: {error}"));
                    break;
                }
                // One that writes without a pause must not keep others from being read.
                yield_now().await;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let is_inside = reader.is_inside_packet() || packets == 0;
                inside_since = is_inside.then(|| inside_since.unwrap_or_else(Instant::now));
                connection.note_inside(inside_since);
                let too_late = async {
                    match inside_since {
                        Some(since) if reader.is_inside_packet() => sleep_until(since + HEAD_TIME_MAX).await,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    // An error is read next.
                    _ = stream.readable() => {}
                    () = connection.hang_up.notified() => break,
                    () = connection.cut.notified() => break,
                    () = too_late => {
                        connection.note_too_slow();
                        break;
                    }
                }
            }
            // A reset ends the stream as well.
            Err(_) => break,
        }
    }
    reader.finish(&mut batch);
    give(&mut batch, redactor.as_mut(), context, connection);
}

/// Hands the decoded spans to the ingester, without waiting for it.
fn give(batch: &mut SpanBatch, redactor: Option<&mut Redactor>, context: &RequestContext, connection: &Arc<Connection>) {
    redact_spans(batch, redactor, &context.book);
    for loss in batch.losses.drain(..) {
        context.book.add(loss.kind, loss.count, loss.detail);
    }
    for spans in batch.spans.chunks(CONVERTED_SPANS_MAX) {
        let (body, count) = (otlp::encode_trace(spans), spans.len() as u64);
        let Some(memory) = context.memory_of(body.len()) else {
            context.book.add(LossKind::RequestsRefused, count, "appdash spans that arrived faster than longpole could store them");
            continue;
        };
        let job = Job::new(Content::Converted { spans: count }, connection).with(Compression::Identity, body.into(), memory);
        if context.intake.hand(job).is_none() {
            context.book.add(LossKind::RequestsRefused, count, "appdash spans that arrived after the recording had ended");
        }
    }
    batch.spans.clear();
}
