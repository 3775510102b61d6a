//! Files that the user wants copies in.

use super::*;

#[test]
fn a_file_gets_one_line_of_json_for_each_request_and_nothing_of_an_earlier_run() {
    let scratch = Scratch::new("lines");
    let path = scratch.file("traces.json");
    std::fs::write(&path, "of an earlier run\n").unwrap();
    let receiver = receiver_that_forwards(ForwardTarget::traces(ForwardProtocol::OtlpFile, &path));
    assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["a", "b"]).encode_to_vec()), 200);
    let pretty = serde_json::to_vec_pretty(&spans("c")).unwrap();
    assert_eq!(post(receiver.port(), "Content-Type: application/json\r\n", &pretty), 200);
    assert_eq!(receiver.finish(SOON), []);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with('\n'));
    let requests: Vec<ExportTraceServiceRequest> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((requests.len(), names_of(&requests)), (2, vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
}

#[test]
fn a_file_that_cannot_be_written_says_why() {
    let scratch = Scratch::new("unwritable");
    let nowhere = scratch.file("no/such/folder");
    for (protocol, path, expected) in [
        (ForwardProtocol::OtlpFile, nowhere.as_str(), "failed to create it: No such file or directory"),
        (ForwardProtocol::AppDashFile, nowhere.as_str(), "failed to create it: No such file or directory"),
        (ForwardProtocol::OtlpFile, "/dev/full", "failed to write: No space left on device"),
        (ForwardProtocol::AppDashFile, "/dev/full", "failed to write: No space left on device"),
    ] {
        let receiver = receiver_that_forwards(ForwardTarget::traces(protocol, path));
        assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["a", "b"]).encode_to_vec()), 200);
        let losses = failed(&receiver.finish(SOON));
        let [(2, reason)] = &losses[..] else { panic!("{path}: {losses:?}") };
        assert!(reason.starts_with(&format!("{path}: {expected}")), "{reason}");
    }
}

#[test]
fn an_appdash_file_holds_all_spans_at_the_end() {
    let scratch = Scratch::new("appdash");
    let path = scratch.file("up.trace");
    let receiver = receiver_that_forwards(ForwardTarget::traces(ForwardProtocol::AppDashFile, &path));
    for name in ["a", "b"] {
        let mut request = request_of(&[name]);
        request.resource_spans[0].scope_spans[0].spans[0].span_id = vec![name.as_bytes()[0]; 8];
        assert_eq!(post(receiver.port(), PROTOBUF, &request.encode_to_vec()), 200);
    }
    let losses = receiver.finish(SOON);
    assert!(losses.iter().all(|loss| loss.kind != LossKind::ForwardFailed), "{losses:?}");
    let mut batch = longpole_model::SpanBatch::default();
    let file = std::fs::File::open(&path).unwrap();
    longpole_wire::appdash::decode_file(file, &longpole_wire::Limits::default(), &mut batch).unwrap();
    let mut names: Vec<_> = batch.spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
}
