//! Line 9: a file that another user can write, or that holds something else, becomes spans of the run because an argument of the command
//! names it.

use std::path::Path;

use serde_json::Value;

use crate::another_user;
use crate::starve_the_receiver::span_names;
use crate::support::{Sandbox, json, longpole};

/// A command that writes a span of its own to the file that its argument names.
const WRITE: &str = r#"t=$(date +%s%N); printf '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0123456789abcdef0123456789abcdef","spanId":"00000000000000aa","name":"planted","startTimeUnixNano":"%s","endTimeUnixNano":"%s"}]}]}]}\n' $t $t >$1"#;

/// Records this script, which gets the path of the file; the names of the spans, and what the answer says of its quality.
fn recorded(sandbox: &Sandbox, script: &str, file: &Path) -> (Vec<String>, Value) {
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--no-profile", "--", "sh", "-c", script, "sh"]).arg(file);
    assert!(run.status().unwrap().success(), "{script}");
    (span_names(&store), json(longpole(&store).args(["show", "--format", "json"]))["quality"].clone())
}

#[test]
fn a_file_that_others_can_write_does_not_join() {
    let sandbox = Sandbox::new();
    let own = recorded(&sandbox, &format!("umask 077; {WRITE}"), &sandbox.path("own.json"));
    assert_eq!(own.0, ["planted"], "{}", own.1);
    let open_to_all = recorded(&sandbox, &format!("{WRITE}; chmod 666 $1"), &sandbox.path("all.json"));
    assert_eq!(open_to_all.0, Vec::<String>::new(), "{}", open_to_all.1);
}

#[test]
fn a_file_of_another_user_does_not_join() {
    let sandbox = Sandbox::new();
    if another_user(&sandbox, "a_file_of_another_user_does_not_join").is_none() {
        return;
    }
    let (spans, quality) = recorded(&sandbox, &format!("{WRITE}; chown nobody $1"), &sandbox.path("file.json"));
    assert_eq!(spans, Vec::<String>::new(), "{quality}");
    // A flag of Pulumi names it: what is missing is a loss.
    let pulumi = sandbox.path("pulumi");
    std::fs::write(&pulumi, format!("#!/bin/sh\nset -- {}\n{WRITE}\nchown nobody $1\n", sandbox.path("flag.json").display())).unwrap();
    std::fs::set_permissions(&pulumi, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let store = sandbox.path("pulumi-store");
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--no-profile", "--"]).arg(&pulumi);
    run.args(["up".into(), "--otel-traces".into(), format!("file://{}", sandbox.path("flag.json").display())]);
    assert!(run.status().unwrap().success());
    assert_eq!(span_names(&store), Vec::<String>::new());
    let quality = json(longpole(&store).args(["show", "--format", "json"]))["quality"].to_string();
    assert!(quality.contains("--otel-traces names") && quality.contains("belongs to another user"), "{quality}");
}

#[test]
fn a_child_cannot_replace_a_span_of_its_parent_by_a_file() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("file.json");
    // The command sends a span, and its child writes one with the same ids that ends later.
    let send = format!(
        r#"b=$(printf '%s' '{}' | sed "s/TIME/$(date +%s%N)/g; s/PID/$$/")
        curl -sf -H 'Content-Type: application/json' -d "$b" $OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces >/dev/null || exit 9
        sh -c '{}' sh $1"#,
        r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"PID"}}]},"scopeSpans":[{"spans":[{"traceId":"0123456789abcdef0123456789abcdef","spanId":"00000000000000aa","name":"own","startTimeUnixNano":"TIME","endTimeUnixNano":"TIME"}]}]}]}"#,
        WRITE.replace('\'', r"'\''"),
    );
    let (spans, quality) = recorded(&sandbox, &format!("umask 077; {send}"), &file);
    // The planted one is beside it, with an id of its own, and counts.
    assert_eq!(spans, ["own", "planted"], "{quality}");
    assert!(quality.to_string().contains("spans with the id of another span but another name or time"), "{quality}");
    let own = json(longpole(&sandbox.path("store")).args(["span", "00000000000000aa", "--format", "json"]));
    assert_eq!(own["name"], "own", "{own}");
}

#[test]
fn a_compressed_file_is_not_expanded() {
    let sandbox = Sandbox::new();
    // The name inside says what AppDash says at its beginning.
    let pack = "cd $(dirname $1); umask 077; head -c 30000000 /dev/zero >memoryStoreData; gzip -Nc memoryStoreData >$1";
    let (spans, quality) = recorded(&sandbox, pack, &sandbox.path("packed.json"));
    assert_eq!(spans, Vec::<String>::new());
    assert!(!quality.to_string().contains("packed.json"), "{quality}");
}
