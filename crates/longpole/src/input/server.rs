//! Traces on a server: `longpole serve`, or a Jaeger.
//!
//! A trace is named by the address of its page, as a browser shows it, or of its data: `http://host:16686/trace/4f1c…`,
//! `http://host:16686/r/4f1c…`, `http://host:16686/api/traces/4f1c…`.

use anyhow::Result;
use longpole_model::SpanBatch;
use longpole_recording::import::{self, Contents};
use longpole_server::query_client::{self, ServerAnswer};
use longpole_store::RecordingName;
use longpole_wire::{DecodeError, Limits, jaeger, otlp};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::env_vars;
use crate::failure::{Failure, Kind};

/// A server by its address, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server(String);

/// What became of profiles that were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PushOutcome {
    /// The server keeps them.
    Taken,
    /// It never will, and why.
    Refused(String),
    /// It does not now, and why.
    Away(String),
}

/// What stands before the id of a trace in an address.
const BEFORE_ID: [&str; 4] = ["/api/v3/traces/", "/api/traces/", "/trace/", "/r/"];

impl Server {
    pub(crate) fn new(address: &str) -> Server {
        let without_page = address.strip_suffix("/search").unwrap_or(address);
        let scheme = if without_page.contains("://") { "" } else { "http://" };
        Server(format!("{scheme}{}", without_page.trim_end_matches('/')))
    }

    /// The address of the page of a trace.
    pub(crate) fn page_of(&self, trace_id: &str) -> String {
        format!("{}/trace/{trace_id}", self.0)
    }

    /// What it answers at a path, if it has that.
    fn get(&self, path: &str) -> Result<ServerAnswer> {
        let address = format!("{}{path}", self.0);
        query_client::get(&address, env_vars::token().as_deref()).map_err(|error| {
            let hint = "check the address, or start a server there: longpole serve";
            Failure::new(Kind::Failed, format!("cannot reach {}: {error}", self.0)).hint(hint).into()
        })
    }

    /// The list that it answers at the first of these paths that it has, under one of these keys.
    pub(crate) fn list(&self, paths: &[String], keys: &[&str]) -> Result<Vec<Value>> {
        let mut last = None;
        for path in paths {
            let answer = self.get(path)?;
            let mut value = json_of(&answer.body);
            match value.as_mut() {
                Some(value) if answer.status == 200 => match list_in(value, keys) {
                    Some(list) => return Ok(list),
                    None => return Err(self.not_of_the_api(path)),
                },
                // The newest Jaeger lacks paths of the first version and old ones those of the third: they answer with their page.
                _ => last = Some((answer.status, value)),
            }
        }
        let (status, value) = last.unwrap_or_default();
        let path = paths.last().map_or("", String::as_str).split('?').next().unwrap_or_default();
        Err(self.refused(status, value.as_ref(), path))
    }

    /// Names of the services that it has spans of.
    pub(crate) fn service_names(&self) -> Result<Vec<String>> {
        Ok(texts(&self.list(&["/api/v3/services".to_owned(), "/api/services".to_owned()], &["services", "data"])?))
    }

    /// Names of the operations of a service.
    pub(crate) fn operations(&self, service: &str) -> Result<Vec<String>> {
        let encoded = query_value(service);
        let paths = [format!("/api/v3/operations?service={encoded}"), format!("/api/services/{encoded}/operations")];
        Ok(texts(&self.list(&paths, &["operations", "data"])?))
    }

    /// Sends a recording, as one file. Returns the address of its page.
    pub(crate) fn push(&self, archive: Vec<u8>) -> Result<String> {
        let path = "/longpole/v1/recordings";
        let answer = query_client::put(&format!("{}{path}", self.0), env_vars::token().as_deref(), archive);
        let answer = answer.map_err(|error| {
            let hint = "longpole serve starts a server; --to names another one";
            Failure::new(Kind::Failed, format!("failed to send the recording to {}: {error}", self.0)).hint(hint)
        })?;
        let value = json_of(&answer.body);
        match value.as_ref().and_then(|value| value.get("page")?.as_str()) {
            Some(page) if answer.status == 201 => Ok(format!("{}{page}", self.0)),
            _ => Err(self.refused(answer.status, value.as_ref(), path)),
        }
    }

    /// Sends profiles: a request of Pyroscope's push protocol.
    pub(crate) fn push_profiles(&self, body: &[u8]) -> PushOutcome {
        let path = "/push.v1.PusherService/Push";
        let answer = query_client::post(&format!("{}{path}", self.0), env_vars::token().as_deref(), "application/proto", body.to_vec());
        match answer {
            Ok(ServerAnswer { status: 200, .. }) => PushOutcome::Taken,
            Ok(ServerAnswer { status, body }) => {
                let value = json_of(&body);
                let said = value.as_ref().and_then(reason).map(|reason| format!(": {}", cut(reason))).unwrap_or_default();
                let text = match status {
                    404 | 405 => format!("{} takes no profiles: --to is a server's port for profiles, 4040 of longpole serve", self.0),
                    _ => format!("{} answered with status {status}{said}", self.0),
                };
                // Whoever may not send, or sends to a port of something else, may send the same later.
                if matches!(status, 400 | 413 | 415) { PushOutcome::Refused(text) } else { PushOutcome::Away(text) }
            }
            Err(error) => PushOutcome::Away(format!("cannot reach {}: {error}", self.0)),
        }
    }

    /// A view that its page shows.
    pub(crate) fn view<V: DeserializeOwned>(&self, path: &str) -> Result<V> {
        self.view_in(self.get(path)?, path)
    }

    fn view_in<V: DeserializeOwned>(&self, answer: ServerAnswer, path: &str) -> Result<V> {
        if answer.status != 200 {
            return Err(self.refused(answer.status, json_of(&answer.body).as_ref(), path));
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            let hint = "another version of longpole may have answered";
            Failure::new(Kind::Failed, format!("failed to read the answer of {} to {path}: {error}", self.0)).hint(hint).into()
        })
    }

    /// The same, if the server is a longpole: a Jaeger has no such view, and answers with its page or a 404.
    pub(crate) fn view_of_longpole<V: DeserializeOwned>(&self, path: &str) -> Result<Option<V>> {
        let answer = self.get(path)?;
        let is_page = answer.status == 200 && !answer.body.trim_ascii_start().starts_with(b"{");
        if is_page || answer.status == 404 { Ok(None) } else { self.view_in(answer, path).map(Some) }
    }

    /// The spans of a trace.
    pub(crate) fn trace(&self, trace_id: &str) -> Result<SpanBatch> {
        let not_found = || Failure::new(Kind::NotFound, format!("{} has no trace {trace_id}", self.0));
        let answer = self.get(&format!("/api/v3/traces/{trace_id}"))?;
        if let Some(batch) = spans_of_v3(&answer) {
            return batch.map_err(|error| self.unreadable(trace_id, &error));
        }
        let answer = self.get(&format!("/api/traces/{trace_id}"))?;
        let is_jaegers = answer.body.trim_ascii_start().starts_with(b"{");
        match answer.status {
            200 if is_jaegers => {
                let mut batch = SpanBatch::default();
                let decoded = jaeger::decode(&answer.body, &Limits::default(), &mut batch);
                decoded.map_err(|error| self.unreadable(trace_id, &error))?;
                if batch.spans.is_empty() { Err(not_found().into()) } else { Ok(batch) }
            }
            404 if is_jaegers => Err(not_found().into()),
            status => Err(self.refused(status, json_of(&answer.body).as_ref(), "/api/traces")),
        }
    }

    /// The failure for an answer that does not belong to this path.
    fn refused(&self, status: u16, answer: Option<&Value>, path: &str) -> anyhow::Error {
        let needs_token = |reason: &str| {
            let hint = format!("set {} to a token of the server", env_vars::TOKEN);
            Failure::new(Kind::NotPermitted, format!("{} refuses: {reason}", self.0)).hint(hint)
        };
        let failure = match answer.and_then(reason) {
            Some(reason) if matches!(status, 401 | 403) => needs_token(reason),
            Some(reason) => Failure::new(Kind::Failed, format!("{} answered with status {status}: {reason}", self.0)),
            None => Failure::new(Kind::Failed, format!("{} has no {path} (status {status})", self.0))
                .hint("the page of longpole serve (usually port 16686) and Jaeger 2.20 have it; older Jaegers answer trace and services"),
        };
        failure.into()
    }

    /// The failure for an answer that another program gives: a page where users log in, or something else at this port.
    pub(crate) fn not_of_the_api(&self, path: &str) -> anyhow::Error {
        let path = path.split('?').next().unwrap_or_default();
        let hint = "another program may answer at this address, such as a proxy where users log in";
        Failure::new(Kind::Failed, format!("the response of {} to {path} is not Jaeger's", self.0)).hint(hint).into()
    }

    fn unreadable(&self, trace_id: &str, error: &DecodeError) -> anyhow::Error {
        Failure::new(Kind::Failed, format!("failed to read trace {trace_id} of {}: {error}", self.0)).into()
    }
}

/// Values of a document that are always read, and bytes that each needs beyond that: a value takes 32 bytes or more in memory, and two in a document
/// of nothing but empty lists.
const VALUES_MIN: usize = 1 << 20;
const VALUE_BYTES: usize = 8;

/// A document, unless it would take many times its size in memory.
fn json_of(body: &[u8]) -> Option<Value> {
    let values = body.iter().filter(|byte| matches!(byte, b'[' | b'{' | b',')).count();
    if values > VALUES_MIN.max(body.len() / VALUE_BYTES) { None } else { serde_json::from_slice(body).ok() }
}

/// The beginning of what a server says.
fn cut(text: &str) -> &str {
    const CHARS_MAX: usize = 200;
    text.char_indices().nth(CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

/// Texts, or the names of objects.
pub(crate) fn texts(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(|value| value.as_str().or_else(|| value.get("name")?.as_str())).map(str::to_owned).collect()
}

/// The spans of an answer of Jaeger's third API: one or more documents of OTLP, each in an envelope on a line of its own. `None` for what is
/// something else.
fn spans_of_v3(answer: &ServerAnswer) -> Option<Result<SpanBatch, DecodeError>> {
    if answer.status != 200 {
        return None;
    }
    let mut batch = SpanBatch::default();
    for line in answer.body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        let document = line.strip_prefix(b"{\"result\":")?.strip_suffix(b"}")?;
        if let Err(error) = otlp::json::decode(document, &Limits::default(), &mut batch) {
            return Some(Err(error));
        }
    }
    (!batch.spans.is_empty()).then_some(Ok(batch))
}

/// The list under the first of these keys that an answer has. Jaeger leaves out a list that is empty, or answers null.
fn list_in(answer: &mut Value, keys: &[&str]) -> Option<Vec<Value>> {
    let answer = answer.as_object_mut()?;
    match keys.iter().find_map(|key| answer.remove(*key)) {
        Some(Value::Array(list)) => Some(list),
        Some(Value::Null) => Some(Vec::new()),
        Some(_) => None,
        None => answer.is_empty().then(Vec::new),
    }
}

/// Why a server refuses, as Jaeger says it in either version.
fn reason(answer: &Value) -> Option<&str> {
    // A refused token is answered as OTLP answers: a status with a message.
    let found = answer.pointer("/error/message").or_else(|| answer.pointer("/errors/0/msg")).or_else(|| answer.get("message"));
    found?.as_str()
}

/// A value in a query.
pub(crate) fn query_value(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The server and the id of a trace, if this is the address of one.
pub(crate) fn trace_at(text: &str) -> Option<(Server, &str)> {
    if !is_address(text) {
        return None;
    }
    let path = text.split(['?', '#']).next()?.trim_end_matches('/');
    BEFORE_ID.iter().find_map(|before| {
        let (server, id) = path.rsplit_once(before)?;
        jaeger::trace_id(id).map(|_| (Server::new(server), id))
    })
}

/// The server and the name of a recording, if this is the address of the page of one that was sent there.
pub(crate) fn recording_at(text: &str) -> Option<(Server, RecordingName)> {
    let path = text.split(['?', '#']).next().filter(|_| is_address(text))?.trim_end_matches('/');
    let (server, name) = path.rsplit_once("/r/")?;
    Some((Server::new(server), RecordingName::parse(name).filter(|_| name.starts_with('r'))?))
}

/// The spans of a trace on a server, as a recording has them.
pub(crate) fn contents(address: &str) -> Result<Contents> {
    let Some((server, id)) = trace_at(address) else {
        if recording_at(address).is_some() {
            let hint = "only show, poles and open take it; for the others, use the recording on the machine that made it";
            return Err(Failure::new(Kind::Usage, format!("{address} is a recording on a server")).hint(hint).into());
        }
        let hint = "expected the address of a trace, such as http://localhost:16686/trace/TRACE_ID; longpole search lists traces";
        return Err(Failure::new(Kind::Usage, format!("{address} is not the address of a trace")).hint(hint).into());
    };
    Ok(import::contents_of_trace(server.trace(id)?.spans))
}

/// Whether a text is an address.
pub(crate) fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_nothing_but_lists_is_not_read() {
        let lists = |count: usize| json_of(format!("[{}[]]", "[],".repeat(count)).as_bytes()).is_some();
        assert_eq!([lists(1_000), lists(VALUES_MIN)], [true, false]);
    }

    #[test]
    fn a_list_is_under_its_key_or_left_out() {
        let list = |text: &str| list_in(&mut serde_json::from_str(text).unwrap(), &["services", "data"]).map(|list| list.len());
        assert_eq!(["{\"services\":[\"a\"]}", "{\"data\":[1,2]}", "{\"data\":null}", "{}"].map(list), [Some(1), Some(2), Some(0), Some(0)]);
        assert_eq!(["{\"error\":\"please log in\"}", "[]", "\"x\"", "{\"data\":\"x\",\"total\":-5}"].map(list), [None; 4]);
    }

    #[test]
    fn a_trace_is_named_by_any_of_its_addresses() {
        for text in [
            "http://localhost:16686/trace/4f1c3a",
            "http://localhost:16686/trace/4f1c3a?uiFind=x#span",
            "http://localhost:16686/r/4f1c3a/",
            "http://localhost:16686/api/traces/4f1c3a",
            "http://localhost:16686/api/v3/traces/4f1c3a",
        ] {
            assert_eq!(trace_at(text), Some((Server::new("localhost:16686"), "4f1c3a")), "{text}");
        }
        let behind_a_path = trace_at("https://tools.example/jaeger/trace/4f1c3a");
        assert_eq!(behind_a_path, Some((Server::new("https://tools.example/jaeger/"), "4f1c3a")));
        for text in ["./trace/4f1c3a", "http://localhost:16686/search", "http://localhost:16686/trace/what", "r7"] {
            assert_eq!(trace_at(text), None, "{text}");
        }
    }
}
