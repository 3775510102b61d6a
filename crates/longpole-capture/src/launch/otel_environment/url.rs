//! Addresses of OTLP exporters.

/// An address as the OTLP exporter specification allows it.
pub(super) struct Url {
    scheme: &'static str,
    pub(super) has_scheme: bool,
    authority: String,
    /// With the leading slash.
    path: String,
    /// With the `?`, or empty.
    query: String,
}

impl Url {
    /// `insecure` decides for gRPC's `host:port`, which has no scheme.
    pub(super) fn parse(text: &str, insecure: bool) -> Option<Url> {
        let (scheme, has_scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", true, rest),
            Some(_) => return None,
            None => {
                let (_, port) = text.rsplit_once(':')?;
                port.parse::<u16>().ok()?;
                (if insecure { "http" } else { "https" }, false, text)
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').map_or((rest, String::new()), |(rest, query)| (rest, format!("?{query}")));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || host.starts_with(':') || !is_clean(authority) || !is_clean(path) || !is_clean(&query) {
            return None;
        }
        // A port that is none would be left out by who connects, and the headers would go to whoever listens on port 80.
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.is_empty() && !port.ends_with(']'));
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return None;
        }
        Some(Url { scheme, has_scheme, authority: authority.to_owned(), path: format!("/{path}"), query })
    }

    /// The address of `relative` below this one.
    pub(super) fn join(self, relative: &str) -> Url {
        let slash = if self.path.ends_with('/') { "" } else { "/" };
        Url { path: format!("{}{slash}{relative}", self.path), ..self }
    }

    pub(super) fn http(&self) -> String {
        format!("{}://{}{}{}", self.scheme, self.authority, self.path, self.query)
    }

    pub(super) fn grpc(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Without a user name or password.
    pub(super) fn host(&self) -> String {
        self.authority.rsplit_once('@').map_or(self.authority.as_str(), |(_, host)| host).to_owned()
    }
}
