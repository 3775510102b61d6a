//! One frame of the log: kind, length and checksum before a payload.
//!
//! ```text
//! length u32 │ CRC-32C of kind and payload u32 │ kind u8 │ payload          numbers are little-endian
//! ```

use longpole_model::profile::ProfileBatch;
use longpole_model::{Loss, Observation, ResourceEvent, Run, Timestamp};

use super::observation_codec::{decode, decode_all};
use super::profile_codec;
use crate::encoding::{Decoded, Decoder, Malformed, put_bytes, put_i64, put_u32, put_u64};
use crate::numbers::u32_of;

/// First bytes of a log.
pub(super) const MAGIC: [u8; 8] = *b"LPOLEWAL";

/// Magic and version.
pub(super) const FILE_HEADER_BYTES: usize = 12;

/// Length of the payload, checksum, kind.
pub(super) const FRAME_HEADER_BYTES: usize = 9;

/// The largest payload. The largest request a receiver takes is far below; a length above it is damage.
pub(super) const FRAME_BYTES_MAX: usize = 256 << 20;

/// What a frame holds, by number.
pub(super) mod kind {
    pub(in crate::wal) const RUN: u8 = 1;
    pub(in crate::wal) const OTLP_PROTOBUF: u8 = 2;
    pub(in crate::wal) const OTLP_JSON: u8 = 3;
    pub(in crate::wal) const OBSERVATIONS: u8 = 4;
    pub(in crate::wal) const LOSS: u8 = 5;
    pub(in crate::wal) const SPAN_EVENTS: u8 = 6;
    pub(in crate::wal) const RESOURCE_EVENT: u8 = 7;
    pub(in crate::wal) const TRACE_FILE: u8 = 8;
    pub(in crate::wal) const GENERATION: u8 = 9;
    pub(in crate::wal) const SPANS: u8 = 10;
    pub(in crate::wal) const PROFILES: u8 = 11;
    /// The largest.
    pub(in crate::wal) const LAST: u8 = PROFILES;
}

/// How a request of spans is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEncoding {
    /// OTLP as protobuf.
    Protobuf,
    /// OTLP as JSON.
    Json,
}

/// What a log of a server begins with: whose it is, and which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The server that wrote it.
    pub node: String,
    /// The tenant whose spans are in it.
    pub tenant: String,
    /// Counts the logs of this node and tenant.
    pub number: u64,
    /// When it began.
    pub begun: Timestamp,
}

impl Generation {
    /// Payload of its frame.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, self.node.as_bytes());
        put_bytes(&mut bytes, self.tenant.as_bytes());
        put_u64(&mut bytes, self.number);
        put_i64(&mut bytes, self.begun.unix_nanos());
        bytes
    }

    fn decode(payload: &[u8]) -> Decoded<Generation> {
        let mut bytes = Decoder::new(payload);
        Ok(Generation { node: bytes.text()?, tenant: bytes.text()?, number: bytes.u64()?, begun: bytes.timestamp()? })
    }
}

/// What stands before the body of a request in a server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// How the body is encoded.
    pub encoding: BodyEncoding,
    /// When it came.
    pub received: Timestamp,
    /// Pid of the peer, where it is a process of this machine and known.
    pub peer_pid: Option<u32>,
}

impl RequestHead {
    /// What stands before the body.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.encoding == BodyEncoding::Json)];
        put_i64(&mut bytes, self.received.unix_nanos());
        put_u32(&mut bytes, self.peer_pid.unwrap_or(0));
        bytes
    }

    /// The head, and how long it is.
    fn decode(payload: &[u8]) -> Decoded<(RequestHead, usize)> {
        let mut bytes = Decoder::new(payload);
        let encoding = if bytes.bool()? { BodyEncoding::Json } else { BodyEncoding::Protobuf };
        let received = bytes.timestamp()?;
        let pid = bytes.u32()?;
        Ok((RequestHead { encoding, received, peer_pid: (pid != 0).then_some(pid) }, bytes.offset()))
    }
}

/// What one frame holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The run, as it was known at its start. The first frame, and only that.
    Run(Run),
    /// The body of an OTLP trace request in protobuf.
    OtlpProtobuf {
        /// Pid of the peer, where it is known.
        peer_pid: Option<u32>,
        /// The body.
        body: Vec<u8>,
    },
    /// The body of an OTLP trace request in JSON.
    OtlpJson {
        /// Pid of the peer, where it is known.
        peer_pid: Option<u32>,
        /// The body.
        body: Vec<u8>,
    },
    /// Spans of a file that the command or a process below it wrote, as an OTLP trace request in protobuf.
    TraceFile {
        /// Pid of the command.
        command: Option<u32>,
        /// The body.
        body: Vec<u8>,
    },
    /// Events of spans that came by themselves: an OTLP trace request in protobuf whose spans are carriers.
    SpanEvents(Vec<u8>),
    /// What Pulumi's engine said about a resource.
    ResourceEvent(ResourceEvent),
    /// What the recorder saw.
    Observations(Vec<Observation>),
    /// Whose log this is. The first frame of a server's log, and only that.
    Generation(Generation),
    /// A request of spans that a server took.
    Spans {
        /// Its encoding and its sender.
        head: RequestHead,
        /// The body of an OTLP trace request.
        body: Vec<u8>,
    },
    /// A request of profiles that a server took.
    Profiles {
        /// When it came.
        received: Timestamp,
        /// What was in it.
        batch: ProfileBatch,
    },
    /// Something is missing; also what reading the log itself found missing.
    Loss(Loss),
}

impl Frame {
    /// Whether a log begins with it, and it stands nowhere else.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self, Frame::Run(_) | Frame::Generation(_))
    }

    /// What a payload of this kind says, or why it makes no sense.
    pub(super) fn decode(kind: u8, payload: Vec<u8>) -> Result<Self, String> {
        let malformed = |Malformed { offset, expected }| format!("at byte {offset} of its payload, expected {expected}");
        match kind {
            kind::RUN => decode(&payload).map(Frame::Run).map_err(malformed),
            kind::OBSERVATIONS => decode_all(&payload).map(Frame::Observations).map_err(malformed),
            kind::LOSS => decode(&payload).map(Frame::Loss).map_err(malformed),
            kind::RESOURCE_EVENT => decode(&payload).map(Frame::ResourceEvent).map_err(malformed),
            kind::SPAN_EVENTS => Ok(Frame::SpanEvents(payload)),
            kind::OTLP_PROTOBUF => request(payload).map(|(peer_pid, body)| Frame::OtlpProtobuf { peer_pid, body }),
            kind::TRACE_FILE => request(payload).map(|(command, body)| Frame::TraceFile { command, body }),
            kind::OTLP_JSON => request(payload).map(|(peer_pid, body)| Frame::OtlpJson { peer_pid, body }),
            kind::GENERATION => Generation::decode(&payload).map(Frame::Generation).map_err(malformed),
            kind::SPANS => {
                let (head, length) = RequestHead::decode(&payload).map_err(malformed)?;
                let mut body = payload;
                body.drain(..length);
                Ok(Frame::Spans { head, body })
            }
            kind::PROFILES => {
                let mut bytes = Decoder::new(&payload);
                let received = bytes.timestamp().map_err(malformed)?;
                let batch = profile_codec::decode(&payload[bytes.offset()..]).map_err(malformed)?;
                Ok(Frame::Profiles { received, batch })
            }
            _ => Err(format!("its kind {kind} is unknown")),
        }
    }
}

/// What stands before a payload.
pub(super) struct Header {
    pub(super) length: u64,
    pub(super) crc: u32,
    pub(super) kind: u8,
}

impl Header {
    /// Reads the first [`FRAME_HEADER_BYTES`] of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Header { length: u64::from(u32_at(bytes, 0)), crc: u32_at(bytes, 4), kind: bytes[8] }
    }

    /// Whether a frame may begin like this. What a log begins with stands first: behind damage it would be one of an older log.
    pub(super) fn is_possible(&self) -> bool {
        (kind::RUN + 1..=kind::LAST).contains(&self.kind) && self.kind != kind::GENERATION && self.length <= FRAME_BYTES_MAX as u64
    }
}

/// The header of a payload, which comes in parts.
pub(super) fn frame_header(kind: u8, payload: &[&[u8]]) -> [u8; FRAME_HEADER_BYTES] {
    let length = u32_of(payload.iter().map(|part| part.len()).sum());
    let crc = payload.iter().fold(crc32c::crc32c(&[kind]), |crc, part| crc32c::crc32c_append(crc, part));
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&crc.to_le_bytes());
    header[8] = kind;
    header
}

/// The little-endian number at an offset.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(number)
}

fn request(mut payload: Vec<u8>) -> Result<(Option<u32>, Vec<u8>), String> {
    if payload.len() < 4 {
        return Err("it is too short for the pid of its peer".into());
    }
    let pid = u32_at(&payload, 0);
    payload.drain(..4);
    Ok(((pid != 0).then_some(pid), payload))
}
