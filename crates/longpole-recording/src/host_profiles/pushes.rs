//! A window of profiles as a request to a server: `push.v1.PusherService/Push`, which every Pyroscope takes.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_model::Timestamp;
use longpole_model::profile::{LinkScope, ProfileBatch};
use longpole_wire::profile_export::series::encode_series;
use longpole_wire::pyroscope::push::{self, PushedSeries, RawProfile};

/// The series of a window, each with its profile.
pub fn of_batch(batch: &ProfileBatch, interval: &Range<Timestamp>, rate_hz: u32) -> Vec<PushedSeries<'static>> {
    let profiles = encode_series(batch, interval, |series| {
        let [_, _, _, period_type, period_unit] = series.profile_type.parts();
        let period = if series.profile_type.is_time() { 1_000_000_000 / i64::from(rate_hz.max(1)) } else { 1 };
        (period_type, period_unit, period)
    });
    let series = batch.series.iter().zip(profiles).map(|(series, profile)| {
        let name = series.profile_type.name.to_string();
        let mut labels = vec![("__name__".to_owned(), name), (push::LINK_SCOPE.to_owned(), LinkScope::Span.as_str().to_owned())];
        labels.extend(series.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        PushedSeries { labels, profiles: vec![RawProfile { id: String::new(), bytes: Cow::Owned(compressed(&profile)) }] }
    });
    series.collect()
}

/// The body of a request; `again` if the server may have them already.
pub fn body(series: &[PushedSeries<'_>], again: bool) -> Vec<u8> {
    if !again {
        return push::encode(series);
    }
    let marked = series.iter().map(|series| {
        let mut series = series.clone();
        series.labels.push((push::SENT_AGAIN.to_owned(), "true".to_owned()));
        series
    });
    push::encode(&marked.collect::<Vec<_>>())
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into memory does not fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}
