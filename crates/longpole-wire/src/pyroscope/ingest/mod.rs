//! `POST /ingest`: a profile in any format of Pyroscope's SDKs, and what its address says of it.
//!
//! ```text
//! /ingest?name=shop.cart.cpu{env=prod,region=eu}&from=1700000000&until=1700000010&format=folded&sampleRate=100&spyName=rbspy&units=samples
//! ```
//!
//! pprof and JFR mostly come as `multipart/form-data`: the part `profile` (`jfr`) has the bytes, `sample_type_config` says what the values of pprof are, and
//! `labels` has those of a recording of Java.
//! Splitting the parts is the server's work.

use std::borrow::Cow;

use longpole_model::time::Timestamp;
use serde::de::{Error as _, MapAccess};

use super::profile_type::{IngestUnits, split_app_name};
use super::{SyntaxError, time};
use crate::error::{DecodeError, FileError};
use crate::json::{self, Context, Json, message};
use crate::limits::{APP_NAME_BYTES_MAX, LABELS_MAX, Limits, PROFILE_TYPES_MAX};
use crate::profile_import::tree::TreeKind;
use crate::profile_import::{self, Profile, ProfileFormat};

/// How the bytes of a profile are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IngestFormat {
    /// pprof, most often compressed; alone, or the part `profile` of a form.
    Pprof,
    /// A stack and a number on each line: `main;work 12`. What a request has that says nothing.
    #[default]
    Folded,
    /// A stack on each line, once for each sample.
    Lines,
    /// A tree of pieces of paths.
    Trie,
    /// A tree of functions.
    Tree,
    /// speedscope's JSON.
    Speedscope,
    /// A recording of Java's flight recorder.
    Jfr,
}

impl IngestFormat {
    /// Every format.
    pub const ALL: [IngestFormat; 7] = [
        IngestFormat::Pprof,
        IngestFormat::Folded,
        IngestFormat::Lines,
        IngestFormat::Trie,
        IngestFormat::Tree,
        IngestFormat::Speedscope,
        IngestFormat::Jfr,
    ];

    /// The format that a request names: by the parameter `format`, else by its content type.
    ///
    /// # Errors
    ///
    /// The parameter names none of them.
    pub fn of_request(format: Option<&str>, content_type: Option<&str>) -> Result<IngestFormat, SyntaxError> {
        let format = format.unwrap_or_default();
        Ok(match format {
            "pprof" => IngestFormat::Pprof,
            "folded" | "groups" | "collapsed" => IngestFormat::Folded,
            "lines" => IngestFormat::Lines,
            "trie" => IngestFormat::Trie,
            "tree" => IngestFormat::Tree,
            "speedscope" => IngestFormat::Speedscope,
            "jfr" => IngestFormat::Jfr,
            "" => match content_type.unwrap_or_default() {
                "binary/octet-stream+trie" => IngestFormat::Trie,
                "binary/octet-stream+tree" => IngestFormat::Tree,
                form if form.starts_with("multipart/form-data") => IngestFormat::Pprof,
                _ => IngestFormat::Folded,
            },
            _ => {
                let problem = "expected pprof, folded, groups, lines, trie, tree, speedscope or jfr";
                return Err(SyntaxError::new(problem, "parameter format", 0, format));
            }
        })
    }
}

/// What the address of a request says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IngestParameters {
    /// Name of the application, as it came: `shop.cart.cpu`.
    pub app: String,
    /// Labels behind it, in their order; each name once.
    pub labels: Vec<(String, String)>,
    /// When the profile began.
    pub from: Option<Timestamp>,
    /// When it ended.
    pub until: Option<Timestamp>,
    /// How it is written.
    pub format: IngestFormat,
    /// Samples a second; 0 if the request says nothing.
    pub sample_rate: u32,
    /// What the numbers count: `samples`, `objects`, `bytes`.
    pub units: Option<String>,
    /// How numbers of several profiles become one: `sum`, `average`.
    pub aggregation: Option<String>,
    /// The profiler: `pyspy`.
    pub spy: Option<String>,
}

impl IngestParameters {
    /// Reads decoded pairs of the query of an address. Names that nobody knows are ignored; of one that comes twice the last counts. A time or a rate
    /// without a value counts as not there.
    ///
    /// # Errors
    ///
    /// There is no name of an application, or a name, a time, a number or the format is not well formed.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        content_type: Option<&str>,
    ) -> Result<IngestParameters, SyntaxError> {
        let (mut parameters, mut name, mut format) = (IngestParameters::default(), None, None);
        for (key, value) in pairs {
            let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
            match key {
                "name" => name = Some(value),
                "from" if !value.is_empty() => parameters.from = Some(time::absolute(value)?),
                "until" if !value.is_empty() => parameters.until = Some(time::absolute(value)?),
                "format" => format = Some(value),
                "sampleRate" if !value.is_empty() => {
                    let rate = value.parse::<u32>();
                    let refused = |_| SyntaxError::new("expected a number of samples a second", "parameter sampleRate", 0, value);
                    parameters.sample_rate = rate.map_err(refused)?;
                }
                "units" => parameters.units = text(),
                "aggregationType" => parameters.aggregation = text(),
                "spyName" => parameters.spy = text(),
                _ => {}
            }
        }
        let name = name.ok_or_else(|| SyntaxError::new("the parameter name is missing", "address", 0, ""))?;
        (parameters.app, parameters.labels) = app_name(name)?;
        parameters.format = IngestFormat::of_request(format, content_type)?;
        Ok(parameters)
    }

    /// The name of the application without the type behind its last point: the service.
    pub fn service(&self) -> &str {
        split_app_name(&self.app).0
    }

    /// What of this decides the types of a profile.
    pub fn units(&self) -> IngestUnits<'_> {
        let is_average = self.aggregation.as_deref().is_some_and(|aggregation| matches!(aggregation, "average" | "avg"));
        IngestUnits { suffix: split_app_name(&self.app).1, units: self.units.as_deref(), sample_rate: self.sample_rate, is_average }
    }
}

/// The name of an application and the labels behind it: `cart.cpu{env=prod,region=eu}`. Values are not between quotation marks.
///
/// # Errors
///
/// The name is empty, a brace or an equals sign is missing, or there is too much of it.
pub fn app_name(text: &str) -> Result<(String, Vec<(String, String)>), SyntaxError> {
    let refused = |problem, offset| SyntaxError::new(problem, "name of an application", offset, text);
    if text.len() > APP_NAME_BYTES_MAX {
        return Err(refused("expected 65,536 bytes at most", APP_NAME_BYTES_MAX));
    }
    let (app, inner) = match text.split_once('{') {
        None => (text, None),
        Some((app, rest)) => match rest.trim_end().strip_suffix('}') {
            Some(inner) => (app, Some(inner)),
            None => return Err(refused("expected }", text.len())),
        },
    };
    if app.trim().is_empty() {
        return Err(refused("expected a name", 0));
    }
    let (mut labels, mut offset): (Vec<(String, String)>, _) = (Vec::new(), app.len() + 1);
    for pair in inner.into_iter().flat_map(|inner| inner.split(',')) {
        let at = offset;
        offset += pair.len() + 1;
        if pair.trim().is_empty() {
            continue;
        }
        let (name, value) = pair.split_once('=').ok_or_else(|| refused("expected a label, as in env=prod", at))?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return Err(refused("expected the name of a label", at));
        }
        match labels.iter().position(|(known, _)| known == name) {
            Some(place) => value.clone_into(&mut labels[place].1),
            None if labels.len() < LABELS_MAX => labels.push((name.to_owned(), value.to_owned())),
            None => return Err(refused("expected 64 labels at most", at)),
        }
    }
    Ok((app.trim().to_owned(), labels))
}

/// Decodes the bytes of a profile, unpacked. What is kept of it may take no more than these bytes of memory; JSON and the tables of a recording of
/// Java are bounded apart from that.
///
/// # Errors
///
/// It is not in the format, breaks off, or takes too much.
pub fn decode(bytes: &[u8], format: IngestFormat, memory_bytes_max: u64) -> Result<Profile, FileError> {
    match format {
        IngestFormat::Pprof => profile_import::decode(bytes, ProfileFormat::Pprof, memory_bytes_max),
        IngestFormat::Folded => profile_import::decode(bytes, ProfileFormat::Folded, memory_bytes_max),
        IngestFormat::Lines => profile_import::folded::decode_lines(bytes, memory_bytes_max),
        IngestFormat::Trie => profile_import::tree::decode(bytes, TreeKind::Trie, memory_bytes_max),
        IngestFormat::Tree => profile_import::tree::decode(bytes, TreeKind::Tree, memory_bytes_max),
        IngestFormat::Speedscope => profile_import::speedscope::decode(bytes, memory_bytes_max),
        IngestFormat::Jfr => decode_jfr(bytes, b"", memory_bytes_max),
    }
}

/// Decodes the parts `jfr` and `labels` of a form, both unpacked; `labels` is empty if the form does not have it.
///
/// # Errors
///
/// One of them is not in its format, breaks off, or takes too much.
pub fn decode_jfr(bytes: &[u8], labels: &[u8], memory_bytes_max: u64) -> Result<Profile, FileError> {
    profile_import::jfr::decode(bytes, labels, memory_bytes_max)
}

/// What `sample_type_config` says of one type of pprof.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleTypeConfig {
    /// The type: `contentions`.
    pub sample_type: String,
    /// What it counts: `lock_samples`.
    pub units: String,
    /// The name that Pyroscope's page shows: `mutex_count`. It decides the name of the series, because Go's profiles of locks and of other
    /// blocking calls have the same types: [`name_of_shown`](super::profile_type::name_of_shown).
    pub display_name: String,
    /// `sum`, `average`; empty if it says nothing.
    pub aggregation: String,
    /// Whether the values count since the start of the program.
    pub is_cumulative: bool,
    /// Whether the values are samples, of `sampleRate` a second.
    pub is_sampled: bool,
}

/// Reads the part `sample_type_config`: an object with a member for each type.
///
/// # Errors
///
/// It is not well formed, or has more types than a profile may have.
pub fn sample_type_config(bytes: &[u8]) -> Result<Vec<SampleTypeConfig>, DecodeError> {
    json::parse::<Configs>(bytes, &Limits::default()).map(|configs| configs.0)
}

#[derive(Default)]
struct Configs(Vec<SampleTypeConfig>);

message!(ConfigMessage<'a>, Value, {
    units: Cow<'a, str> = "units",
    display_name: Cow<'a, str> = "display-name" | "display_name",
    aggregation: Cow<'a, str> = "aggregation",
    cumulative: bool = "cumulative",
    sampled: bool = "sampled",
});

impl<'de> Json<'de> for Configs {
    const EXPECTED: &'static str = "an object";

    fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut configs: Vec<SampleTypeConfig> = Vec::new();
        while let Some(name) = json::name(&mut object, context)? {
            let said: ConfigMessage<'_> = json::member(&mut object, context)?;
            if configs.len() >= PROFILE_TYPES_MAX as usize {
                return Err(A::Error::custom(format_args!("more than {PROFILE_TYPES_MAX} types of values")));
            }
            configs.push(SampleTypeConfig {
                sample_type: name.into_owned(),
                units: said.units.into_owned(),
                display_name: said.display_name.into_owned(),
                aggregation: said.aggregation.into_owned(),
                is_cumulative: said.cumulative,
                is_sampled: said.sampled,
            });
        }
        Ok(Configs(configs))
    }
}

#[cfg(test)]
mod tests;
