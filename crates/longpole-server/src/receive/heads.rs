//! Whether the bytes of a connection stop inside a part that must be complete before it has an effect: the head of a request of HTTP/1,
//! the preface of HTTP/2, one of its frames, or a block of headers in several frames.
//!
//! ```text
//! HTTP/1   POST /v1/traces HTTP/1.1 ⏎ Host: …        no request began since the last one was answered
//! HTTP/2   00 00 2a 01 00 00 00 00 01 …42 bytes…     HEADERS without END_HEADERS (flags 00): CONTINUATION must follow
//! ```
//!
//! A connection that waits between requests is not inside a part, nor are streams of HTTP/2 that wait for data.

/// The first bytes of an HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length (3 bytes), kind, flags, stream (4 bytes).
const FRAME_HEADER_BYTES: usize = 9;

const KIND_DATA: u8 = 0;
const KIND_HEADERS: u8 = 1;
const KIND_CONTINUATION: u8 = 9;
const FLAG_END_HEADERS: u8 = 4;

/// Where a connection is.
#[derive(Debug, Default)]
pub(super) enum Heads {
    /// Nothing came.
    #[default]
    Nothing,
    /// This number of bytes of the preface of HTTP/2.
    Preface(usize),
    Http1,
    Http2(Frames),
}

impl Heads {
    /// Takes the bytes of a read. Returns whether a part of HTTP/2 ended in them; only hyper knows that of HTTP/1.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return false;
        }
        let mut rest = bytes;
        if let Heads::Nothing = self {
            *self = Heads::Preface(0);
        }
        if let Heads::Preface(matched) = self {
            let wanted = &PREFACE[*matched..];
            let length = wanted.len().min(rest.len());
            if wanted[..length] != rest[..length] {
                *self = Heads::Http1;
                return false;
            }
            rest = &rest[length..];
            if length < wanted.len() {
                *matched += length;
                return false;
            }
            *self = Heads::Http2(Frames::default());
        }
        match self {
            Heads::Http2(frames) => frames.push(rest) || rest.len() < bytes.len(),
            _ => false,
        }
    }

    /// Frames of HTTP/2 so far that carry neither heads nor bodies.
    pub(super) fn control_frames(&self) -> u64 {
        match self {
            Heads::Http2(frames) => frames.control,
            _ => 0,
        }
    }

    /// Whether it is inside a part, if the bytes alone show it.
    pub(super) fn is_inside(&self) -> Option<bool> {
        match self {
            Heads::Nothing => Some(false),
            Heads::Preface(_) => Some(true),
            Heads::Http1 => None,
            Heads::Http2(frames) => Some(frames.is_inside()),
        }
    }
}

/// Where a connection of HTTP/2 is.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; FRAME_HEADER_BYTES],
    header_length: usize,
    payload_left: usize,
    /// A block of headers began and did not end.
    in_block: bool,
    /// Frames that carry neither heads nor bodies.
    control: u64,
}

impl Frames {
    fn push(&mut self, mut bytes: &[u8]) -> bool {
        let mut ended = false;
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let length = self.payload_left.min(bytes.len());
                self.payload_left -= length;
                bytes = &bytes[length..];
            } else {
                let length = (FRAME_HEADER_BYTES - self.header_length).min(bytes.len());
                self.header[self.header_length..self.header_length + length].copy_from_slice(&bytes[..length]);
                self.header_length += length;
                bytes = &bytes[length..];
                if self.header_length < FRAME_HEADER_BYTES {
                    return ended;
                }
                let [a, b, c, kind, flags, ..] = self.header;
                self.header_length = 0;
                self.payload_left = u32::from_be_bytes([0, a, b, c]) as usize;
                match kind {
                    KIND_HEADERS | KIND_CONTINUATION => self.in_block = flags & FLAG_END_HEADERS == 0,
                    KIND_DATA => {}
                    _ => self.control += 1,
                }
            }
            ended |= !self.is_inside();
        }
        ended
    }

    fn is_inside(&self) -> bool {
        self.header_length > 0 || self.payload_left > 0 || self.in_block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn a_connection_of_http_2_is_inside_until_frames_and_blocks_are_whole() {
        let whole =
            [PREFACE.to_vec(), frame(4, 0, b""), frame(1, 0, b"abc"), frame(9, 4, b"def"), frame(0, 0, b"data"), frame(1, 4, b"ghi")]
                .concat();
        let ends = [0, 24, 33, 57, 70, 82];
        for part in [1, 2, 7, whole.len()] {
            let mut heads = Heads::default();
            let mut at = 0;
            for bytes in whole.chunks(part) {
                let ended = heads.push(bytes);
                let (from, to) = (at, at + bytes.len());
                at = to;
                assert_eq!(ended, ends.iter().any(|end| from < *end && *end <= to), "{from}..{to}");
                assert_eq!(heads.is_inside(), Some(!ends.contains(&at)), "at {at} of parts of {part}");
            }
        }
    }

    #[test]
    fn frames_without_heads_and_bodies_are_counted() {
        let bytes = [PREFACE.to_vec(), frame(4, 0, b""), frame(1, 4, b"abc"), frame(6, 0, b"12345678"), frame(0, 0, b"data")].concat();
        let mut heads = Heads::default();
        for bytes in bytes.chunks(5) {
            heads.push(bytes);
        }
        assert_eq!(heads.control_frames(), 2);
    }

    #[test]
    fn the_bytes_of_http_1_do_not_show_it() {
        let mut heads = Heads::default();
        assert_eq!(heads.is_inside(), Some(false));
        assert!(!heads.push(b"P"));
        assert_eq!(heads.is_inside(), Some(true), "of either");
        assert!(!heads.push(b"OST / HTTP/1.1"));
        assert_eq!(heads.is_inside(), None);
    }
}
