//! What `doctor` finds in a program without running it: OpenTelemetry's span processors for Rust whose shutdown can wait for itself.
//!
//! It recognises them by texts that stay in a stripped binary. A program need not use what it contains, so the finding says "can".

use std::io::{self, Read};
use std::path::Path;

use longpole_store::outside::{self, Links};

/// Parts of programs that hang or prevent it, recognised by texts that no other part contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SdkPart {
    /// The processor that is a task of the program's runtime (0.2x to 0.33).
    AsyncProcessor,
    /// The processor with a thread of its own.
    ThreadProcessor,
    /// OTLP over gRPC, whose connection is a task of the program's runtime.
    Grpc,
    /// longpole-sdk with the feature `opentelemetry`, which keeps all of these away from the program's runtime.
    Sdk,
}

const TEXTS: &[(&[u8], SdkPart)] = &[
    (b"Shutdown response channel error", SdkPart::AsyncProcessor),
    (b"span_processor_with_async_runtime", SdkPart::AsyncProcessor),
    (b"OpenTelemetry.Traces.BatchProcessor", SdkPart::ThreadProcessor),
    (b"TonicTracesClient", SdkPart::Grpc),
    (b"no thread to end the span processor with", SdkPart::Sdk),
];

/// Read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// What is found, and what to do about it; `None` where there is nothing to say.
pub(crate) struct Finding {
    pub(crate) text: String,
    pub(crate) remedy: &'static str,
}

/// As far as a program is read: 4 GiB, which the largest with all their debug information do not have.
const PROGRAM_BYTES_MAX: u64 = 4 << 30;

/// Looks at a binary; `Ok(None)` where none of this is built in. A pipe or a device, which may never end, is none.
pub(crate) fn look_at(path: &Path) -> io::Result<Option<Finding>> {
    let program = outside::open(path, Links::Followed)?;
    Ok(judge(&parts(program.take(PROGRAM_BYTES_MAX))?))
}

const REMEDY: &str = "call shutdown() from a separate thread (spawn_blocking), or set it up with longpole_sdk::builder()";

fn judge(parts: &[SdkPart]) -> Option<Finding> {
    let has = |part| parts.contains(&part);
    let what = match (has(SdkPart::AsyncProcessor), has(SdkPart::ThreadProcessor) && has(SdkPart::Grpc)) {
        (true, _) => "contains OpenTelemetry's batch processor for async runtimes: its shutdown() can hang when called inside the runtime",
        (false, true) => {
            "contains OpenTelemetry's batch processor and gRPC: shutdown() inside a runtime can block for 5s and lose the last spans"
        }
        (false, false) => return None,
    };
    Some(match has(SdkPart::Sdk) {
        true => Finding {
            text: format!(
                "{what}; the program also contains longpole-sdk: a processor that longpole-sdk set up runs outside the runtime \
                           and is not affected"
            ),
            remedy: "",
        },
        false => Finding { text: what.to_owned(), remedy: REMEDY },
    })
}

/// Which of the parts a file holds, read in pieces that overlap by the longest text.
fn parts(mut file: impl Read) -> io::Result<Vec<SdkPart>> {
    let overlap = TEXTS.iter().map(|(text, _)| text.len()).max().unwrap_or(1) - 1;
    let mut found = Vec::new();
    let mut piece = vec![0; overlap + PIECE_BYTES];
    let mut kept = 0;
    loop {
        let read = file.read(&mut piece[kept..])?;
        if read == 0 {
            return Ok(found);
        }
        let bytes = &piece[..kept + read];
        for (text, part) in TEXTS {
            if !found.contains(part) && holds(bytes, text) {
                found.push(*part);
            }
        }
        let end = bytes.len();
        kept = overlap.min(end);
        piece.copy_within(end - kept..end, 0);
    }
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    let [first, ..] = text else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(text) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out three bytes at a time.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(3).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn a_text_is_found_wherever_the_pieces_are_cut() {
        let mut file = vec![b'S'; 100];
        file.extend(b"TonicTracesClient.Export");
        file.extend([0; 200]);
        file.extend(b"Shutdown response channel error: ");
        assert_eq!(parts(Slowly(&file)).unwrap(), [SdkPart::Grpc, SdkPart::AsyncProcessor]);
        assert_eq!(parts(&file[..]).unwrap().len(), 2);
        assert_eq!(parts(&b""[..]).unwrap(), []);
    }

    #[test]
    fn only_what_can_hang_is_named() {
        assert!(judge(&[]).is_none() && judge(&[SdkPart::ThreadProcessor]).is_none() && judge(&[SdkPart::Grpc]).is_none());
        assert!(judge(&[SdkPart::ThreadProcessor, SdkPart::Grpc]).unwrap().text.contains("5s"));
        assert!(judge(&[SdkPart::AsyncProcessor]).unwrap().remedy.contains("spawn_blocking"));
        let with_us = judge(&[SdkPart::AsyncProcessor, SdkPart::Sdk]).unwrap();
        assert!(with_us.text.contains("longpole-sdk") && with_us.remedy.is_empty());
    }
}
