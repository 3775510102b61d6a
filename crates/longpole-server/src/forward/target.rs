//! Where copies of spans go, and how people type it: what Pulumi's two flags take, and relative paths besides.
//!
//! | flag | value | target |
//! |---|---|---|
//! | `--otel-traces` | `file:///abs.json` `file://~/t.json` `file://./t.json` `file:t.json` | OTLP JSON, one request a line |
//! | | `grpc://host:port[?name=value…]`, `grpcs://…` | OTLP/gRPC, plain or TLS; the query becomes metadata |
//! | | `http://host[:port][/path][?name=value…]`, `https://…` | OTLP/HTTP; no path means `/v1/traces`; the query becomes headers |
//! | `--tracing` | `file:./up.trace` `file:///abs/up.trace` | an AppDash file |
//! | | `tcp://host:port` | an AppDash collector |
//! | | `http://host:9411/api/v1/spans`, `https://…` | Zipkin; v1 where the path says so, else v2 |

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use percent_encoding::percent_decode_str;

use crate::limits::FORWARD_TIMEOUT;
use crate::otlp_request::Signal;

/// How a target is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardProtocol {
    /// OTLP, `grpc`.
    Grpc,
    /// OTLP, `http/protobuf` and `http/json`: a request goes on in the encoding in which it came, and such an endpoint
    /// reads both.
    Http,
    /// OTLP in the protocol in which the request came, as the program would have sent it; gRPC at port 4317, which is
    /// gRPC's own. What came in no protocol of OTLP goes as HTTP elsewhere.
    AsReceived,
    /// Zipkin over HTTP: v1 JSON where the path says `api/v1/spans`, else v2 JSON.
    Zipkin,
    /// AppDash over TCP.
    AppDash,
    /// A file of OTLP JSON, one request a line.
    OtlpFile,
    /// An AppDash file, as `pulumi --tracing file:` writes it: at the end.
    AppDashFile,
}

/// A target, for one signal.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardTarget {
    /// What it gets.
    pub signal: Signal,
    /// For HTTP the whole URL, `https://collector:4318/v1/traces`; for gRPC scheme and authority, a path is ignored; for
    /// AppDash `tcp://host:port`; for files the path.
    pub url: String,
    /// How it is spoken to.
    pub protocol: ForwardProtocol,
    /// Headers to add, values as they are sent (`OTEL_EXPORTER_OTLP_HEADERS` is percent-encoded; this is not).
    pub headers: Vec<(String, String)>,
    /// How long one attempt may take (`OTEL_EXPORTER_OTLP_TIMEOUT`; 10 s where not set).
    pub timeout: Duration,
    /// For `https`.
    pub tls: ForwardTls,
}

impl ForwardTarget {
    /// A target for spans, without headers and certificates.
    pub fn traces(protocol: ForwardProtocol, url: impl Into<String>) -> Self {
        ForwardTarget {
            signal: Signal::Traces,
            url: url.into(),
            protocol,
            headers: Vec::new(),
            timeout: FORWARD_TIMEOUT,
            tls: ForwardTls::default(),
        }
    }

    /// Scheme, host and port, for people: `http://collector:4318`. User, path and query are left out, for they may hold credentials.
    /// Empty for a file.
    pub fn origin(&self) -> String {
        let Ok(uri) = self.url.parse::<Uri>() else { return String::new() };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return String::new() };
        let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}", authority.host())
    }
}

/// What the user said about certificates; all PEM.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ForwardTls {
    /// `OTEL_EXPORTER_OTLP_CERTIFICATE`: who may have signed the endpoint's certificate. Without it, whom the system trusts.
    pub certificate: Option<Vec<u8>>,
    /// `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE`.
    pub client_certificate: Option<Vec<u8>>,
    /// `OTEL_EXPORTER_OTLP_CLIENT_KEY`.
    pub client_key: Option<Vec<u8>>,
}

// Headers hold keys of APIs and the TLS part a private key: neither is ever printed.
impl fmt::Debug for ForwardTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ForwardTarget")
            .field("signal", &self.signal)
            .field("protocol", &self.protocol)
            .field("header_names", &names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ForwardTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardTls").finish_non_exhaustive()
    }
}

/// Why a text is no target; it completes "--otel-traces URL: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing before a colon, or something other than what the flag takes.
    #[error("unknown scheme {scheme:?}: expected {expected}")]
    Scheme {
        /// What stands before the colon.
        scheme: String,
        /// What may.
        expected: &'static str,
    },
    /// Not the address of a host.
    #[error("not a url: expected {expected}")]
    Url {
        /// What would be one.
        expected: &'static str,
    },
    /// No path, or one that is not known.
    #[error("{reason}: expected a path such as file:./{example}")]
    Path {
        /// What is wrong with it.
        reason: &'static str,
        /// A name that would be good.
        example: &'static str,
    },
}

/// What relative paths are relative to.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    /// The current directory.
    pub current: &'a Path,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

/// Reads a value of `--otel-traces`.
pub fn otel_traces(text: &str, folders: Folders<'_>) -> Result<ForwardTarget, TargetError> {
    const EXPECTED: &str = "file:, grpc://, grpcs://, http:// or https://";
    let (scheme, rest) = scheme_of(text);
    let (protocol, scheme) = match scheme.as_str() {
        "file" => return Ok(ForwardTarget::traces(ForwardProtocol::OtlpFile, path(rest, folders, "traces.json")?)),
        "grpc" => (ForwardProtocol::Grpc, "http"),
        "grpcs" => (ForwardProtocol::Grpc, "https"),
        "http" => (ForwardProtocol::Http, "http"),
        "https" => (ForwardProtocol::Http, "https"),
        _ => return Err(TargetError::Scheme { scheme, expected: EXPECTED }),
    };
    let Address { authority, path, query } = address(rest, "grpc://host:4317 or http://host:4318")?;
    let url = match protocol {
        ForwardProtocol::Grpc => format!("{scheme}://{authority}"),
        _ if path == "/" => format!("{scheme}://{authority}/v1/traces"),
        _ => format!("{scheme}://{authority}{path}"),
    };
    let headers = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        (plain(name), plain(value))
    });
    Ok(ForwardTarget { headers: headers.collect(), ..ForwardTarget::traces(protocol, url) })
}

/// Reads a value of `--tracing`.
pub fn tracing(text: &str, folders: Folders<'_>) -> Result<ForwardTarget, TargetError> {
    const EXPECTED: &str = "file:, tcp://, http:// or https://";
    let (scheme, rest) = scheme_of(text);
    match scheme.as_str() {
        "file" => Ok(ForwardTarget::traces(ForwardProtocol::AppDashFile, path(rest, folders, "up.trace")?)),
        "tcp" => {
            const ADDRESS: &str = "tcp://host:port";
            let Address { authority, .. } = address(rest, ADDRESS)?;
            // There is no port that AppDash could be guessed at.
            if authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()).is_none() {
                return Err(TargetError::Url { expected: ADDRESS });
            }
            Ok(ForwardTarget::traces(ForwardProtocol::AppDash, format!("tcp://{authority}")))
        }
        "http" | "https" => {
            let Address { authority, path, query } = address(rest, "http://host:9411/api/v1/spans")?;
            let path = if path == "/" { "/api/v2/spans" } else { path };
            let query = if query.is_empty() { String::new() } else { format!("?{query}") };
            Ok(ForwardTarget::traces(ForwardProtocol::Zipkin, format!("{scheme}://{authority}{path}{query}")))
        }
        _ => Err(TargetError::Scheme { scheme, expected: EXPECTED }),
    }
}

fn scheme_of(text: &str) -> (String, &str) {
    let (scheme, rest) = text.trim().split_once(':').unwrap_or(("", text));
    (scheme.to_ascii_lowercase(), rest)
}

struct Address<'a> {
    authority: &'a str,
    path: &'a str,
    query: &'a str,
}

fn address<'a>(rest: &'a str, expected: &'static str) -> Result<Address<'a>, TargetError> {
    let wrong = || TargetError::Url { expected };
    let rest = rest.strip_prefix("//").ok_or_else(wrong)?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
    // The client parses the same text later, so this is the place to report an error.
    let uri: Uri = format!("http://{authority}{path}").parse().map_err(|_| wrong())?;
    // A port above 65535 is part of the authority and not a port: the client would connect to another.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let says_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
    if uri.host().is_none_or(str::is_empty) || (says_port && uri.port_u16().is_none()) {
        return Err(wrong());
    }
    Ok(Address { authority, path, query })
}

/// The path of `file:…`, absolute. A word between `//` and `/` is no host here, but a part of the path: `file://./up.trace` is
/// what people type for a file beside them.
fn path(rest: &str, folders: Folders<'_>, example: &'static str) -> Result<String, TargetError> {
    let wrong = |reason| TargetError::Path { reason, example };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let rest = rest.strip_prefix("localhost/").map_or(rest.to_owned(), |path| format!("/{path}"));
    let decoded = percent_decode_str(&rest).decode_utf8_lossy().into_owned();
    let path: PathBuf = match decoded.strip_prefix("~/") {
        Some(below_home) => folders.home.ok_or_else(|| wrong("the home directory is unknown"))?.join(below_home),
        None => folders.current.join(&decoded),
    };
    if decoded.is_empty() || decoded.ends_with('/') || path.file_name().is_none() {
        return Err(wrong("the file name is missing"));
    }
    path.into_os_string().into_string().map_err(|_| wrong("the path is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> Folders<'static> {
        Folders { current: Path::new("/work"), home: None }
    }

    #[test]
    fn an_origin_has_no_credentials() {
        let origin = |url: &str| ForwardTarget::traces(ForwardProtocol::Http, url).origin();
        assert_eq!(origin("https://me:secret@c.example:4318/v1/traces?key=secret"), "https://c.example:4318");
        assert_eq!(origin("http://[::1]:4317"), "http://[::1]:4317");
        assert_eq!(origin("http://localhost/key/v1/traces"), "http://localhost");
        assert_eq!(origin("/tmp/traces.json"), "");
    }

    #[test]
    fn otel_traces_takes_what_pulumi_takes() {
        let check = |text: &str, protocol, url: &str, headers: &[(&str, &str)]| {
            let target = otel_traces(text, folders()).unwrap();
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert!(
                target == ForwardTarget { headers, ..ForwardTarget::traces(protocol, url) },
                "{text}: {} {:?}",
                target.url,
                target.headers
            );
        };
        use ForwardProtocol::{Grpc, Http, OtlpFile};
        check("file:///tmp/t.json", OtlpFile, "/tmp/t.json", &[]);
        check("file://./t.json", OtlpFile, "/work/./t.json", &[]);
        check("file://sub/t.json", OtlpFile, "/work/sub/t.json", &[]);
        check("file:a%20b.json", OtlpFile, "/work/a b.json", &[]);
        check("file://localhost/t.json", OtlpFile, "/t.json", &[]);
        check("grpc://c:4317", Grpc, "http://c:4317", &[]);
        check("GRPCS://c:4317?x-key=a%3Db&y=c+d", Grpc, "https://c:4317", &[("x-key", "a=b"), ("y", "c d")]);
        check("http://c:4318", Http, "http://c:4318/v1/traces", &[]);
        check("https://c/in?api-key=k", Http, "https://c/in", &[("api-key", "k")]);
        check("http://[::1]:9/", Http, "http://[::1]:9/v1/traces", &[]);
        let home = otel_traces("file://~/t.json", Folders { home: Some(Path::new("/home/me")), ..folders() }).unwrap();
        assert_eq!(home.url, "/home/me/t.json");
    }

    #[test]
    fn tracing_takes_what_pulumi_takes() {
        let check = |text: &str, protocol, url: &str| {
            let target = tracing(text, folders()).unwrap();
            assert!(target == ForwardTarget::traces(protocol, url), "{text}: {}", target.url);
        };
        use ForwardProtocol::{AppDash, AppDashFile, Zipkin};
        check("file:./up.trace", AppDashFile, "/work/./up.trace");
        check("file:///tmp/up.trace", AppDashFile, "/tmp/up.trace");
        check("tcp://127.0.0.1:7701", AppDash, "tcp://127.0.0.1:7701");
        check("http://z:9411/api/v1/spans", Zipkin, "http://z:9411/api/v1/spans");
        check("https://z/api/v2/spans?k=1", Zipkin, "https://z/api/v2/spans?k=1");
        check("http://z:9411", Zipkin, "http://z:9411/api/v2/spans");
    }

    #[test]
    fn what_is_no_target_says_what_would_be_one() {
        let check = |result: Result<ForwardTarget, TargetError>, message: &str| assert_eq!(result.unwrap_err().to_string(), message);
        let schemes = "expected file:, grpc://, grpcs://, http:// or https://";
        check(otel_traces("ftp://c", folders()), &format!("unknown scheme \"ftp\": {schemes}"));
        check(otel_traces("localhost", folders()), &format!("unknown scheme \"\": {schemes}"));
        check(otel_traces("", folders()), &format!("unknown scheme \"\": {schemes}"));
        check(otel_traces("grpc:c", folders()), "not a url: expected grpc://host:4317 or http://host:4318");
        check(otel_traces("http://", folders()), "not a url: expected grpc://host:4317 or http://host:4318");
        check(otel_traces("http://a b", folders()), "not a url: expected grpc://host:4317 or http://host:4318");
        check(otel_traces("http://c:99999", folders()), "not a url: expected grpc://host:4317 or http://host:4318");
        check(tracing("https://[::1]:65536/api", folders()), "not a url: expected http://host:9411/api/v1/spans");
        check(otel_traces("file:", folders()), "the file name is missing: expected a path such as file:./traces.json");
        check(otel_traces("file:///", folders()), "the file name is missing: expected a path such as file:./traces.json");
        check(otel_traces("file://~/t", folders()), "the home directory is unknown: expected a path such as file:./traces.json");
        check(tracing("tcp://host", folders()), "not a url: expected tcp://host:port");
        check(tracing("grpc://c:1", folders()), "unknown scheme \"grpc\": expected file:, tcp://, http:// or https://");
    }
}
