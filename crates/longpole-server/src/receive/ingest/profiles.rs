//! Profiles, in any format they come in, become batches of series with stacks.
//!
//! ```text
//! push.v1       series { labels, pprof … }          labels of the series + those of its samples
//! /ingest       name=cart.cpu{env=prod} + profile   service_name="cart", env="prod"
//! OpenTelemetry resource, scope, profile, samples   attributes: service.name becomes service_name
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use longpole_model::profile::{LinkScope, ProfileBatch, ProfileSeries, ProfileType, ProfileValue, ProfiledSpan, SERVICE_LABEL};
use longpole_model::{Attribute, AttributeValue, Attributes, SpanLabel, StackId, Text, Timestamp};
use longpole_wire::FileError;
use longpole_wire::profile_import::{self, Profile, ProfileFormat};
use longpole_wire::pyroscope::ingest::{self, IngestFormat, IngestParameters};
use longpole_wire::pyroscope::profile_type::{self, SeriesType};
use longpole_wire::pyroscope::{Codec, push};
use longpole_wire::redact::Redactor;

use super::super::multipart::FormParts;
use crate::limits::{INFLATED_BYTES_MAX, PROFILE_MEMORY_FACTOR, PROFILE_MEMORY_MIN};
use crate::otlp_request::{Compression, inflate_up_to};

/// The service of profiles that name none, as Pyroscope calls it.
const UNKNOWN_SERVICE: &str = "unspecified";

/// Labels that begin like this are for the way, not for the series: `__name__`, `__session_id__`.
const HIDDEN_LABEL: &str = "__";

/// First bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Labels as their sender gave them.
type Labels = Vec<(Text, Text)>;

/// What is wrong with a request of profiles.
type Refused = String;

/// The profiles of `push.v1.PushRequest`.
pub(super) fn of_push(bytes: &[u8], codec: Codec, received: Timestamp) -> Result<Vec<ProfileBatch>, Refused> {
    let mut batches = Vec::new();
    for series in push::decode(bytes, codec).map_err(|error| error.to_string())? {
        let name = series.labels.iter().find(|(name, _)| name == "__name__").map(|(_, value)| value.as_str());
        let labels = labels_of(&series.labels);
        for raw in &series.profiles {
            let profile = decode(&unpacked(&raw.bytes)?, ProfileFormat::Pprof)?;
            let types = profile_type::of_pprof(name, &profile);
            batches.push(batch_of(profile, &types, &labels, LinkScope::LocalRoot, received));
        }
    }
    Ok(batches)
}

/// The profiles of a request to `/ingest`.
pub(super) fn of_ingest(
    bytes: &[u8],
    parameters: &IngestParameters,
    boundary: Option<&str>,
    received: Timestamp,
) -> Result<Vec<ProfileBatch>, Refused> {
    let parts = match boundary {
        Some(boundary) => FormParts::of(bytes, boundary)?,
        None => FormParts { profile: Cow::Borrowed(bytes), ..FormParts::default() },
    };
    let bytes = unpacked(&parts.profile)?;
    let mut labels = labels_of(&parameters.labels);
    let service = Text::from(parameters.service());
    if !labels.iter().any(|(name, _)| name == SERVICE_LABEL) {
        labels.push((SERVICE_LABEL.into(), service));
    }
    let profile = match parameters.format {
        IngestFormat::Jfr => ingest::decode_jfr(&bytes, &unpacked(&parts.labels)?, memory_for(&bytes)),
        format => ingest::decode(&bytes, format, memory_for(&bytes)),
    };
    let profile = profile.map_err(unreadable)?;
    let types = match parameters.format {
        IngestFormat::Pprof => {
            let configs = parts.sample_types.as_deref().map_or_else(|| Ok(Vec::new()), ingest::sample_type_config);
            let configs = configs.map_err(|error| error.to_string())?;
            let shown = configs.iter().map(|config| config.display_name.as_str());
            let name = profile_type::name_of_shown(shown.chain(parameters.units().suffix));
            profile_type::of_pprof(name, &profile)
        }
        _ => profile_type::of_ingest(&parameters.units(), &profile),
    };
    let began = parameters.from.unwrap_or(received);
    Ok(vec![batch_of(profile, &types, &labels, LinkScope::LocalRoot, began)])
}

/// The profiles of OpenTelemetry.
pub(super) fn of_otlp(bytes: &[u8], received: Timestamp) -> Result<Vec<ProfileBatch>, Refused> {
    let profile = decode(bytes, ProfileFormat::Otlp)?;
    let types = profile_type::of_otlp(&profile);
    Ok(vec![batch_of(profile, &types, &Labels::new(), LinkScope::Span, received)])
}

fn decode(bytes: &[u8], format: ProfileFormat) -> Result<Profile, Refused> {
    profile_import::decode(bytes, format, memory_for(bytes)).map_err(unreadable)
}

fn unreadable(error: FileError) -> Refused {
    format!("cannot read the profile: {error}")
}

/// Memory that decoding a profile may take.
fn memory_for(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).saturating_mul(PROFILE_MEMORY_FACTOR).max(PROFILE_MEMORY_MIN)
}

/// A profile without its compression.
fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Refused> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let packed = bytes::Bytes::copy_from_slice(bytes);
    inflate_up_to(&packed, Compression::Gzip, INFLATED_BYTES_MAX)
        .map(|bytes| Cow::Owned(bytes.into_owned()))
        .map_err(|error| error.to_string())
}

/// The labels of a series: those for the way are left out.
fn labels_of(labels: &[(String, String)]) -> Labels {
    let shown = labels.iter().filter(|(name, value)| !name.starts_with(HIDDEN_LABEL) && !value.is_empty());
    shown.map(|(name, value)| (label_name(name), Text::from(value.as_str()))).collect()
}

/// The name of a label: of a dot in an attribute's name becomes `_`, as Pyroscope and Prometheus write it.
fn label_name(name: &str) -> Text {
    let is_kept = |c: char| c.is_alphanumeric() || c == '_';
    if name.chars().all(is_kept) { Text::from(name) } else { Text::from(name.replace(|c: char| !is_kept(c), "_").as_str()) }
}

/// What a sample's labels say of its span. Where a text may be two ids, the hexadecimal one comes first.
fn span_of(label: &SpanLabel, scope: LinkScope) -> Option<ProfiledSpan> {
    let span_id = label.span_ids.first().copied();
    let scope = if span_id.is_some() { scope } else { LinkScope::Trace };
    (span_id.is_some() || label.trace_id.is_some()).then_some(ProfiledSpan { trace_id: label.trace_id, span_id, scope })
}

/// A profile as series with values. `began` is its time if it says none.
fn batch_of(profile: Profile, types: &[SeriesType], labels: &Labels, scope: LinkScope, began: Timestamp) -> ProfileBatch {
    let began = profile.start.filter(|start| start.unix_nanos() > 0).unwrap_or(began);
    let mut batch = ProfileBatch::default();
    let mut place_of: HashMap<(u32, usize), u32> = HashMap::new();
    for sample in &profile.samples {
        let span = span_of(&sample.span, scope);
        let time = sample.time.unwrap_or(began);
        for (place, kind) in types.iter().enumerate() {
            let value = sample.values.get(place).map_or(0, |value| kind.value(*value));
            if value == 0 {
                continue;
            }
            let series = *place_of.entry((sample.labels, place)).or_insert_with(|| {
                batch.series.push(series_of(&kind.profile_type, labels, profile.labels(sample)));
                u32::try_from(batch.series.len() - 1).unwrap_or(u32::MAX)
            });
            batch.values.push(ProfileValue { series, time, stack: StackId(sample.stack), value, span });
        }
    }
    (batch.mappings, batch.locations, batch.stacks) = (profile.mappings, profile.locations, profile.stacks);
    batch
}

/// A series: what its profile and its sample say, each label once.
fn series_of(profile_type: &ProfileType, of_profile: &Labels, of_sample: &[(Text, Text)]) -> ProfileSeries {
    let mut labels: Labels = of_sample.iter().map(|(name, value)| (label_name(name), value.clone())).collect();
    labels.retain(|(name, _)| !name.starts_with(HIDDEN_LABEL));
    for (name, value) in of_profile {
        if !labels.iter().any(|(known, _)| known == name) {
            labels.push((name.clone(), value.clone()));
        }
    }
    if !labels.iter().any(|(name, _)| name == SERVICE_LABEL) {
        labels.push((SERVICE_LABEL.into(), UNKNOWN_SERVICE.into()));
    }
    labels.sort();
    labels.dedup_by(|a, b| a.0 == b.0);
    ProfileSeries { profile_type: profile_type.clone(), labels }
}

/// Takes credentials out of labels; returns how many there were.
pub(super) fn redact(batch: &mut ProfileBatch, redactor: &mut Redactor) -> u64 {
    let mut found = 0;
    for series in &mut batch.series {
        let text = |value: &Text| AttributeValue::Str(value.clone());
        let mut attributes =
            Attributes(series.labels.iter().map(|(name, value)| Attribute { key: name.clone(), value: text(value) }).collect());
        let credentials = redactor.attributes(&mut attributes);
        if credentials == 0 {
            continue;
        }
        found += credentials;
        let words = |value: AttributeValue| match value {
            AttributeValue::Str(text) => text,
            _ => Text::new(),
        };
        series.labels = attributes.0.into_iter().map(|attribute| (attribute.key, words(attribute.value))).collect();
    }
    found
}
