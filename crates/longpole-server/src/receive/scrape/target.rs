//! A process whose profiles longpole fetches, as a setting names it.
//!
//! ```text
//! cart=http://localhost:6060                              /debug/pprof/profile, /debug/pprof/heap, …
//! cart{env=prod}=https://10.0.0.7:6060/internal/pprof     labels, and another place: /internal/pprof/profile, …
//! ```

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use longpole_model::profile::SERVICE_LABEL;
use longpole_wire::pyroscope::ingest::app_name;
use percent_encoding::percent_decode_str;

/// Where Go's `net/http/pprof` puts profiles.
const USUAL_PATH: &str = "/debug/pprof";

/// What stands between the user and the host of an address.
const USER_END: char = '@';

/// A process whose profiles are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrapeTarget {
    /// `service_name` and what the setting adds.
    pub(super) labels: Vec<(String, String)>,
    /// `http` or `https`.
    scheme: String,
    /// Host and port, without the user.
    host: String,
    path: String,
    /// What the user of the address becomes.
    pub(super) authorization: Option<HeaderValue>,
}

/// Why a text names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAScrapeTarget(String);

impl ScrapeTarget {
    /// The service that its profiles are of.
    pub fn service(&self) -> &str {
        self.labels.first().map_or("", |(_, service)| service)
    }

    /// Its host and port.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is reached by TLS.
    pub(super) fn is_https(&self) -> bool {
        self.scheme == "https"
    }

    /// The address of one of its profiles, for people: without the user.
    pub(super) fn address(&self, name: &str) -> String {
        format!("{}://{}{}/{name}", self.scheme, self.host, self.path)
    }

    /// The address of one of its profiles.
    pub(super) fn uri(&self, name: &str, seconds: Option<u64>) -> Result<Uri, http::Error> {
        let query = seconds.map_or_else(String::new, |seconds| format!("?seconds={seconds}"));
        let path = format!("{}/{name}{query}", self.path);
        Uri::builder().scheme(self.scheme.as_str()).authority(self.host.as_str()).path_and_query(path).build()
    }
}

impl fmt::Display for ScrapeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}://{}{}", self.service(), self.scheme, self.host, self.path)
    }
}

impl FromStr for ScrapeTarget {
    type Err = NotAScrapeTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |why: String| NotAScrapeTarget(why);
        // Labels have equals signs of their own.
        let name_end = text.find(['=', '{']).and_then(|at| match text[at..].starts_with('{') {
            true => text.find('}').map(|end| end + 1),
            false => Some(at),
        });
        // What a message shows of the address: a password may have any characters.
        let shown = |address: &str| match address.rsplit_once(USER_END) {
            Some((_, rest)) => format!("[redacted]@{rest}"),
            None => address.to_owned(),
        };
        let split = name_end.map(|end| text.split_at(end)).and_then(|(name, rest)| Some((name, rest.strip_prefix('=')?)));
        let (name, address) = split.ok_or_else(|| refused("expected SERVICE=URL, such as cart=http://localhost:6060".to_owned()))?;
        let (service, labels) = app_name(name).map_err(|error| refused(error.to_string()))?;
        let uri: Uri = address.parse().map_err(|error| refused(format!("{}: {error}", shown(address))))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refused(format!("{}: expected an address of http or https", shown(address))));
        };
        if uri.query().is_some() {
            return Err(refused(format!("{}: expected an address without a query", shown(address))));
        }
        let (user, host) = authority.as_str().rsplit_once(USER_END).map_or((None, authority.as_str()), |(user, host)| (Some(user), host));
        // `user:pass/word@host`: the host would be the user.
        if address.matches(USER_END).count() > usize::from(user.is_some())
            || (authority.port_u16().is_none() && host.rsplit(']').next().is_some_and(|rest| rest.contains(':')))
        {
            return Err(refused(format!("{}: expected a host; write / # ? @ : of a password as %2F %23 %3F %40 %3A", shown(address))));
        }
        let authorization = user.map(|user| {
            let basic = format!("Basic {}", STANDARD.encode(percent_decode_str(user).collect::<Vec<u8>>()));
            HeaderValue::from_str(&basic).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let path = uri.path().trim_end_matches('/');
        Ok(ScrapeTarget {
            labels: [(SERVICE_LABEL.to_owned(), service)].into_iter().chain(labels).collect(),
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            path: if path.is_empty() { USUAL_PATH.to_owned() } else { path.to_owned() },
            authorization: authorization.transpose().map_err(|error| refused(error.to_string()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<ScrapeTarget, String> {
        text.parse().map_err(|error: NotAScrapeTarget| error.to_string())
    }

    #[test]
    fn a_target_is_a_service_and_an_address() {
        let cart = target("cart=http://localhost:6060").unwrap();
        assert_eq!(cart.to_string(), "cart at http://localhost:6060/debug/pprof");
        assert_eq!(cart.uri("profile", Some(14)).unwrap(), "http://localhost:6060/debug/pprof/profile?seconds=14");
        let other = target("cart{env=prod,zone=b}=https://u:p%40ss@10.0.0.7/internal/pprof/").unwrap();
        assert_eq!(other.to_string(), "cart at https://10.0.0.7/internal/pprof");
        assert_eq!(other.labels[1..], [("env".to_owned(), "prod".to_owned()), ("zone".to_owned(), "b".to_owned())]);
        assert_eq!(other.authorization.as_ref().unwrap().to_str().unwrap(), format!("Basic {}", STANDARD.encode("u:p@ss")));
        assert!(!format!("{other:?}").contains(&STANDARD.encode("u:p@ss")));
    }

    #[test]
    fn what_is_no_target_is_refused_with_the_reason() {
        for (text, reason) in [
            ("http://localhost:6060", "such as cart="),
            ("cart", "such as cart="),
            ("cart{env=prod=http://x", "such as cart="),
            ("=http://x", "expected a name"),
            ("cart{env}=http://x", "as in env=prod"),
            ("cart=localhost:6060", "http or https"),
            ("cart=ftp://x", "http or https"),
            ("cart=http://x/?debug=1", "without a query"),
            ("cart=http://user:s3c/ret@host:1", "of a password as %2F"),
            ("cart=http://user:s3cret#x@host", "of a password as %2F"),
        ] {
            let error = target(text).unwrap_err();
            assert!(error.contains(reason) && !error.contains("s3c"), "{text}: {error}");
        }
    }
}
