//! Every maximum of the doors, with its reason.

use std::time::Duration;

/// Bytes of a request body as sent. OTLP recommends 64 MiB after decompression (specification, "OTLP/HTTP Request"), and a
/// body without compression is its own decompressed form, so one number serves both.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Bytes of a request body after decompression: OTLP's recommendation. Inflating stops at the first byte beyond it.
pub const INFLATED_BYTES_MAX: usize = 64 << 20;

/// Memory that decoding a profile may take, for each of its bytes, and what a small one may take anyway. The smallest stacks with names of their own
/// take some 20 bytes of memory a byte.
pub(crate) const PROFILE_MEMORY_FACTOR: u64 = 20;
pub(crate) const PROFILE_MEMORY_MIN: u64 = 16 << 20;

/// Memory that all profiles of a request may take, however many bytes they have.
pub(crate) const PROFILE_MEMORY_MAX: u64 = 512 << 20;

/// Bytes of all bodies that are being read or wait to be written. A request beyond it gets the answer to try again. Without it, 500
/// processes that export at once could make the recorder hold 32 GiB; with it, beside one inflated body, memory stays flat. The unit
/// tests have a little more than one body takes, so that they exceed it.
pub const BODIES_IN_MEMORY_BYTES_MAX: usize = if cfg!(test) { 80 << 20 } else { 256 << 20 };

/// Bytes of a refused body that are read and thrown away before the answer. Most clients write their whole body before they
/// read, and would see a reset connection instead of the 413 that says what to do. On loopback this much takes 0.1 s.
pub const REFUSED_BODY_BYTES_MAX: u64 = 256 << 20;

/// Connections at the same time. Half of the usual limit of 1,024 open files; beyond it the longest idle one is closed. The
/// unit tests have a few only, so that they get beyond it.
pub const CONNECTIONS_MAX: usize = if cfg!(test) { 16 } else { 512 };

/// Connections of a port that the kernel completes before the receiver accepts them. Beyond it the kernel drops those that begin, and their
/// clients try again after 1 s, 3 s, 7 s: another user who begins connections without end keeps the run's processes out. The kernel
/// takes no more than `net.core.somaxconn`, which is 4,096 since Linux 5.4. The standard library takes 128.
pub const BACKLOG: u32 = 4096;

/// Requests at the same time on one HTTP/2 connection. Exporters have one or a few in flight.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 64;

/// Bytes of the headers of a request. Exporters send a few hundred; a token of single sign-on may have 10 KiB.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// The same of a request by HTTP/2: a connection has many at once. Browsers, whose cookies are long, use HTTP/1 without TLS.
pub const STREAM_HEAD_BYTES_MAX: u32 = 16 << 10;

/// Fields of a head, as many as hyper reads in HTTP/1. Exporters send ten, browsers twenty.
pub const HEAD_FIELDS_MAX: usize = 100;

/// Bytes of an address with its query. Web servers take 8 KiB.
pub const URI_BYTES_MAX: usize = 16 << 10;

/// Bytes of a head that are not charged to the memory of bodies: those of an exporter.
pub const HEAD_UNCHARGED_BYTES_MAX: usize = 4 << 10;

/// Frames of HTTP/2 that carry neither heads nor bodies: PING, SETTINGS, WINDOW_UPDATE and the like. A connection may send this number, and
/// more for each of its requests, for what it was sent, and for each second. A flood of them keeps the receiver busy and says nothing.
pub const CONTROL_FRAMES_FREE: u64 = 2_000;

/// As many more for each request.
pub const CONTROL_FRAMES_PER_REQUEST: u64 = 16;

/// As many more for each second of the connection.
pub const CONTROL_FRAMES_PER_SECOND: u64 = 100;

/// One more for as many bytes that it was sent: clients say what they have read.
pub const SENT_BYTES_PER_CONTROL_FRAME: u64 = 256;

/// How long the head of a request, a frame of HTTP/2 with its block of headers, or an AppDash packet may take from its first byte to its
/// last. On loopback it takes microseconds; a program that is stopped in the middle of one loses that one. The unit tests are less
/// patient, here and below.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 10 });

/// Bytes of a body that count as progress.
pub const BODY_PROGRESS_BYTES: usize = 64 << 10;

/// How long a body may take for its next [`BODY_PROGRESS_BYTES`] or its end. A working program sends faster than 6.5 KB/s.
pub const BODY_STALL_MAX: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 10 });

/// How long a request that makes no progress may keep its place or its memory while others wait for either. Ten times what a busy
/// machine lets a process wait for a CPU.
pub const STALL_IN_NEED_MAX: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 2_000 });

/// How long a body waits for memory before its client gets the answer to try again: longer than the bodies that hold the memory may
/// stall, shorter than the 10 s after which exporters give up.
pub const BODY_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 1_500 } else { 4_000 });

/// Refused connections of all other users that get an answer at the same time.
pub const REFUSALS_ANSWERED_MAX: usize = 16;

/// The same for one user, so that it does not take all of them.
pub const REFUSALS_ANSWERED_PER_USER_MAX: usize = 4;

/// Connections of one other user that the receiver checks at the same time: whether they belong to the run. A check takes milliseconds,
/// and the search through `/proc` takes one after the other anyway.
pub const OTHER_USER_CHECKS_MAX: usize = 2;

/// Connections of one other user that wait for that check. A parallel build as another user may have dozens of compilers. Each waiting
/// connection holds a descriptor, a hostile user's too, so the limit is lower if few descriptors are available.
pub const OTHER_USER_WAITING_MAX: usize = 32;

/// Other users, without a process that is known to belong to the run, whose connections are being checked or wait for it at the same
/// time. Together they hold fewer descriptors than the run has.
pub const OTHER_USERS_MAX: usize = 8;

/// Users that the receiver remembers as users of the run. A command becomes one or two others.
pub const RUN_USERS_MAX: usize = 16;

/// Other users that the recording names when it counts their refused connections, one reason each.
pub const OTHER_USERS_NAMED_MAX: usize = 4;

/// Pause of a place for checks after a refused connection: at most 20 searches through `/proc` per second for each user, however fast
/// it connects.
pub const OTHER_USER_PAUSE: Duration = Duration::from_millis(100);

/// Connections at the same time whose client closed them before the receiver could read their owner: any user can make those. All their
/// bytes are in our buffers, so each takes only as long as it takes to decode them.
pub const CLOSED_MAX: usize = if cfg!(test) { 2 } else { 8 };

/// Such connections that wait for a place: as many as the backlog of a port holds, which short processes can fill while a busy machine
/// makes the receiver wait. To decode them all at the end of a run takes 2 s at worst.
pub const CLOSED_WAITING_MAX: usize = if cfg!(test) { 8 } else { 128 };

/// Bytes of a request of such a client, as sent and after decompression. A last batch has 512 spans by default, of a kilobyte each.
pub const CLOSED_BODY_BYTES_MAX: usize = 4 << 20;

/// How long a refused connection may take to read the answer.
pub const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

/// How long after the end of the command the receiver accepts connections that it has to check: older ones are accepted by then. A
/// process that connects later did not belong to the command, and a flood of connections must not hold up the end of `run`.
pub const DRAIN_UNKNOWN_MAX: Duration = Duration::from_millis(250);

/// How long the drain waits for the next byte of a request that a process which outlives the command has begun.
pub const DRAIN_STALL_MAX: Duration = Duration::from_millis(500);

/// How long a connection may be open before its first request, when others wait for room.
pub const UNUSED_MAX: Duration = Duration::from_secs(5);

/// Connections of AppDash at the same time. A deployment has one for each of its processes. To make room for one beyond it, the longest
/// idle one of the process that has the most is closed, if it has several; of a server, which knows no processes, the longest idle one of
/// all. Else the new one is closed at once.
pub const APPDASH_CONNECTIONS_MAX: usize = if cfg!(test) { 8 } else { 128 };

/// Bytes that the receiver reads from an AppDash connection in one turn: 1 ms of decoding.
pub const APPDASH_READ_BYTES: usize = 64 << 10;

/// Spans of another format that are put into one request of ours. A model span takes a few hundred bytes, so that a body of
/// 64 MiB with a million small ones never stands in memory as a whole.
pub const CONVERTED_SPANS_MAX: usize = 1024;

/// Attributes, elements of lists and events of such spans, beside which a few large spans are as many as small ones: 24 to 40 bytes each, and
/// their texts.
pub const CONVERTED_VALUES_MAX: u64 = 1 << 16;

/// Bytes of one message of the Pulumi engine's event stream. An event holds the inputs and outputs of one resource.
pub const EVENT_BYTES_MAX: usize = 16 << 20;

/// Event streams at the same time; each may hold one message. A deployment has one.
pub const EVENT_STREAMS_MAX: usize = 16;

/// How long connections may take to say goodbye after the last request was answered.
pub const GOODBYE_MAX: Duration = Duration::from_millis(100);

/// Bytes that wait to be handed on, for each target. At the 1.4 MB/s of a program that emits
/// 5,000 spans a second compressed, 22 s of an endpoint that does not answer.
pub const FORWARD_QUEUE_BYTES_MAX: usize = 32 << 20;

/// Requests in flight to one endpoint: enough to fill a line with 100 ms of delay.
pub const FORWARD_IN_FLIGHT_MAX: usize = 4;

/// How long one attempt to hand a request on may take where the user does not say: OpenTelemetry's default.
pub const FORWARD_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests that are held for a file which can be written only at the end. The largest AppDash files people have are some
/// 100 MB, and repeat each span many times.
pub const FORWARD_HELD_BYTES_MAX: usize = 128 << 20;

/// How long longpole tries an unreachable target after the end of the command. The user at the terminal waits for it.
pub const FORWARD_LAST_TRIES_MAX: Duration = Duration::from_secs(1);

/// First pause before a request is handed on again; it doubles.
pub const FORWARD_BACKOFF_MIN: Duration = Duration::from_millis(250);

/// Longest pause before a request is handed on again, unless the endpoint asks for more.
pub const FORWARD_BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The longest pause that an endpoint can ask for: more than we have time for, and never too much for a clock.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long one request is tried. The OpenTelemetry SDKs give up after about a minute.
pub const FORWARD_TRY_MAX: Duration = Duration::from_secs(60);

/// Bytes of an answer of the user's endpoint that are read; the rest cannot matter to us.
pub const FORWARD_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Spans of one of Pulumi's tracers that wait for those of the other before they are handed on. Some 200 ms of a deployment: a few
/// hundred; of a Pulumi that has the old tracer only, all.
pub const TWINS_WAITING_MAX: usize = if cfg!(test) { 1024 } else { 16 << 10 };

/// Ids that are remembered to say which span of the other tracer is whose parent: 40 bytes each.
pub const TWIN_IDS_MAX: usize = 1 << 20;

/// Entries of one `/proc/PID/fd` that a search for the process behind a connection reads. One costs 1.5 to 5 µs.
pub const PEER_LINKS_MAX: usize = 20_000;

/// Entries of all processes that one search reads: at most 60 to 200 ms.
pub const PEER_SEARCH_LINKS_MAX: usize = 2 * PEER_LINKS_MAX;

/// After a search that ran into these limits, the next ones omit unrelated processes for this many times as long as the search took: the
/// processes could be an attacker's, who makes each request wait.
pub const UNRELATED_PAUSE_FACTOR: u32 = 20;

/// Processes that the receiver remembers of those that one connection names as senders of its spans, and those that it checks of one
/// request. An exporter names one, a collector some dozens.
pub const CLAIMS_MAX: usize = 64;

/// Bytes that the receiver reads of a process's environment: execve(2) takes at most 6 MiB of variables and arguments.
pub const ENVIRONMENT_BYTES_MAX: u64 = 8 << 20;

/// Ancestors of a process that a search for one of them visits.
pub const ANCESTORS_MAX: usize = 256;

/// Entries of `/proc/*/fd` that a search for the listeners at an address reads. It needs all processes that hold the socket, so it visits
/// every process: at most 150 ms, once for each address.
pub const LISTENER_LINKS_MAX: usize = 100_000;

/// Addresses whose listeners the receiver searches for. A deployment or a shop of services calls dozens.
pub const LISTENERS_MAX: usize = 1_024;

/// Addresses that the spans of one request may name.
pub const CALLED_PER_REQUEST_MAX: usize = 64;

/// Bytes of `/proc/net/tcp` read to find the socket behind a connection: 50,000 sockets.
pub const PEER_TABLE_BYTES_MAX: u64 = 8 << 20;

/// How long a browser may take to open the page: a cold start on a busy machine takes half a minute.
pub const ONCE_MAX: Duration = Duration::from_secs(60);

/// Reports of sealed recordings that the page keeps in memory: enough to go back and forth between a few.
pub const REPORTS_MAX: usize = 4;

/// Bytes of memory that they may take on a server, beside the newest one, which is kept whatever it takes.
pub const REPORTS_BYTES_MAX: u64 = 512 << 20;

/// How long the page may take to finish answers when it is closed.
pub const PAGE_CLOSE_MAX: Duration = Duration::from_millis(500);

/// Connections to the page at the same time. A browser opens six to an origin, and one more for each tab that it prepares. The unit tests
/// have a few only, so that they get beyond it.
pub const PAGE_CONNECTIONS_MAX: usize = if cfg!(test) { 16 } else { 256 };

/// How long the head of a request to the page may take, counted from the answer before it: an idle connection ends after that, too, and
/// the browser makes another when it needs one.
pub const PAGE_HEAD_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });

/// Connections to the page whose user the page reads from the tables of `/proc` at the same time.
pub const PAGE_CHECKS_MAX: usize = 64;

/// Connections of others that are closed while the page makes one to itself: a full backlog.
pub const PROBE_CONNECTIONS_MAX: usize = 1_024;

/// Answers to queries of a server that their clients have not read, together: 512 MiB, three of the largest traces.
pub const ANSWERS_IN_MEMORY_BYTES_MAX: usize = 512 << 20;

/// How long an answer waits for such memory.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

/// Bytes of an answer that its connection takes at once. HTTP/2 keeps them for each stream, whether its client reads them or not.
pub const ANSWER_PIECE_BYTES: usize = 64 << 10;

/// How long a client may leave a piece of its answer unread before its connection is cut.
pub const ANSWER_STALL_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });

/// The pause between looks at them.
pub const ANSWER_LOOK_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 2_000 });

/// Bytes of memory that bodies, unread answers and spans that stand in no segment yet may take together: a gigabyte for the last, which are
/// nine logs of 262,144 spans of 400 bytes. A server that finds less memory takes no more than a quarter of that.
pub const MEMORY_BYTES_MAX: u64 = 1792 << 20;

/// Bytes of memory that queries may take together, with the reports that are kept for the next ones: a trace of 600 MB takes 1.5 GB until it is
/// answered. A server that finds less memory takes no more than a quarter of that.
pub const QUERIES_IN_MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Percent of the first beyond which the server takes no further requests.
pub const MEMORY_SHORT_PERCENT: u64 = 80;

/// The longest time, in seconds, after which a client may come again that was refused for lack of memory. The shortest is 1 s.
pub const RETRY_AFTER_SECS_MAX: u64 = 5;

/// Queries of a server that are answered at once: each may hold a large trace in memory.
pub const QUERIES_AT_ONCE_MAX: usize = 8;

/// How long a query waits for one of these places. Whoever would wait longer should come again.
pub const QUERY_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 10_000 });

/// How long a query may take once it has a place. A search that reads all traces of 280,000 spans took 21 s on two CPUs.
pub const QUERY_TIME_MAX: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 30_000 });
