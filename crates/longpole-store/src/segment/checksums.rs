//! The list of a recording's tables, and of what they take, with the checksum of each: `segments/checksums`.
//!
//! ```text
//! longpole checksums 1
//! 7b2e8f15 8123 runs.parquet
//! 23d0cfeb 40417 spans.parquet
//! …
//! 1c291ca3 end
//! ```
//!
//! CRC-32C of all bytes of a file, its length in bytes, its name; the last line has the checksum of the lines before. Parquet has
//! checksums of its own, of pages only: a flipped bit in a footer can move rows, and a table that is gone is missed by nobody.
//! These find damage. They do not stop who changes a file on purpose and writes its new checksum.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::files;

/// Name of the file.
pub(crate) const FILE_NAME: &str = "checksums";

const FIRST_LINE: &str = "longpole checksums 1\n";

/// Longest list that is read: a hundred times what our tables take.
pub(crate) const BYTES_MAX: u64 = 64 << 10;

/// The bytes of a list, or a few more than it may have.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    files::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bytes summed up at a time.
const STEP_BYTES: usize = 256 << 10;

/// Checksum and length of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Checksum {
    crc: u32,
    pub(crate) bytes: u64,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut sum = Checksum::default();
        sum.add(bytes);
        sum
    }

    /// The CRC as the list prints it.
    pub(crate) fn hex(self) -> String {
        format!("{:08x}", self.crc)
    }

    /// The checksum of everything that is left to read.
    pub(crate) fn of_rest(mut input: impl Read) -> io::Result<Self> {
        let mut sum = Checksum::default();
        let mut buffer = vec![0; STEP_BYTES];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return Ok(sum),
                Ok(read) => sum.add(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Passes on what is written, and sums it up.
pub(crate) struct Summed<W> {
    inner: W,
    pub(crate) sum: Checksum,
}

impl<W> Summed<W> {
    pub(crate) fn new(inner: W) -> Self {
        Summed { inner, sum: Checksum::default() }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The tables of a recording, by the names of their files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Checksums(BTreeMap<String, Checksum>);

impl Checksums {
    pub(crate) fn insert(&mut self, file_name: String, sum: Checksum) {
        self.0.insert(file_name, sum);
    }

    pub(crate) fn print(&self) -> String {
        let mut text = FIRST_LINE.to_owned();
        for (name, Checksum { crc, bytes }) in &self.0 {
            text.push_str(&format!("{crc:08x} {bytes} {name}\n"));
        }
        let end = Checksum::of(text.as_bytes()).crc;
        text.push_str(&format!("{end:08x} end\n"));
        text
    }

    /// Reads the list. Only what [`Checksums::print`] writes is one, byte for byte.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let list = std::str::from_utf8(bytes).ok().and_then(Self::lines);
        list.filter(|list| list.print().as_bytes() == bytes).ok_or("it is damaged: its own checksum does not match")
    }

    fn lines(text: &str) -> Option<Self> {
        let mut list = Checksums::default();
        for line in text.strip_prefix(FIRST_LINE)?.lines() {
            let mut words = line.splitn(3, ' ');
            let (crc, bytes) = (u32::from_str_radix(words.next()?, 16).ok()?, words.next()?);
            let Some(name) = words.next() else { break };
            list.insert(name.to_owned(), Checksum { crc, bytes: bytes.parse().ok()? });
        }
        Some(list)
    }

    /// Names and lengths of the files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, sum)| (name.as_str(), sum.bytes))
    }

    /// Whether the table is in the recording.
    pub(crate) fn names(&self, file_name: &str) -> bool {
        self.0.contains_key(file_name)
    }

    /// Refuses a file that does not have the length with which it was written.
    pub(crate) fn check_length(&self, file_name: &str, bytes: u64) -> Result<&Checksum, String> {
        let Some(written) = self.0.get(file_name) else {
            return Err(format!("it is not in the list of the recording's tables, `{FILE_NAME}`"));
        };
        if bytes != written.bytes {
            return Err(format!("it is damaged: it has {bytes} bytes and was written with {}", written.bytes));
        }
        Ok(written)
    }

    /// Refuses a file that is not as it was written.
    pub(crate) fn check(&self, file_name: &str, found: Checksum) -> Result<(), String> {
        let written = self.check_length(file_name, found.bytes)?;
        if found.crc != written.crc {
            return Err(format!("it is damaged: its checksum is {:08x} and was {:08x} when it was written", found.crc, written.crc));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Checksums {
        let mut list = Checksums::default();
        list.insert("spans.parquet".into(), Checksum::of(b"123456789"));
        list.insert("runs.parquet".into(), Checksum::of(b""));
        list
    }

    #[test]
    fn a_list_looks_like_this_and_reads_back() {
        let text = list().print();
        // e3069283 is the check value of CRC-32C.
        let lines: Vec<&str> = text.lines().take(3).collect();
        assert_eq!(lines, ["longpole checksums 1", "00000000 0 runs.parquet", "e3069283 9 spans.parquet"]);
        assert_eq!(Checksums::parse(text.as_bytes()), Ok(list()));
    }

    #[test]
    fn each_changed_bit_and_each_cut_of_a_list_is_an_error() {
        let text = list().print().into_bytes();
        for at in 0..text.len() {
            assert!(Checksums::parse(&text[..at]).is_err());
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                assert!(Checksums::parse(&changed).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_file_is_refused_by_its_length_its_bytes_and_its_name() {
        let check = |name, bytes: &[u8]| list().check(name, Checksum::of(bytes)).map_err(|reason| reason.contains("damaged"));
        assert_eq!(check("spans.parquet", b"123456789"), Ok(()));
        assert_eq!(check("spans.parquet", b"123456788"), Err(true));
        assert_eq!(check("spans.parquet", b"12345678"), Err(true));
        assert_eq!(check("waits.parquet", b""), Err(false));
        assert_eq!(Checksum::of_rest(&b"123456789"[..]).unwrap(), Checksum::of(b"123456789"));
    }
}
