//! The bytes of profiles inside the log of a server: a request of profiles, whatever format it came in.
//!
//! ```text
//! texts      each once: names of functions, files, labels      the lists below refer to them by place
//! series     five texts of the type, then pairs of labels
//! mappings   path, build id
//! locations  kind, then frames: function, file, line, reason
//! stacks     locations
//! values     series, time since the one before, stack, value, span
//! ```

use std::collections::HashMap;
use std::io;

use longpole_model::profile::{LinkScope, ProfileBatch, ProfileSeries, ProfileType, ProfileValue, ProfiledSpan};
use longpole_model::stack::LocationKind;
use longpole_model::{Frame, Location, LocationId, Mapping, MappingId, Stack, StackId, Text, Timestamp};

use super::observation_codec::Encoded;
use crate::encoding::{Decoded, Decoder, put_bytes, put_i64, put_u32, put_u64};
use crate::numbers::{u32_of, usize_of};

/// A value without a span, and one with: 1, and what of it is known.
const NO_SPAN: u8 = 0;
const HAS_SPAN: u8 = 1;
const HAS_TRACE_ID: u8 = 2;
const HAS_SPAN_ID: u8 = 4;
/// Where the scope stands, by its place in [`LinkScope::ALL`].
const SCOPE_SHIFT: u32 = 3;
const SCOPE_MASK: u8 = 3;

/// The texts of a batch, each once.
#[derive(Default)]
struct TextTable<'a> {
    places: HashMap<&'a str, u32>,
    texts: Vec<&'a str>,
}

impl<'a> TextTable<'a> {
    fn place(&mut self, text: &'a str) -> u32 {
        let next = u32_of(self.texts.len());
        let place = *self.places.entry(text).or_insert(next);
        if place == next {
            self.texts.push(text);
        }
        place
    }
}

/// Bytes of a request of profiles before they are compressed: a receiver takes far less.
const PLAIN_BYTES_MAX: u64 = 256 << 20;

/// How hard the log compresses profiles: their stacks repeat, and a little makes a quarter of them.
const COMPRESSION_LEVEL: i32 = 1;

/// The bytes of profiles, as the log has them: how many there are, then those of [`encode_plain`], compressed.
pub(crate) fn encode(batch: &ProfileBatch) -> io::Result<Vec<u8>> {
    let plain = encode_plain(batch);
    if plain.len() as u64 > PLAIN_BYTES_MAX {
        return Err(io::Error::other(format!("{} bytes of profiles in one request", plain.len())));
    }
    let mut bytes = Vec::new();
    put_u64(&mut bytes, plain.len() as u64);
    bytes.extend_from_slice(&zstd::bulk::compress(&plain, COMPRESSION_LEVEL)?);
    Ok(bytes)
}

/// The profiles of these bytes. All places that it refers to are there.
pub(crate) fn decode(bytes: &[u8]) -> Decoded<ProfileBatch> {
    let mut decoder = Decoder::new(bytes);
    let length = decoder.u64()?;
    if length > PLAIN_BYTES_MAX {
        return decoder.malformed("a length that a frame may have");
    }
    let compressed = &bytes[decoder.offset()..];
    let plain = zstd::bulk::decompress(compressed, usize_of(length));
    decode_plain(&plain.or_else(|_| decoder.malformed("compressed profiles"))?)
}

fn encode_plain(batch: &ProfileBatch) -> Vec<u8> {
    let (mut table, mut rest) = (TextTable::default(), Vec::new());
    let out = &mut rest;
    put_u64(out, batch.series.len() as u64);
    for series in &batch.series {
        series.profile_type.parts().iter().for_each(|part| put_u32(out, table.place(part)));
        put_u64(out, series.labels.len() as u64);
        for (name, value) in &series.labels {
            put_u32(out, table.place(name));
            put_u32(out, table.place(value));
        }
    }
    put_u64(out, batch.mappings.len() as u64);
    for mapping in &batch.mappings {
        put_u32(out, table.place(&mapping.path));
        put_bytes(out, &mapping.build_id);
    }
    put_u64(out, batch.locations.len() as u64);
    for location in &batch.locations {
        location.kind.put(out);
        put_u64(out, location.frames.len() as u64);
        for frame in &location.frames {
            put_u32(out, table.place(&frame.function));
            put_u32(out, table.place(&frame.file));
            put_u32(out, frame.line);
            // 0 where there is none.
            put_u32(out, frame.reason.as_ref().map_or(0, |reason| table.place(reason).saturating_add(1)));
        }
    }
    put_u64(out, batch.stacks.len() as u64);
    for stack in &batch.stacks {
        put_u64(out, stack.locations.len() as u64);
        stack.locations.iter().for_each(|location| put_u32(out, location.0));
    }
    put_u64(out, batch.values.len() as u64);
    let mut before = 0;
    for value in &batch.values {
        put_u32(out, value.series);
        put_i64(out, value.time.unix_nanos().wrapping_sub(before));
        before = value.time.unix_nanos();
        put_u32(out, value.stack.0);
        put_i64(out, value.value);
        put_span(out, value.span);
    }
    let mut bytes = Vec::with_capacity(rest.len() + table.texts.iter().map(|text| text.len() + 2).sum::<usize>());
    put_u64(&mut bytes, table.texts.len() as u64);
    table.texts.iter().for_each(|text| put_bytes(&mut bytes, text.as_bytes()));
    bytes.extend_from_slice(&rest);
    bytes
}

fn put_span(out: &mut Vec<u8>, span: Option<ProfiledSpan>) {
    let Some(ProfiledSpan { trace_id, span_id, scope }) = span else { return out.push(NO_SPAN) };
    let mut flags = HAS_SPAN | (scope as u8) << SCOPE_SHIFT;
    flags |= if trace_id.is_some() { HAS_TRACE_ID } else { 0 };
    flags |= if span_id.is_some() { HAS_SPAN_ID } else { 0 };
    out.push(flags);
    trace_id.iter().for_each(|id| out.extend_from_slice(&id.bytes()));
    span_id.iter().for_each(|id| out.extend_from_slice(&id.bytes()));
}

fn read_span(decoder: &mut Decoder<'_>) -> Decoded<Option<ProfiledSpan>> {
    let flags = decoder.u8("whether a span follows")?;
    if flags == NO_SPAN {
        return Ok(None);
    }
    let scope = LinkScope::ALL.get(usize::from(flags >> SCOPE_SHIFT & SCOPE_MASK)).copied();
    let scope = scope.filter(|_| flags & HAS_SPAN != 0).map_or_else(|| decoder.malformed("a known link of a span"), Ok)?;
    let trace_id = (flags & HAS_TRACE_ID != 0).then(|| decoder.trace_id()).transpose()?;
    let span_id = (flags & HAS_SPAN_ID != 0).then(|| decoder.span_id()).transpose()?;
    Ok(Some(ProfiledSpan { trace_id, span_id, scope }))
}

fn decode_plain(bytes: &[u8]) -> Decoded<ProfileBatch> {
    let mut decoder = Decoder::new(bytes);
    let decoder = &mut decoder;
    let texts: Vec<Text> = decoder.list(|decoder| decoder.text().map(Text::from))?;
    let text = |decoder: &mut Decoder<'_>| {
        let place = decoder.u32()?;
        texts.get(place as usize).cloned().map_or_else(|| decoder.malformed("the place of a text"), Ok)
    };
    let series = decoder.list(|decoder| {
        let [name, sample_type, sample_unit, period_type, period_unit] =
            [text(decoder)?, text(decoder)?, text(decoder)?, text(decoder)?, text(decoder)?];
        let labels = decoder.list(|decoder| Ok((text(decoder)?, text(decoder)?)))?;
        Ok(ProfileSeries { profile_type: ProfileType { name, sample_type, sample_unit, period_type, period_unit }, labels })
    })?;
    let mut next = 0;
    let mappings = decoder.list(|decoder| {
        let (path, build_id) = (text(decoder)?.as_str().to_owned(), decoder.bytes()?.to_vec());
        next += 1;
        Ok(Mapping { id: MappingId(next - 1), path, build_id })
    })?;
    let mut next = 0;
    let locations = decoder.list(|decoder| {
        let kind = LocationKind::read(decoder)?;
        if let LocationKind::Code { mapping, .. } = kind
            && mapping.0 as usize >= mappings.len()
        {
            return decoder.malformed("the place of a binary");
        }
        let frames = decoder.list(|decoder| {
            let (function, file, line) = (text(decoder)?, text(decoder)?, decoder.u32()?);
            let reason = match decoder.u32()? {
                0 => None,
                place => Some(texts.get(place as usize - 1).map_or_else(|| decoder.malformed("the place of a text"), Ok)?),
            };
            Ok(Frame { function, file, line, reason: reason.map(|reason| reason.as_str().to_owned()) })
        })?;
        next += 1;
        Ok(Location { id: LocationId(next - 1), kind, frames })
    })?;
    let mut next = 0;
    let stacks = decoder.list(|decoder| {
        let of_stack = decoder.list(|decoder| match decoder.u32()? {
            place if (place as usize) < locations.len() => Ok(LocationId(place)),
            _ => decoder.malformed("the place of a location"),
        })?;
        next += 1;
        Ok(Stack { id: StackId(next - 1), locations: of_stack })
    })?;
    let mut before = 0_i64;
    let values = decoder.list(|decoder| {
        let (of_series, since, stack) = (decoder.u32()?, decoder.i64()?, decoder.u32()?);
        if of_series as usize >= series.len() || stack as usize >= stacks.len() {
            return decoder.malformed("the place of a series and of a stack");
        }
        before = before.wrapping_add(since);
        let (value, span) = (decoder.i64()?, read_span(decoder)?);
        Ok(ProfileValue { series: of_series, time: Timestamp(before), stack: StackId(stack), value, span })
    })?;
    if !decoder.is_empty() {
        return decoder.malformed("the end");
    }
    Ok(ProfileBatch { series, mappings, locations, stacks, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::profile_batch;

    #[test]
    fn what_is_written_is_read_again() {
        let batch = profile_batch("cart", 1_000, &[("main;handle;parse", 30), ("main;handle", 10)]);
        assert_eq!(decode(&encode(&batch).unwrap()), Ok(batch));
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_no_panic() {
        let batch = profile_batch("cart", 1_000, &[("main;handle;parse", 30), ("main;handle", 10)]);
        type Decode = fn(&[u8]) -> Decoded<ProfileBatch>;
        for (bytes, decode) in [(encode(&batch).unwrap(), decode as Decode), (encode_plain(&batch), decode_plain as Decode)] {
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err(), "{end}");
            }
            for at in 0..bytes.len() {
                for changed in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut bytes = bytes.clone();
                    bytes[at] = changed;
                    let _ = decode(&bytes);
                }
            }
        }
    }
}
