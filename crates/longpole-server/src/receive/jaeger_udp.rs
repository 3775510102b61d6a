//! Jaeger's agent protocol: a batch in each UDP packet, in Thrift's compact or binary form. Nobody gets an answer.
//!
//! What the kernel has no room for is lost before longpole sees it. What longpole has no memory for, cannot decode or cannot store counts as refused.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::watch;

use super::connection::Connection;
use super::job::{Content, JaegerFormat, Job};
use super::request_context::RequestContext;
use crate::otlp_request::Compression;

/// A packet of UDP is not larger.
const PACKET_BYTES_MAX: usize = 1 << 16;

/// Reads packets until the receiver ends, and then what the kernel still has.
pub(super) async fn serve(socket: UdpSocket, context: Arc<RequestContext>, mut ended: watch::Receiver<bool>) {
    let Ok(ours) = socket.local_addr() else { return };
    let connection = Arc::new(Connection::of_nobody([SocketAddr::new(ours.ip(), 0), ours]));
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    loop {
        tokio::select! {
            biased;
            received = socket.recv(&mut buffer) => match received {
                Ok(length) => take(&buffer[..length], &context, &connection),
                // The answer to a packet that this socket never sent.
                Err(_) => tokio::task::yield_now().await,
            },
            _ = ended.changed() => break,
        }
    }
    while let Ok(length) = socket.try_recv(&mut buffer) {
        take(&buffer[..length], &context, &connection);
    }
}

fn take(packet: &[u8], context: &Arc<RequestContext>, connection: &Arc<Connection>) {
    let Some(memory) = context.memory_of(packet.len()) else {
        context.refused("packets of Jaeger's agent protocol for which longpole had no memory");
        return;
    };
    let job = Job::new(Content::Jaeger(JaegerFormat::Agent), connection);
    let job = job.with(Compression::Identity, Bytes::copy_from_slice(packet), memory);
    RequestContext::take_unanswered(context, job);
}
