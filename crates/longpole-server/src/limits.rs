//! Every maximum of the doors, with its reason.

use std::time::Duration;

/// Bytes of a request body as sent. OTLP recommends 64 MiB after decompression (specification, "OTLP/HTTP Request"), and a
/// body without compression is its own decompressed form, so one number serves both.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Bytes of a request body after decompression: OTLP's recommendation. Inflating stops at the first byte beyond it.
pub const INFLATED_BYTES_MAX: usize = 64 << 20;

/// Bytes of all bodies that are being read or wait to be kept. A request beyond it is told to come again. Without it, 500
/// processes that export at once could make the recorder hold 32 GiB; with it, beside one inflated body, it is flat.
pub const BODIES_IN_MEMORY_BYTES_MAX: usize = 256 << 20;

/// Bytes of a refused body that are read and thrown away before the answer. Most clients write their whole body before they
/// read, and would see a reset connection instead of the 413 that says what to do. On loopback this much takes 0.1 s.
pub const REFUSED_BODY_BYTES_MAX: u64 = 256 << 20;

/// Connections at the same time. Half of the usual limit of 1,024 open files; beyond it the longest idle one is closed. The
/// unit tests have a few only, so that they get beyond it.
pub const CONNECTIONS_MAX: usize = if cfg!(test) { 16 } else { 512 };

/// Requests at the same time on one HTTP/2 connection. Exporters have one or a few in flight.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 64;

/// Bytes of the headers of a request. Exporters send a few hundred; a token of single sign-on may have 10 KiB.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long the drain waits for the next byte of a request that a process which outlives the command has begun.
pub const DRAIN_STALL_MAX: Duration = Duration::from_millis(500);

/// How long a connection may be open before its first request, when others wait for room.
pub const UNUSED_MAX: Duration = Duration::from_secs(5);

/// How long connections may take to say goodbye after the last request was answered.
pub const GOODBYE_MAX: Duration = Duration::from_millis(100);

/// Different reasons kept for one kind of loss. A hostile client could make up reasons without end.
pub const LOSS_DETAILS_MAX: usize = 16;

/// Bytes that wait to be handed on to the user's own endpoint, for each signal. At the 1.4 MB/s of a program that emits
/// 5,000 spans a second compressed, 22 s of an endpoint that does not answer.
pub const FORWARD_QUEUE_BYTES_MAX: usize = 32 << 20;

/// Requests in flight to the user's endpoint, for each signal: enough to fill a line with 100 ms of delay.
pub const FORWARD_IN_FLIGHT_MAX: usize = 4;

/// First pause before a request is handed on again; it doubles.
pub const FORWARD_BACKOFF_MIN: Duration = Duration::from_millis(250);

/// Longest pause before a request is handed on again, unless the endpoint asks for more.
pub const FORWARD_BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How long one request is tried. The OpenTelemetry SDKs give up after about a minute.
pub const FORWARD_TRY_MAX: Duration = Duration::from_secs(60);

/// Bytes of an answer of the user's endpoint that are read; the rest cannot matter to us.
pub const FORWARD_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Entries of `/proc/*/fd` looked at to find the process behind a connection. One costs 1.5 µs, so 30 ms at the most.
pub const PEER_LINKS_MAX: usize = 20_000;

/// Bytes of `/proc/net/tcp` read to find the socket behind a connection: 50,000 sockets.
pub const PEER_TABLE_BYTES_MAX: u64 = 8 << 20;

/// Reports of sealed recordings that the page keeps in memory: enough to go back and forth between a few.
pub const REPORTS_MAX: usize = 4;

/// How long the page may take to finish answers when it is closed.
pub const PAGE_CLOSE_MAX: Duration = Duration::from_millis(500);
