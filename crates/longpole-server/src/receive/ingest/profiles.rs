//! Profiles, in any format they come in, become a batch of series with stacks.
//!
//! ```text
//! push.v1       series { labels, pprof … }          labels of the series + those of its samples
//! /ingest       name=cart.cpu{env=prod} + profile   service_name="cart", env="prod"
//! OpenTelemetry resource, scope, profile, samples   attributes: service.name becomes service_name
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use longpole_model::profile::{LinkScope, ProfileBatch, ProfileValue, ProfiledSpan, SERVICE_LABEL};
use longpole_model::{SpanLabel, StackId, Text, Timestamp};
use longpole_wire::FileError;
use longpole_wire::file::GZIP_MAGIC;
use longpole_wire::profile_import::{self, Profile, ProfileFormat, ProfileSample};
use longpole_wire::pyroscope::ingest::{self, IngestFormat, IngestParameters, SampleTypeConfig};
use longpole_wire::pyroscope::profile_type::{self, SeriesType};
use longpole_wire::pyroscope::{Codec, push};
use longpole_wire::redact::Redactor;

use super::super::multipart::FormParts;
use super::super::scraped_profile::ScrapedProfile;
use super::profile_labels::{LabelMaker, Labels, label_name};
use crate::limits::{INFLATED_BYTES_MAX, PROFILE_MEMORY_FACTOR, PROFILE_MEMORY_MAX, PROFILE_MEMORY_MIN};
use crate::otlp_request::{Compression, InflateError, inflate_up_to};

/// Why profiles are not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnreadProfile {
    /// They are not what they claim to be.
    Unreadable(String),
    /// They take too much when they are unpacked.
    TooLarge(String),
}

impl From<String> for UnreadProfile {
    fn from(reason: String) -> Self {
        UnreadProfile::Unreadable(reason)
    }
}

/// Reads the profiles of one request, all of them within one limit: a request may have any number, each compressed by itself.
#[derive(Debug)]
pub(super) struct ProfileReader<'a> {
    received: Timestamp,
    labels: LabelMaker<'a>,
    /// Bytes that profiles may still be inflated to.
    inflated: usize,
    /// Memory that they may still take.
    memory: u64,
    /// Memory that further bytes may add to it.
    memory_left: u64,
    /// Values that are in no batch, because they count since the start of a program.
    left_out: u64,
    /// Whether the sender has sent some of them before, and does not know whether they arrived.
    is_sent_again: bool,
    batch: ProfileBatch,
}

impl<'a> ProfileReader<'a> {
    pub(super) fn new(received: Timestamp, redactor: Option<&'a mut Redactor>) -> Self {
        let labels = LabelMaker::new(redactor);
        let batch = ProfileBatch::default();
        let (memory, memory_left) = (PROFILE_MEMORY_MIN, PROFILE_MEMORY_MAX);
        ProfileReader { received, labels, inflated: INFLATED_BYTES_MAX, memory, memory_left, left_out: 0, is_sent_again: false, batch }
    }

    /// Values that count since the start of a program, and came without the profile before.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether the sender has sent some of them before, and does not know whether they arrived.
    pub(super) fn is_sent_again(&self) -> bool {
        self.is_sent_again
    }

    /// Labels that had credentials.
    pub(super) fn redacted(&self) -> u64 {
        self.labels.redacted()
    }

    /// The profiles of `push.v1.PushRequest`.
    pub(super) fn push(&mut self, bytes: &[u8], codec: Codec) -> Result<ProfileBatch, UnreadProfile> {
        self.labels.begin(bytes.len());
        for series in push::decode(bytes, codec).map_err(|error| error.to_string())? {
            let hidden = |wanted: &str| series.labels.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
            let name = hidden("__name__");
            let scope = hidden(push::LINK_SCOPE).and_then(LinkScope::from_code).unwrap_or(LinkScope::LocalRoot);
            self.is_sent_again |= hidden(push::SENT_AGAIN).is_some();
            let labels = self.labels.of_sender(&series.labels)?;
            for raw in &series.profiles {
                let bytes = self.unpacked(&raw.bytes)?;
                let profile = self.decode(&bytes, ProfileFormat::Pprof)?;
                let types = profile_type::of_pprof(name, &profile);
                self.add(profile, &types, &labels, scope, self.received)?;
            }
        }
        Ok(std::mem::take(&mut self.batch))
    }

    /// The profiles of a request to `/ingest`.
    pub(super) fn ingest(
        &mut self,
        bytes: &[u8],
        parameters: &IngestParameters,
        boundary: Option<&str>,
    ) -> Result<ProfileBatch, UnreadProfile> {
        let parts = match boundary {
            Some(boundary) => FormParts::of(bytes, boundary)?,
            None => FormParts { profile: Cow::Borrowed(bytes), ..FormParts::default() },
        };
        let bytes = self.unpacked(&parts.profile)?;
        let mut labels = self.labels.of_sender(&parameters.labels)?;
        if !labels.iter().any(|(name, _)| name == SERVICE_LABEL) {
            labels.extend(self.labels.of_sender(&[(SERVICE_LABEL.to_owned(), parameters.service().to_owned())])?);
        }
        let profile = match parameters.format {
            IngestFormat::Jfr => {
                let of_java = self.unpacked(&parts.labels)?;
                ingest::decode_jfr(&bytes, &of_java, self.memory)
            }
            format => ingest::decode(&bytes, format, self.memory),
        };
        let mut profile = profile.map_err(unreadable)?;
        let types = match parameters.format {
            IngestFormat::Pprof => {
                let configs = parts.sample_types.as_deref().map_or_else(|| Ok(Vec::new()), ingest::sample_type_config);
                let configs = configs.map_err(|error| error.to_string())?;
                self.keep_since_previous(&mut profile, &configs, parts.previous.as_deref())?;
                let shown = configs.iter().map(|config| config.display_name.as_str());
                let name = profile_type::name_of_shown(shown.chain(parameters.units().suffix));
                profile_type::of_pprof(name, &profile)
            }
            _ => profile_type::of_ingest(&parameters.units(), &profile),
        };
        self.add(profile, &types, &labels, LinkScope::LocalRoot, parameters.from.unwrap_or(self.received))?;
        Ok(std::mem::take(&mut self.batch))
    }

    /// Leaves of types that count since the start of a program what came after the profile before; nothing of them without it, so that no value
    /// counts twice.
    fn keep_since_previous(
        &mut self,
        profile: &mut Profile,
        configs: &[SampleTypeConfig],
        previous: Option<&[u8]>,
    ) -> Result<(), UnreadProfile> {
        let is_cumulative = |name: &str| configs.iter().any(|config| config.is_cumulative && config.sample_type == name);
        let places: Vec<usize> = (0..profile.types.len()).filter(|place| is_cumulative(&profile.types[*place].name)).collect();
        match previous {
            _ if places.is_empty() => {}
            None => self.left_out += profile.drop_values(&places),
            Some(bytes) => {
                let bytes = self.unpacked(bytes)?;
                profile.keep_since(&self.decode(&bytes, ProfileFormat::Pprof)?, &places);
            }
        }
        Ok(())
    }

    /// A profile that longpole fetched.
    pub(super) fn scraped(&mut self, bytes: &[u8], scraped: &ScrapedProfile) -> Result<ProfileBatch, UnreadProfile> {
        let bytes = self.unpacked(bytes)?;
        let labels = self.labels.of_sender(&scraped.labels)?;
        let mut profile = self.decode(&bytes, ProfileFormat::Pprof)?;
        let types = profile_type::of_pprof(Some(scraped.name), &profile);
        scraped.keep_own_values(&mut profile, &types)?;
        // The setting says whose it is, whatever its samples say.
        let is_set = |name: &Text| scraped.labels.iter().any(|(set, _)| *set == name.as_str() || label_name(name) == set.as_str());
        profile.label_sets.iter_mut().for_each(|set| set.retain(|(name, _)| !is_set(name)));
        self.add(profile, &types, &labels, LinkScope::LocalRoot, self.received)?;
        Ok(std::mem::take(&mut self.batch))
    }

    /// The profiles of OpenTelemetry.
    pub(super) fn otlp(&mut self, bytes: &[u8]) -> Result<ProfileBatch, UnreadProfile> {
        let bytes = self.counted(Cow::Borrowed(bytes));
        let profile = self.decode(&bytes, ProfileFormat::Otlp)?;
        let types = profile_type::of_otlp(&profile);
        self.add(profile, &types, &Labels::new(), LinkScope::Span, self.received)?;
        Ok(std::mem::take(&mut self.batch))
    }

    fn decode(&self, bytes: &[u8], format: ProfileFormat) -> Result<Profile, UnreadProfile> {
        profile_import::decode(bytes, format, self.memory).map_err(unreadable)
    }

    /// A profile without its compression.
    fn unpacked<'b>(&mut self, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, UnreadProfile> {
        let compression = if bytes.starts_with(&GZIP_MAGIC) { Compression::Gzip } else { Compression::Identity };
        match inflate_up_to(bytes, compression, self.inflated) {
            Ok(unpacked) => {
                if compression != Compression::Identity {
                    self.inflated -= unpacked.len();
                }
                Ok(self.counted(unpacked))
            }
            Err(InflateError::TooLarge(_)) => Err(UnreadProfile::TooLarge(format!(
                "the profiles of a request have more than {} MiB without their compression",
                INFLATED_BYTES_MAX >> 20
            ))),
            Err(error) => Err(UnreadProfile::Unreadable(error.to_string())),
        }
    }

    /// A profile of this length may take memory, and its labels may be judged.
    fn counted<'b>(&mut self, bytes: Cow<'b, [u8]>) -> Cow<'b, [u8]> {
        let more = (bytes.len() as u64).saturating_mul(PROFILE_MEMORY_FACTOR).min(self.memory_left);
        self.memory_left -= more;
        self.memory = self.memory.saturating_add(more);
        self.labels.begin(bytes.len());
        bytes
    }

    /// Adds a profile as series with values. `began` is its time if it says none.
    fn add(
        &mut self,
        mut profile: Profile,
        types: &[SeriesType],
        labels: &Labels,
        scope: LinkScope,
        began: Timestamp,
    ) -> Result<(), UnreadProfile> {
        let began = profile.start.filter(|start| start.unix_nanos() > 0).unwrap_or(began);
        let mut batch = ProfileBatch::default();
        let mut place_of: HashMap<(u32, usize), u32> = HashMap::new();
        let mut bytes = 0_u64;
        let samples = added_up(&mut profile, scope);
        for (sample, span) in &samples {
            let (sample, span) = (sample, *span);
            let time = sample.time.or(sample.began).unwrap_or(began).min(LAST_TIME);
            for (place, kind) in types.iter().enumerate() {
                let value = sample.values.get(place).map_or(0, |value| kind.value(*value));
                if value == 0 {
                    continue;
                }
                let series = *place_of.entry((sample.labels, place)).or_insert_with(|| {
                    let series = self.labels.series(&kind.profile_type, labels, profile.labels(sample));
                    // Its texts are those of the profile.
                    bytes += (size_of_val(&series) + size_of_val(&*series.labels) + SERIES_PLACE_BYTES) as u64;
                    batch.series.push(series);
                    u32::try_from(batch.series.len() - 1).unwrap_or(u32::MAX)
                });
                bytes += size_of::<ProfileValue>() as u64;
                if bytes > self.memory {
                    return Err(UnreadProfile::TooLarge(
                        "the profiles of a request have too many values or series for their bytes".to_owned(),
                    ));
                }
                batch.values.push(ProfileValue { series, time, stack: StackId(sample.stack), value, span });
            }
        }
        if self.batch.series.len() + batch.series.len() > SERIES_MAX {
            return Err(UnreadProfile::TooLarge(format!("the profiles of a request have more than {SERIES_MAX} series")));
        }
        (batch.mappings, batch.locations, batch.stacks) = (profile.mappings, profile.locations, profile.stacks);
        self.memory = self.memory.saturating_sub(batch.memory_bytes());
        self.batch.append(batch);
        Ok(())
    }
}

/// The last time of a value: queries end with a time that is too late.
const LAST_TIME: Timestamp = Timestamp(i64::MAX - 1);

/// Samples of a profile with their spans; those of one stack, labels, time and span are one. A few bytes repeat a sample half a million times.
fn added_up(profile: &mut Profile, scope: LinkScope) -> Vec<(ProfileSample, Option<ProfiledSpan>)> {
    let samples = std::mem::take(&mut profile.samples);
    let has_repeated = samples.len() > profile.stacks.len();
    let with_spans = samples.into_iter().map(|sample| (span_of(&sample.span, scope), sample));
    if !has_repeated {
        return with_spans.map(|(span, sample)| (sample, span)).collect();
    }
    let mut place_of: HashMap<_, usize> = HashMap::new();
    let mut sums: Vec<(ProfileSample, Option<ProfiledSpan>)> = Vec::new();
    for (span, sample) in with_spans {
        match place_of.entry((sample.stack, sample.labels, sample.time, sample.began, span)) {
            Entry::Occupied(known) => {
                let sum = &mut sums[*known.get()].0.values;
                sum.resize(sum.len().max(sample.values.len()), 0);
                sum.iter_mut().zip(&sample.values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
            }
            Entry::Vacant(place) => {
                place.insert(sums.len());
                sums.push((sample, span));
            }
        }
    }
    sums
}

/// Series of a request: as many as a generation of the store has room for.
const SERIES_MAX: usize = 1 << 16;

/// Memory of the place of a series while a profile is read.
const SERIES_PLACE_BYTES: usize = 48;

fn unreadable(error: FileError) -> UnreadProfile {
    UnreadProfile::Unreadable(format!("cannot read the profile: {error}"))
}

/// What a sample's labels say of its span. Where a text may be two ids, the hexadecimal one comes first.
fn span_of(label: &SpanLabel, scope: LinkScope) -> Option<ProfiledSpan> {
    let span_id = label.span_ids.first().copied();
    let scope = if span_id.is_some() { scope } else { LinkScope::Trace };
    (span_id.is_some() || label.trace_id.is_some()).then_some(ProfiledSpan { trace_id: label.trace_id, span_id, scope })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use longpole_wire::profile_export::pprof_builder::{Label, LabelValue, PprofBuilder};

    use super::*;

    fn pprof(types: usize, samples: usize) -> Vec<u8> {
        let mut profile = PprofBuilder::default();
        profile.sample_types = vec![("cpu", "nanoseconds"); types];
        let function = profile.function("main", "main.c");
        let location =
            profile.location(longpole_wire::profile_export::pprof_builder::Location { lines: vec![(function, 1)], ..Default::default() });
        (0..samples).for_each(|_| profile.sample(vec![location], vec![1; types], Vec::new()));
        profile.encode()
    }

    fn zipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A push of these profiles, in JSON.
    fn pushed(profiles: &[Vec<u8>]) -> Vec<u8> {
        use base64::Engine;
        let encoded = |bytes: &Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
        let samples: Vec<_> = profiles.iter().map(|bytes| serde_json::json!({ "rawProfile": encoded(bytes) })).collect();
        let labels = serde_json::json!([{ "name": "service_name", "value": "cart" }]);
        serde_json::json!({ "series": [{ "labels": labels, "samples": samples }] }).to_string().into_bytes()
    }

    fn read(profiles: &[Vec<u8>]) -> Result<ProfileBatch, UnreadProfile> {
        ProfileReader::new(Timestamp(7), None).push(&pushed(profiles), Codec::Json)
    }

    #[test]
    fn the_profiles_of_a_push_are_one_batch() {
        let batch = read(&[zipped(&pprof(1, 2)), pprof(1, 3)]).unwrap();
        assert_eq!((batch.series.len(), batch.values.len(), batch.stacks.len()), (2, 2, 2));
        assert_eq!(batch.values.iter().map(|value| value.value).sum::<i64>(), 5, "samples of one stack are one value");
    }

    #[test]
    fn all_profiles_of_a_push_share_one_limit() {
        let half = zipped(&vec![0; INFLATED_BYTES_MAX / 2 + 1]);
        let too_large = |error| matches!(error, UnreadProfile::TooLarge(reason) if reason.contains("64 MiB"));
        // Zeros are no profile, and the first of them says so.
        assert!(matches!(read(std::slice::from_ref(&half)), Err(UnreadProfile::Unreadable(_))));
        let mut reader = ProfileReader::new(Timestamp(7), None);
        assert!(reader.unpacked(&half).is_ok());
        assert!(too_large(reader.unpacked(&half).unwrap_err()));
    }

    #[test]
    fn values_take_no_more_memory_than_their_bytes_allow() {
        // A value has one byte and becomes 72.
        assert_eq!(read(&[pprof(4, 2)]).map(|batch| batch.values.len()), Ok(4));
        // Each sample with a span of its own.
        let mut profile = PprofBuilder::default();
        profile.sample_types = vec![("cpu", "nanoseconds"); 60];
        let function = profile.function("main", "main.c");
        let location =
            profile.location(longpole_wire::profile_export::pprof_builder::Location { lines: vec![(function, 1)], ..Default::default() });
        for span in 1..=60_000 {
            let value = LabelValue::Text(format!("{span:016x}"));
            profile.sample(vec![location], vec![1; 60], vec![Label { key: "span_id", value }]);
        }
        let many = read(&[profile.encode()]);
        assert!(matches!(many, Err(UnreadProfile::TooLarge(_))), "{:?}", many.map(|batch| batch.memory_bytes()));
    }

    #[test]
    fn what_counts_since_the_start_of_a_program_counts_once() {
        let form = |parts: &[(&str, &[u8])]| {
            let part = |(name, bytes): &(&str, &[u8])| {
                let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"p\"\r\n\r\n");
                [head.as_bytes(), bytes, b"\r\n"].concat()
            };
            [parts.iter().flat_map(part).collect::<Vec<u8>>(), b"--x--\r\n".to_vec()].concat()
        };
        let config: (&str, &[u8]) = ("sample_type_config", br#"{"cpu":{"cumulative":true}}"#);
        let (before, now) = (zipped(&pprof(1, 2)), pprof(1, 5));
        let parameters = IngestParameters::parse([("name", "cart"), ("format", "pprof")], None).unwrap();
        let read = |parts: &[(&str, &[u8])]| {
            let mut reader = ProfileReader::new(Timestamp(7), None);
            let batch = reader.ingest(&form(parts), &parameters, Some("x")).unwrap();
            (batch.values.iter().map(|value| value.value).sum::<i64>(), reader.left_out())
        };
        assert_eq!(read(&[("profile", &now), ("prev_profile", &before), config]), (3, 0));
        assert_eq!(read(&[("profile", &now), config]), (0, 5));
        assert_eq!(read(&[("profile", &now), ("prev_profile", &before)]), (5, 0));
    }
}
