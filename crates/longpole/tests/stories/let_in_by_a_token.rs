//! Story: `longpole serve --token-file` lets only those in who have a token.
//! Guarantees: without one nobody sends and nobody reads, by HTTP, by gRPC or in a browser, and the answer says what to do; a token that is for sending
//! does not read, and the other way round; stock SDKs, a browser and longpole's own commands come in with theirs; ports whose protocol has no
//! place for a token stay closed; health checks need none.

use std::process::Command;

use serde_json::json;

use crate::support::http;
use crate::support::served::Served;
use crate::support::{Sandbox, longpole, recent_nanos, role};

const BOTH: &str = "both-0123456789abcdef";
const SENDS: &str = "sends-0123456789abcdef";
const READS: &str = "reads-0123456789abcdef";

#[test]
fn only_a_token_lets_in() {
    let sandbox = Sandbox::new();
    let (store, file) = (sandbox.path("store"), sandbox.path("tokens"));
    std::fs::write(&file, format!("# of the shop\n{BOTH}\n{SENDS} send\n{READS} read\n")).unwrap();
    let served = Served::start_with(&store, &["--token-file", file.to_str().unwrap()], &[]);
    let page = served.port("page");
    let span = json!({ "traceId": format!("{:032x}", 7), "spanId": "0000000000000001", "name": "reserve",
        "startTimeUnixNano": recent_nanos().to_string(), "endTimeUnixNano": (recent_nanos() + 1_000_000).to_string() });
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "cart" } }] });
    let body = json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": [span] }] }] }).to_string();
    let send = |authorization: &[(&str, &str)]| {
        let headers = [authorization, &[("Content-Type", "application/json")]].concat();
        http::send(served.port("otlp-http"), "POST", "/v1/traces", &headers, &body).unwrap()
    };
    let read = |path: &str, headers: &[(&str, &str)]| http::send(page, "GET", path, headers, "").unwrap();
    let bearer = |token: &str| format!("Bearer {token}");

    let refused = send(&[]);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer realm=\"longpole\"")));
    assert!(refused.body.contains("Authorization: Bearer TOKEN"), "{}", refused.body);
    for (token, sends, reads) in [(BOTH, 200, 200), (SENDS, 200, 403), (READS, 403, 200), ("wrong-0123456789abcdef", 401, 401)] {
        let authorization = bearer(token);
        let headers = [("Authorization", authorization.as_str())];
        assert_eq!((send(&headers).status, read("/api/services", &headers).status), (sends, reads), "{token}");
        let zipkin = http::send(served.port("zipkin"), "GET", "/api/v2/services", &headers, "").unwrap();
        assert_eq!(zipkin.status, reads, "{token}");
        let recording = http::send(page, "PUT", "/longpole/v1/recordings", &headers, "no recording").unwrap();
        assert_eq!(recording.status, if sends == 200 { 400 } else { sends }, "{token}: {}", recording.body);
    }
    for (port, path, status) in [
        ("admin", "/livez", 200),
        ("admin", "/readyz", 200),
        ("zipkin", "/health", 200),
        ("admin", "/metrics", 401),
        ("page", "/api/services", 401),
    ] {
        assert_eq!(http::get(served.port(port), path).status, status, "{path}");
    }

    // A browser: a form, then the cookie.
    let html = ("Accept", "text/html");
    let form = read("/search?service=cart", &[html]);
    assert!(form.status == 401 && form.body.contains("<input name=token"), "{} {}", form.status, form.body);
    let entered = read(&format!("/search?service=cart&token={READS}"), &[html]);
    assert_eq!((entered.status, entered.header("location")), (303, Some("/search?service=cart")));
    let cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(read("/api/services", &[("Cookie", &cookie)]).status, 200);
    assert!(read("/search", &[html, ("Cookie", &cookie)]).body.contains("id=\"root\""));
    // Another site cannot use it to send.
    let sent_by_page =
        http::send(served.port("otlp-http"), "POST", "/v1/traces", &[("Cookie", &cookie), ("Content-Type", "application/json")], &body);
    assert_eq!(sent_by_page.unwrap().status, 401);

    // Stock exporters.
    let [me, args @ ..] = &role("receive_from_any_sdk::emit")[..] else { panic!("no role") };
    for (protocol, port) in [("grpc", "otlp-grpc"), ("http/protobuf", "otlp-http")] {
        let service = format!("emits-{}", protocol.replace('/', "-"));
        let sent = Command::new(me)
            .args(args)
            .env("LONGPOLE_STORY_PROTOCOL", protocol)
            .env("OTEL_SERVICE_NAME", &service)
            .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer%20{SENDS}"))
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://localhost:{}", served.port(port)))
            .output()
            .unwrap();
        assert!(sent.status.success(), "{protocol}: {}", String::from_utf8_lossy(&sent.stderr));
        let found = read("/api/services", &[("Authorization", &bearer(READS))]);
        assert!(found.body.contains(&service), "{protocol}: {}", found.body);
    }

    // longpole's own commands.
    let services = |token: Option<&str>| {
        let mut command = longpole(&sandbox.path("own"));
        command.args(["services", "--at", &format!("http://127.0.0.1:{page}")]).envs(token.map(|token| ("LONGPOLE_TOKEN", token)));
        let out = command.output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, _, error) = services(None);
    assert!(status == Some(4) && error.contains("needs a token") && error.contains("set LONGPOLE_TOKEN"), "{error}");
    let (status, found, error) = services(Some(READS));
    assert!(status == Some(0) && found.contains("cart"), "{found}{error}");
}

#[test]
fn what_cannot_carry_a_token_stays_closed_and_bad_files_are_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("tokens");
    std::fs::write(&file, "short\n").unwrap();
    let start = |arguments: &[&str]| {
        let out =
            longpole(&sandbox.path("store")).arg("serve").args(["--token-file", file.to_str().unwrap()]).args(arguments).output().unwrap();
        assert!(!out.status.success());
        String::from_utf8(out.stderr).unwrap()
    };
    let error = start(&["--port", "all=0"]);
    assert!(error.contains("tokens: line 1: expected a token of 16 to 512"), "{error}");
    std::fs::write(&file, format!("{BOTH}\n")).unwrap();
    let error = start(&["--port", "appdash=0"]);
    assert!(error.contains("--port appdash: this protocol carries no token"), "{error}");
    let error = start(&["--insecure", "--listen", "0.0.0.0"]);
    assert!(error.contains("cannot be used with"), "{error}");
    let served = Served::start_with(&sandbox.path("store"), &["--token-file", file.to_str().unwrap()], &[]);
    for closed in ["jaeger-compact", "jaeger-binary", "appdash"] {
        assert!(!served.has_port(closed), "{closed} is open");
    }
    assert!(served.has_port("jaeger-thrift"));
}
