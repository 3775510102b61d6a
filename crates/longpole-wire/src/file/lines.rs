//! OTLP as JSON lines: one export request on each line.

use std::io::{BufRead, BufReader, Read};

use longpole_model::loss::{Loss, LossKind};
use longpole_model::sink::SpanSink;

use super::document::{BYTE_ORDER_MARK, before_cut};
use super::{Counting, OTLP_SPANS_DEPTH};
use crate::error::{DecodeError, FileError};
use crate::limits::Limits;
use crate::otlp;

/// How much is read from the file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Lines that could not be read.
#[derive(Default)]
struct Refused {
    count: u64,
    /// Number and offset of the first, and what is wrong with it.
    first: Option<(u64, u64, DecodeError)>,
}

/// Reads line by line; no more than one line is held.
pub(super) fn decode(input: impl Read, limits: &Limits, sink: &mut Counting<'_>) -> Result<(), FileError> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut line = Vec::new();
    let (mut number, mut offset, mut good) = (0, 0, 0);
    let mut refused = Refused::default();
    let result = loop {
        line.clear();
        let read = (&mut input).take(limits.document_bytes_max as u64 + 1).read_until(b'\n', &mut line).map_err(FileError::Read)?;
        if read == 0 {
            break Ok(());
        }
        if read > limits.document_bytes_max {
            break Err(FileError::TooLarge { limit_bytes: limits.document_bytes_max, offset });
        }
        number += 1;
        let is_last = line.last() != Some(&b'\n');
        let text = if offset == 0 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        let text = text.trim_ascii();
        if !text.is_empty() {
            match take_line(text, limits, sink) {
                Ok(()) => good += 1,
                Err(error) => {
                    // Only the last line can have been cut: the others have their end.
                    let whole = if is_last { before_cut(text, OTLP_SPANS_DEPTH) } else { None };
                    if whole.is_some_and(|whole| whole.is_empty() || take_line(&whole, limits, sink).is_ok()) {
                        break Err(FileError::Truncated { offset: offset + read as u64, spans: sink.spans });
                    }
                    refused.count += 1;
                    refused.first.get_or_insert((number, offset, error));
                }
            }
        }
        offset += read as u64;
    };
    match refused.first {
        // Nothing in it could be read: this is something else.
        Some((_, offset, error)) if good == 0 && result.is_ok() => Err(FileError::Document { error, offset }),
        Some((number, _, error)) => {
            let detail = format!("lines of the file that are not OTLP JSON; the first is line {number}: {error}");
            sink.loss(Loss::new(LossKind::RequestsRefused, refused.count, detail));
            result
        }
        None => result,
    }
}

fn take_line(text: &[u8], limits: &Limits, sink: &mut Counting<'_>) -> Result<(), DecodeError> {
    let before = sink.spans;
    otlp::json::decode(text, limits, sink)?;
    if sink.spans == before {
        // The Collector writes all signals into one file.
        let others =
            [(otlp::count_logs(text, true)?, "log records in the file"), (otlp::count_metrics(text, true)?, "data points in the file")];
        for (count, detail) in others {
            if count > 0 {
                sink.loss(Loss::new(LossKind::OtherSignals, count, detail));
            }
        }
    }
    Ok(())
}
