use super::*;

#[test]
fn a_body_is_read_for_identity_only() {
    let body = r#"type:"aws:s3/bucket:Bucket" name:"logs"  parent:"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev" custom:true
        object:{fields:{key:"urn" value:{string_value:"urn:pulumi:secret"}}  fields:{key:"password"  value:{string_value:"hunter2 urn:\"urn:pulumi:x\" }"}}}
        provider:"urn:pulumi:dev::shop::pulumi:providers:aws::default::04da6b54" dependencies:"urn:pulumi:dev::shop::a:b:C::x"
        dependencies:"urn:pulumi:dev::shop::a:b:C::y" dependencies:"urn:pulumi:dev::shop::a:b:C::x" urn: 'hunter2'"#;
    let identity = Identity::of_body(body);
    assert_eq!(identity.resource_type.as_deref(), Some("aws:s3/bucket:Bucket"));
    assert_eq!(identity.parent.as_deref(), Some("urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"));
    assert_eq!(identity.provider.as_deref(), Some("urn:pulumi:dev::shop::pulumi:providers:aws::default::04da6b54"));
    assert_eq!(identity.dependencies, ["urn:pulumi:dev::shop::a:b:C::x", "urn:pulumi:dev::shop::a:b:C::y"]);
    assert_eq!(identity.urn, None, "neither a property nor a value that is no urn");
}

#[test]
fn no_prefix_of_a_body_gives_away_a_property() {
    let body = r#"urn:"urn:pulumi:dev::p::a:b:C::n" properties:{fields:{key:"p" value:{string_value:"hunter2"}}} type:"a:b:C""#;
    for cut in 0..=body.len() {
        let found = format!("{:?}", Identity::of_body(&body[..cut]));
        assert!(!found.contains("hunter2"), "{cut}: {found}");
    }
}

#[test]
fn the_type_of_a_urn_is_without_its_parents() {
    assert_eq!(type_of_urn("urn:pulumi:dev::shop::my:mod:Comp$aws:s3/bucket:Bucket::logs"), Some("aws:s3/bucket:Bucket"));
    assert_eq!(type_of_urn("urn:pulumi:dev::shop"), None);
    let mut attributes = Attributes::default();
    Identity { urn: Some("urn:pulumi:d::p::x$a:b:C::n".into()), ..Identity::default() }.attach(&mut attributes);
    assert_eq!(attributes.get_str(TYPE), Some("a:b:C"));
}

#[test]
fn a_payload_is_found_in_a_text_that_was_cut() {
    let whole =
        r#"{"gRPC request":"urn:\"urn:pulumi:dev::p::a:b:C::n\" properties:{fields:{key:\"p\" value:{string_value:\"hunter2\"}}}"}"#;
    let payload = find(whole).unwrap();
    assert_eq!((payload.key, payload.identity.urn.as_deref()), ("gRPC request", Some("urn:pulumi:dev::p::a:b:C::n")));
    for cut in 16..whole.len() {
        assert!(find(&whole[..cut]).is_some(), "{}", &whole[..cut]);
    }
    assert_eq!(find(r#"{"event":"sent the gRPC request"}"#), None);
    assert_eq!(find(r#"{"gRPC response" : {"urn":"x"}}"#).map(|payload| payload.body_bytes), Some(0));
}

#[test]
fn escapes_of_the_text_form_are_read() {
    assert_eq!(unescaped(br#"a\"b\\\n\303\251\x41\u00e9\'"#), "a\"b\\\n\u{e9}A\u{e9}'");
}

#[test]
fn bridged_logs_are_left_out_and_say_whose_they_are() {
    let message =
        r#"{"gRPC request":"urn:\"urn:pulumi:dev::p::a:b:C::n\" properties:{fields:{key:\"p\" value:{string_value:\"hunter2\"}}}"}"#;
    let ids = (longpole_model::TraceId::new([1; 16]).unwrap(), longpole_model::SpanId::new([2; 8]).unwrap());
    let range = longpole_model::TimeRange { start: longpole_model::Timestamp(1), end: longpole_model::Timestamp(2) };
    let mut span = Span::new(ids.0, ids.1, "Create", range);
    span.attributes.push("Msg", AttributeValue::Str(message.into()));
    span.attributes.push("Msg", AttributeValue::Str("ready".into()));
    let mut attributes = Attributes::default();
    attributes.push("gRPC response", AttributeValue::Str("id:\"hunter2\"".into()));
    span.events.push(longpole_model::SpanEvent { attributes, ..Default::default() });
    leave_out(&mut span);
    assert!(!format!("{span:?}").contains("hunter2"), "{span:?}");
    assert_eq!(span.attributes.get_str(URN), Some("urn:pulumi:dev::p::a:b:C::n"));
    assert_eq!(span.attributes.0[1].value.as_str(), Some("ready"));
    let once = span.clone();
    leave_out(&mut span);
    assert_eq!(span, once);
}
