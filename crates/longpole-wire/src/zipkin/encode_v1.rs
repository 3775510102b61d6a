//! Zipkin's first JSON from its second: the same facts, with the kind of a span as annotations.
//!
//! ```text
//! v2  {"kind":"CLIENT","timestamp":10,"duration":5,"tags":{"a":"b"},"localEndpoint":E,…}
//! v1  {"timestamp":10,"duration":5,"annotations":[{"timestamp":10,"value":"cs","endpoint":E},{"timestamp":15,"value":"cr",…}],
//!      "binaryAnnotations":[{"key":"a","value":"b","endpoint":E}],…}
//! ```

use serde_json::{Map, Value, json};

/// A list of spans in v1 JSON, of one in v2 JSON as [`encode_v2_json`](super::encode_v2_json) writes it.
///
/// # Errors
///
/// The text is no list of spans in v2 JSON.
pub fn v1_json_of_v2(json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let spans: Vec<Map<String, Value>> = serde_json::from_slice(json)?;
    serde_json::to_vec(&spans.into_iter().map(span).collect::<Vec<_>>())
}

fn span(mut v2: Map<String, Value>) -> Value {
    let endpoint = v2.remove("localEndpoint").unwrap_or(Value::Null);
    let (kind, remote) = (v2.remove("kind"), v2.remove("remoteEndpoint"));
    // Where the request starts and ends, and who is at the other side; the address annotation's value is always true.
    let (first, last, other) = match kind.as_ref().and_then(Value::as_str) {
        Some("CLIENT") => (Some("cs"), Some("cr"), "sa"),
        Some("SERVER") => (Some("sr"), Some("ss"), "ca"),
        Some("PRODUCER") => (Some("ms"), None, "ma"),
        Some("CONSUMER") => (Some("mr"), None, "ma"),
        _ => (None, None, "sa"),
    };
    let start = v2.get("timestamp").and_then(Value::as_u64);
    let end = start.and_then(|start| start.checked_add(v2.get("duration")?.as_u64()?));
    let with_endpoint = |mut annotation: Map<String, Value>| {
        if !endpoint.is_null() {
            annotation.insert("endpoint".to_owned(), endpoint.clone());
        }
        Value::Object(annotation)
    };
    let annotation =
        |time: u64, value: &str| with_endpoint(Map::from_iter([("timestamp".to_owned(), time.into()), ("value".to_owned(), value.into())]));
    let binary = |key: String, value: Value| with_endpoint(Map::from_iter([("key".to_owned(), key.into()), ("value".to_owned(), value)]));

    let mut annotations: Vec<Value> = Vec::new();
    annotations.extend(first.zip(start).map(|(value, time)| annotation(time, value)));
    if let Some(Value::Array(own)) = v2.remove("annotations") {
        annotations.extend(own.into_iter().filter_map(|own| match own {
            Value::Object(own) => Some(with_endpoint(own)),
            _ => None,
        }));
    }
    annotations.extend(last.zip(end).map(|(value, time)| annotation(time, value)));

    let mut binaries: Vec<Value> = Vec::new();
    if first.is_none() {
        // Without a kind nothing else would say whose span it is.
        binaries.push(binary("lc".to_owned(), "".into()));
    }
    if let Some(Value::Object(tags)) = v2.remove("tags") {
        binaries.extend(tags.into_iter().map(|(key, value)| binary(key, value)));
    }
    if let Some(remote) = remote {
        binaries.push(json!({ "key": other, "value": true, "endpoint": remote }));
    }
    // A span that a server shares with its client has no times of its own in v1.
    if v2.remove("shared").and_then(|shared| shared.as_bool()).unwrap_or(false) {
        v2.remove("timestamp");
        v2.remove("duration");
    }
    v2.insert("annotations".to_owned(), annotations.into());
    v2.insert("binaryAnnotations".to_owned(), binaries.into());
    Value::Object(v2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(v2: Value, v1: Value) {
        let found: Value = serde_json::from_slice(&v1_json_of_v2(json!([v2]).to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(found, json!([v1]));
    }

    #[test]
    fn kind_tags_and_endpoints_become_annotations() {
        let (web, db) = (json!({ "serviceName": "web" }), json!({ "serviceName": "db", "port": 5432 }));
        check(
            json!({ "traceId": "1", "id": "2", "parentId": "1", "name": "get", "kind": "CLIENT", "timestamp": 10, "duration": 5, "tags": { "a": "b" },
                "annotations": [{ "timestamp": 12, "value": "retry" }], "localEndpoint": web, "remoteEndpoint": db }),
            json!({ "traceId": "1", "id": "2", "parentId": "1", "name": "get", "timestamp": 10, "duration": 5,
                "annotations": [
                    { "timestamp": 10, "value": "cs", "endpoint": web },
                    { "timestamp": 12, "value": "retry", "endpoint": web },
                    { "timestamp": 15, "value": "cr", "endpoint": web },
                ],
                "binaryAnnotations": [{ "key": "a", "value": "b", "endpoint": web }, { "key": "sa", "value": true, "endpoint": db }] }),
        );
        check(
            json!({ "traceId": "1", "id": "1", "kind": "CONSUMER", "timestamp": 10 }),
            json!({ "traceId": "1", "id": "1", "timestamp": 10, "annotations": [{ "timestamp": 10, "value": "mr" }], "binaryAnnotations": [] }),
        );
        check(
            json!({ "traceId": "1", "id": "1", "localEndpoint": web }),
            json!({ "traceId": "1", "id": "1", "annotations": [], "binaryAnnotations": [{ "key": "lc", "value": "", "endpoint": web }] }),
        );
        assert!(v1_json_of_v2(b"{").is_err());
    }
}
