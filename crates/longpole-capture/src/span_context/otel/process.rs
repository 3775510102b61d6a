//! The process context of OTEP 4719: a header in a mapping of a known name, which leads to a `ProcessContext` message.
//!
//! ```text
//! 4f 54 45 4c 5f 43 54 58   "OTEL_CTX"
//! 02 00 00 00  2a 00 00 00   version 2, 42 bytes of message
//! 00 f2 05 2a 01 00 00 00   published 5 s after boot; 0 = it is being changed
//! 20 10 fe b7 ff 7f 00 00   address of the message
//! ```

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

use longpole_model::{AttributeValue, Attributes};

/// First bytes of a header.
const SIGNATURE: [u8; 8] = *b"OTEL_CTX";

/// The layout this reader knows.
const VERSION: u32 = 2;

/// Size of a header.
const HEADER_BYTES: usize = 32;

/// Largest message to read, as in OpenTelemetry's own profiler.
const MESSAGE_BYTES_MAX: u32 = 64 << 10;

/// Most mappings of a process to search: the kernel's default limit (vm.max_map_count).
const MAPPINGS_MAX: usize = 65_530;

/// Longest line of a list of mappings; a longer one has another path.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Prefixes of the name of the mapping: of a memory file, of named memory, and of a file where the kernel cannot name memory.
const NAMES: [&[u8]; 3] = [b"[anon_shmem:OTEL_CTX]", b"[anon:OTEL_CTX]", b"/memfd:OTEL_CTX"];

/// The revisions of OTEP 4947 that [`super::thread`] reads: the one of its text, and the one that it announces for later.
const THREAD_SCHEMAS: [&str; 2] = ["tlsdesc_v1_dev", "tls_v1"];

/// What a process publishes about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessContext {
    /// Attributes of its resource.
    pub resource: Attributes,
    /// `threadlocal.schema_version`: how its threads publish.
    pub thread_schema: Option<String>,
    /// Attributes of the resource that are neither text nor number.
    pub dropped: u64,
}

impl ProcessContext {
    /// Whether its threads publish in a known way.
    pub fn has_threads(&self) -> bool {
        self.thread_schema.as_deref().is_some_and(|schema| THREAD_SCHEMAS.contains(&schema))
    }
}

/// Why a process context cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It has another layout.
    Version(u32),
    /// Its message is too long, or empty.
    Size(u32),
    /// It is no protobuf message.
    Message,
    /// Nothing leads from a stack to the variable of its threads.
    Storage,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Version(version) => write!(f, "unknown version {version}; longpole reads version {VERSION}"),
            Unreadable::Size(bytes) => write!(f, "a message of {bytes} bytes; longpole reads 1 to {MESSAGE_BYTES_MAX}"),
            Unreadable::Message => f.write_str("the message is not readable"),
            Unreadable::Storage => f.write_str("its threads have otel_thread_ctx_v1 in storage that a library gets at run time"),
        }
    }
}

/// The result of reading a header.
#[derive(Debug, PartialEq)]
pub enum HeaderReading {
    /// It has not changed.
    Same,
    /// It is being changed.
    Changing,
    /// There is none at this address.
    Gone,
    /// It is new.
    New {
        /// When it was published.
        published_at: u64,
        /// The context.
        context: ProcessContext,
    },
}

/// The address of the header of a process, from its mappings.
pub(super) fn find(pid: u32) -> Option<u64> {
    let mut lines = BufReader::new(File::open(format!("/proc/{pid}/maps")).ok()?);
    let mut line = Vec::new();
    for _ in 0..MAPPINGS_MAX {
        line.clear();
        if lines.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        if line.len() <= LINE_BYTES_MAX
            && let Some(start) = header_of(&line)
        {
            return Some(start);
        }
    }
    None
}

/// The address of a mapping, if its line has one of the names: `7f12-7f13 rw-p 00000000 00:01 12   /memfd:OTEL_CTX (deleted)`.
fn header_of(line: &[u8]) -> Option<u64> {
    let name = line.splitn(6, |byte| *byte == b' ').nth(5)?.trim_ascii();
    if !NAMES.iter().any(|known| name.starts_with(known)) {
        return None;
    }
    let start = line.split(|byte| *byte == b'-').next()?;
    u64::from_str_radix(std::str::from_utf8(start).ok()?, 16).ok()
}

/// Reads the context that the header at this address leads to, if it was published at another time than `known`. `copy` copies the bytes at an
/// address, all or none.
///
/// # Errors
///
/// Why the context cannot be read.
pub fn read(header: u64, known: u64, mut copy: impl FnMut(u64, &mut [u8]) -> bool) -> Result<HeaderReading, Unreadable> {
    let mut bytes = [0; HEADER_BYTES];
    if !copy(header, &mut bytes) || bytes[..8] != SIGNATURE {
        return Ok(HeaderReading::Gone);
    }
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let long = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 8]));
    let (version, size, published_at) = (word(8), word(12), long(16));
    match published_at {
        // An unfinished header must not be judged.
        0 => return Ok(HeaderReading::Changing),
        at if at == known => return Ok(HeaderReading::Same),
        _ if version != VERSION => return Err(Unreadable::Version(version)),
        _ if !(1..=MESSAGE_BYTES_MAX).contains(&size) => return Err(Unreadable::Size(size)),
        _ => {}
    }
    let mut message = vec![0; size as usize];
    let is_there = copy(long(24), &mut message);
    // The program goes on, so the message is whole only if the time is still the same.
    let mut after = [0; 8];
    if !copy(header.wrapping_add(16), &mut after) || u64::from_ne_bytes(after) != published_at {
        return Ok(HeaderReading::Changing);
    }
    if !is_there {
        return Err(Unreadable::Message);
    }
    decode(&message).map(|context| HeaderReading::New { published_at, context }).ok_or(Unreadable::Message)
}

/// Reads a `ProcessContext` message: `resource` is field 1, more attributes are field 2.
fn decode(message: &[u8]) -> Option<ProcessContext> {
    let mut context = ProcessContext::default();
    for field in Fields(message) {
        match field? {
            (1, FieldValue::Bytes(resource)) => {
                for field in Fields(resource) {
                    let (1, FieldValue::Bytes(pair)) = field? else { continue };
                    match pair_of(pair)? {
                        (_, AttributeValue::Empty) => context.dropped += 1,
                        (key, value) => context.resource.push(key, value),
                    }
                }
            }
            (2, FieldValue::Bytes(pair)) => {
                if let ("threadlocal.schema_version", AttributeValue::Str(schema)) = pair_of(pair)? {
                    context.thread_schema = Some(schema.to_string());
                }
            }
            _ => {}
        }
    }
    Some(context)
}

/// A `KeyValue`. A value that is neither text nor number is empty.
fn pair_of(pair: &[u8]) -> Option<(&str, AttributeValue)> {
    let (mut key, mut value) = ("", AttributeValue::Empty);
    for field in Fields(pair) {
        match field? {
            (1, FieldValue::Bytes(text)) => key = std::str::from_utf8(text).ok()?,
            (2, FieldValue::Bytes(any)) => {
                for field in Fields(any) {
                    value = match field? {
                        (1, FieldValue::Bytes(text)) => AttributeValue::Str(std::str::from_utf8(text).ok()?.into()),
                        (2, FieldValue::Number(truth)) => AttributeValue::Bool(truth != 0),
                        (3, FieldValue::Number(number)) => AttributeValue::Int(number.cast_signed()),
                        (4, FieldValue::Fixed(bits)) => AttributeValue::Double(f64::from_bits(bits)),
                        _ => AttributeValue::Empty,
                    };
                }
            }
            _ => {}
        }
    }
    Some((key, value))
}

/// The content of a field of protobuf.
enum FieldValue<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message: number and content. Ends with `None` if one is broken.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, FieldValue<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, FieldValue<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => FieldValue::Number(self.varint()?),
            1 => FieldValue::Fixed(u64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            2 => {
                let bytes = usize::try_from(self.varint()?).ok()?;
                FieldValue::Bytes(self.take(bytes)?)
            }
            5 => FieldValue::Fixed(u64::from(u32::from_le_bytes(*self.take(4)?.first_chunk()?))),
            _ => return None,
        };
        Some((key >> 3, value))
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for place in 0..10 {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message: resource with `service.name` = `shop`, `process.pid` = 7 and an empty list; schema of threads.
    fn message() -> Vec<u8> {
        let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
        let pair = |key: &str, value: &[u8]| [field(1, key.as_bytes()), field(2, value)].concat();
        let attributes =
            [pair("service.name", &field(1, b"shop")), pair("process.pid", &[3 << 3, 7]), pair("process.command_args", &field(5, b""))];
        let resource: Vec<u8> = attributes.iter().flat_map(|pair| field(1, pair)).collect();
        let schema = pair("threadlocal.schema_version", &field(1, b"tlsdesc_v1_dev"));
        [field(1, &resource), field(2, &schema), field(9, b"later")].concat()
    }

    fn header(version: u32, size: u32, published_at: u64) -> Vec<u8> {
        let parts = [&SIGNATURE[..], &version.to_ne_bytes(), &size.to_ne_bytes(), &published_at.to_ne_bytes(), &0x2000u64.to_ne_bytes()];
        parts.concat()
    }

    /// Reads a process with this header at 0x1000 and this message at 0x2000.
    fn read_from(header: &[u8], message: &[u8], known: u64) -> Result<HeaderReading, Unreadable> {
        read(0x1000, known, |address, into| {
            let from =
                if address >= 0x2000 { message.get((address - 0x2000) as usize..) } else { header.get((address - 0x1000) as usize..) };
            let found = from.and_then(|from| from.get(..into.len()));
            found.map(|found| into.copy_from_slice(found)).is_some()
        })
    }

    #[test]
    fn what_a_process_says_of_itself_is_read() {
        let message = message();
        let Ok(HeaderReading::New { published_at: 5, context }) = read_from(&header(2, message.len() as u32, 5), &message, 0) else {
            panic!()
        };
        assert_eq!(context.resource.get_str("service.name"), Some("shop"));
        assert_eq!(context.resource.get("process.pid"), Some(&AttributeValue::Int(7)));
        assert_eq!((context.dropped, context.has_threads()), (1, true));
        assert_eq!(read_from(&header(2, message.len() as u32, 5), &message, 5), Ok(HeaderReading::Same));
    }

    #[test]
    fn what_cannot_be_understood_says_why() {
        let message = message();
        let size = message.len() as u32;
        assert_eq!(read_from(&header(2, size, 0), &message, 0), Ok(HeaderReading::Changing));
        assert_eq!(read_from(&header(3, size, 5), &message, 0), Err(Unreadable::Version(3)));
        assert_eq!(read_from(&header(2, 0, 5), &message, 0), Err(Unreadable::Size(0)));
        assert_eq!(read_from(&header(2, u32::MAX, 5), &message, 0), Err(Unreadable::Size(u32::MAX)));
        assert_eq!(read_from(&header(2, size, 5), &message[..9], 0), Err(Unreadable::Message), "not all of it is there");
        assert_eq!(read_from(&header(2, size - 1, 5), &message, 0), Err(Unreadable::Message), "cut off");
        assert_eq!(read_from(&[0; 32], &message, 0), Ok(HeaderReading::Gone));
        assert_eq!(read_from(&[], &message, 0), Ok(HeaderReading::Gone));
        let go = ProcessContext { thread_schema: Some("go_pprof_labels_v1".to_owned()), ..ProcessContext::default() };
        assert!(!go.has_threads());
    }

    #[test]
    fn a_mapping_is_known_by_each_of_its_names() {
        for name in ["[anon:OTEL_CTX]", "[anon_shmem:OTEL_CTX]", "/memfd:OTEL_CTX (deleted)", "/memfd:OTEL_CTX"] {
            let line = format!("7f12000-7f13000 rw-p 00000000 00:01 4711                       {name}\n");
            assert_eq!(header_of(line.as_bytes()), Some(0x7f12000), "{name}");
        }
        for line in [
            "7f12000-7f13000 rw-p 00000000 00:00 0 \n",
            "7f12-7f13 rw-p 0 00:00 0 [anon:OTHER]\n",
            "x\n",
            "zz-7f r 0 0 0 [anon:OTEL_CTX]\n",
        ] {
            assert_eq!(header_of(line.as_bytes()), None, "{line}");
        }
    }
}
