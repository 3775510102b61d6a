use super::*;

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn pairs(text: &str) -> Vec<(OsString, OsString)> {
    text.split_whitespace().filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

fn inject(env: &str, mode: Mode) -> Injection {
    inject_into("make deploy", env, mode)
}

fn inject_into(command: &str, env: &str, mode: Mode) -> Injection {
    let (env, argv): (_, Vec<OsString>) = (pairs(env), command.split(' ').map(OsString::from).collect());
    let (endpoint, appdash) = ("http://127.0.0.1:41234", "tcp://127.0.0.1:41235");
    let journals = Some(Path::new("/dev/shm/journals"));
    environment(&Request { env: &env, argv: &argv, endpoint, appdash, traceparent: TRACEPARENT, run_id: "7f3a", journals, mode })
}

/// What the command's environment says of these names, and the codes of the notes.
#[track_caller]
fn check(env: &str, expected: &str, notes: &[&str]) {
    check_injection(&inject(env, Mode::Auto), env, expected, notes);
}

#[track_caller]
fn check_injection(injection: &Injection, env: &str, expected: &str, notes: &[&str]) {
    for (name, value) in expected.split_whitespace().filter_map(|pair| pair.split_once('=')) {
        let found: Vec<_> = injection.env.iter().filter(|(key, _)| key == name).map(|(_, value)| value.to_str().unwrap()).collect();
        assert_eq!(found, if value == "-" { vec![] } else { vec![value] }, "{name} with {env}");
    }
    assert_eq!(injection.notes.iter().map(|n| n.code).collect::<Vec<_>>(), notes, "{env}");
}

#[test]
fn an_empty_environment_gets_all_that_an_sdk_needs() {
    let injection = inject("", Mode::Auto);
    let expected = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:41234 TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
        OTEL_TRACES_EXPORTER=otlp OTEL_BSP_SCHEDULE_DELAY=200 OTEL_BSP_MAX_QUEUE_SIZE=65536
        OTEL_RESOURCE_ATTRIBUTES=longpole.run.id=7f3a LONGPOLE_RUN_ID=7f3a LONGPOLE_JOURNAL_DIR=/dev/shm/journals
        PULUMI_OPTION_OTEL_TRACES=grpc://127.0.0.1:41234 PULUMI_OPTION_TRACING=tcp://127.0.0.1:41235
        PULUMI_OPTION_EVENT_LOG=tcp://127.0.0.1:41234 PULUMI_DEBUG_COMMANDS=true";
    assert_eq!(injection, Injection { env: pairs(expected), notes: vec![], forward: None, pulumi: PulumiTargets::default() });
}

#[test]
fn nothing_is_touched_where_nothing_shall_be() {
    let env = "A=1 OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=true A=2";
    let untouched = Injection { env: pairs(env), notes: vec![], forward: None, pulumi: PulumiTargets::default() };
    assert_eq!(inject(env, Mode::None), untouched);
}

#[test]
fn each_variable_becomes_what_the_table_says() {
    // The user's own settings stay where they can.
    check("HOME=/h PATH=/bin", "HOME=/h PATH=/bin OTEL_EXPORTER_OTLP_PROTOCOL=- NO_PROXY=-", &[]);
    check(
        "OTEL_BSP_SCHEDULE_DELAY=5000 OTEL_TRACES_EXPORTER=console,otlp",
        "OTEL_BSP_SCHEDULE_DELAY=5000 OTEL_TRACES_EXPORTER=console,otlp",
        &[],
    );
    check("OTEL_BSP_SCHEDULE_DELAY= OTEL_TRACES_EXPORTER=", "OTEL_BSP_SCHEDULE_DELAY=200 OTEL_TRACES_EXPORTER=otlp", &[]);
    check("OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", &[]);
    check("BAGGAGE=a=1", "BAGGAGE=a=1", &[]);
    check(
        "OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_LOGS_COMPRESSION=zstd",
        "OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_LOGS_COMPRESSION=-",
        &[],
    );
    check(
        "OTEL_EXPORTER_OTLP_INSECURE=false OTEL_EXPORTER_OTLP_CERTIFICATE=/ca",
        "OTEL_EXPORTER_OTLP_INSECURE=- OTEL_EXPORTER_OTLP_CERTIFICATE=-",
        &[],
    );
    check("LONGPOLE_RUN_ID=outer LONGPOLE_RUN_ID=twice", "LONGPOLE_RUN_ID=7f3a", &[]);

    check("OTEL_RESOURCE_ATTRIBUTES=service.name=web,team=a", "OTEL_RESOURCE_ATTRIBUTES=service.name=web,team=a,longpole.run.id=7f3a", &[]);
    check("OTEL_RESOURCE_ATTRIBUTES=team=a,longpole.run.id=outer,", "OTEL_RESOURCE_ATTRIBUTES=team=a,longpole.run.id=7f3a", &[]);

    // A note reports a setting that keeps spans from us.
    check("OTEL_SDK_DISABLED=TRUE", "OTEL_SDK_DISABLED=TRUE", &["sdk_disabled"]);
    check("OTEL_SDK_DISABLED=false", "", &[]);
    check("OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_EXPORTER=none", &["exporter_not_otlp"]);
    for sampler in ["always_off", "parentbased_always_off"] {
        let off = format!("OTEL_TRACES_SAMPLER={sampler}");
        check(
            &format!("{off} OTEL_TRACES_SAMPLER_ARG=1"),
            "OTEL_TRACES_SAMPLER=parentbased_always_on OTEL_TRACES_SAMPLER_ARG=-",
            &["sampler_replaced"],
        );
        // The user's own collector must not get spans that the sampler drops.
        check(&format!("{off} OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"), &off, &["forwarded", "sampled_out"]);
    }
    check("OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.1", "", &["sampled"]);
    check("OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=1", "", &[]);
    check("OTEL_TRACES_SAMPLER=traceidratio", "", &[]);
    check("OTEL_TRACES_SAMPLER=parentbased_always_on", "", &[]);
    check("OTEL_PROPAGATORS=b3,jaeger", "OTEL_PROPAGATORS=b3,jaeger", &["no_trace_context"]);
    check("OTEL_PROPAGATORS=tracecontext,baggage", "", &[]);
    check("OTEL_CONFIG_FILE=/o.yaml", "OTEL_CONFIG_FILE=/o.yaml", &["config_file"]);
    check("OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_QUEUE_SIZE=10", &[]);

    // The trace of the user is joined; another is not, and its state goes with it.
    let joined = "TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01 TRACESTATE=k=v";
    check(joined, &format!("TRACEPARENT={TRACEPARENT} TRACESTATE=k=v"), &[]);
    let not_sampled = "TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-00";
    check(not_sampled, &format!("TRACEPARENT={TRACEPARENT}"), &["trace_was_not_sampled"]);
    check("TRACEPARENT=nonsense TRACESTATE=k=v", &format!("TRACEPARENT={TRACEPARENT} TRACESTATE=-"), &["traceparent_invalid"]);
    check("TRACESTATE=k=v", "TRACESTATE=-", &[]);
}

#[test]
fn pulumis_own_settings_are_kept_or_forwarded() {
    let ours = "PULUMI_OPTION_OTEL_TRACES=grpc://127.0.0.1:41234 PULUMI_OPTION_TRACING=tcp://127.0.0.1:41235";
    // Set by the user: by pulumi itself we know all that goes there, of another command we do not.
    let set = "PULUMI_OPTION_OTEL_TRACES=file:///t.json PULUMI_OPTION_TRACING=file:up.trace";
    let injection = inject_into("/usr/bin/pulumi up --yes", set, Mode::Auto);
    check_injection(&injection, set, ours, &[]);
    let targets = PulumiTargets { otel_traces: Some("file:///t.json".into()), tracing: Some("file:up.trace".into()), files: Vec::new() };
    assert_eq!(injection.pulumi, targets);
    check(set, set, &["pulumi_elsewhere", "pulumi_elsewhere"]);
    assert_eq!(inject(set, Mode::Auto).pulumi, PulumiTargets::default());

    // Typed by the user: a flag wins over the environment. What goes to a file is read there.
    let unset = "PULUMI_OPTION_OTEL_TRACES=- PULUMI_OPTION_TRACING=tcp://127.0.0.1:41235";
    let typed = |words: &str, notes: &[&str]| {
        let injection = inject_into(words, "HOME=/home/me", Mode::Auto);
        check_injection(&injection, "HOME=/home/me", unset, notes);
        injection.pulumi.files.into_iter().map(|file| (file.flag, file.path.display().to_string())).collect::<Vec<_>>()
    };
    let traces = |path: &str| vec![("--otel-traces", path.to_owned())];
    assert_eq!(typed("pulumi up --otel-traces file:///t.json", &[]), traces("/t.json"));
    assert_eq!(typed("pulumi --otel-traces=file://~/t.json up", &[]), traces("/home/me/t.json"));
    assert_eq!(typed("pulumi --otel-traces=file://x/t.json up --otel-traces file:a/b.json", &[]), traces("a/b.json"));
    for elsewhere in ["pulumi up --otel-traces grpc://h:1", "pulumi --otel-traces=file://t up", "pulumi up --otel-traces"] {
        assert_eq!(typed(elsewhere, &["pulumi_elsewhere"]), []);
    }
    let both = inject_into("pulumi up --tracing=file:./up.trace --otel-traces=file:///t.json", "", Mode::Auto);
    check_injection(&both, "", "PULUMI_OPTION_OTEL_TRACES=- PULUMI_OPTION_TRACING=-", &[]);
    assert_eq!(both.pulumi.files.len(), 2);
    check_injection(&inject_into("make --tracing=x", "", Mode::Auto), "", ours, &[]);

    check("PULUMI_TRACING_NO_PAYLOADS=true", "PULUMI_TRACING_NO_PAYLOADS=true", &[]);
    let events = "PULUMI_OPTION_EVENT_LOG=/tmp/events PULUMI_DEBUG_COMMANDS=-";
    check("PULUMI_OPTION_EVENT_LOG=/tmp/events", events, &["pulumi_events_elsewhere"]);
    let typed = inject_into("pulumi up --event-log e.json", "", Mode::Auto);
    check_injection(&typed, "", "PULUMI_OPTION_EVENT_LOG=-", &["pulumi_events_elsewhere"]);
}

#[test]
fn the_trace_is_always_sampled() {
    let traceparent = TRACEPARENT.replace("-01", "-00");
    let (endpoint, appdash) = ("http://127.0.0.1:1", "tcp://127.0.0.1:2");
    let (traceparent, journals, mode) = (&traceparent, None, Mode::Auto);
    let injection = environment(&Request { env: &[], argv: &[], endpoint, appdash, traceparent, run_id: "7f3a", journals, mode });
    check_injection(&injection, "", &format!("TRACEPARENT={TRACEPARENT}"), &[]);
}

#[test]
fn our_address_is_kept_from_proxies() {
    check("http_proxy=http://p:1", "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1", &[]);
    check("HTTPS_PROXY=http://p:1 NO_PROXY=corp", "NO_PROXY=corp,127.0.0.1 no_proxy=-", &[]);
    check("all_proxy=http://p:1 no_proxy=a,*", "no_proxy=a,* NO_PROXY=-", &[]);
    check("all_proxy=http://p:1 no_proxy=127.0.0.1", "no_proxy=127.0.0.1", &[]);
    check("grpc_proxy=http://p:1 no_grpc_proxy=a", "no_grpc_proxy=a,127.0.0.1 NO_PROXY=127.0.0.1", &[]);
    check("http_proxy= NO_PROXY=corp", "NO_PROXY=corp no_proxy=-", &[]);
}

fn endpoint(http_url: &str, grpc_url: &str) -> SignalEndpoint {
    SignalEndpoint {
        http_url: http_url.into(),
        grpc_url: grpc_url.into(),
        protocol: None,
        headers: vec![],
        timeout_millis: None,
        compression: Compression::None,
        certificate: None,
        client_certificate: None,
        client_key: None,
    }
}

#[test]
fn the_users_own_endpoint_is_found_for_each_signal() {
    let check = |env: &str, traces: Option<(&str, &str)>, metrics: Option<(&str, &str)>| {
        let injection = inject(env, Mode::Auto);
        let user = injection.forward.unwrap_or_default();
        let protocol = (!env.contains("://")).then_some(Protocol::Grpc);
        let expected = traces.map(|(http, grpc)| SignalEndpoint { protocol, ..endpoint(http, grpc) });
        assert_eq!(user.traces, expected, "{env}");
        assert_eq!(user.metrics, metrics.map(|(http, grpc)| endpoint(http, grpc)), "{env}");
        let left: Vec<_> = injection.env.iter().filter(|(name, _)| name.to_str().is_some_and(|n| n.ends_with("_ENDPOINT"))).collect();
        assert_eq!(left, [&("OTEL_EXPORTER_OTLP_ENDPOINT".into(), "http://127.0.0.1:41234".into())], "{env}");
        assert_eq!(injection.notes.iter().map(|n| n.code).collect::<Vec<_>>(), ["forwarded"], "{env}");
    };
    check(
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318",
        Some(("http://c:4318/v1/traces", "http://c:4318")),
        Some(("http://c:4318/v1/metrics", "http://c:4318")),
    );
    check(
        "OTEL_EXPORTER_OTLP_ENDPOINT=HTTPS://c/otlp/?k=1",
        Some(("https://c/otlp/v1/traces?k=1", "https://c")),
        Some(("https://c/otlp/v1/metrics?k=1", "https://c")),
    );
    check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:9/in", Some(("http://c:9/in", "http://c:9")), None);
    check(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:9 OTEL_EXPORTER_OTLP_ENDPOINT=http://d",
        Some(("http://c:9/", "http://c:9")),
        Some(("http://d/v1/metrics", "http://d")),
    );
    check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c:4317", Some(("https://c:4317/", "https://c:4317")), None);
    check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c:4317 OTEL_EXPORTER_OTLP_INSECURE=true", Some(("http://c:4317/", "http://c:4317")), None);
    check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://[::1]/in", Some(("http://[::1]/in", "http://[::1]")), None);
    check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://me:pw@c/in", Some(("http://me:pw@c/in", "http://me:pw@c")), None);
    check("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://[::1]:9", None, Some(("http://[::1]:9/", "http://[::1]:9")));
}

#[test]
fn settings_of_a_signal_win_over_general_ones_and_secrets_are_not_said() {
    let injection = inject(
        "OTEL_EXPORTER_OTLP_ENDPOINT=https://me:pass@c OTEL_EXPORTER_OTLP_HEADERS=api-key=se%3Dcret,X-B=2,broken
         OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=Bearer%20t OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc
         OTEL_EXPORTER_OTLP_PROTOCOL=http/json OTEL_EXPORTER_OTLP_TIMEOUT=2500 OTEL_EXPORTER_OTLP_COMPRESSION=gzip
         OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=none OTEL_EXPORTER_OTLP_CERTIFICATE=/ca OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY=/key",
        Mode::Auto,
    );
    assert_eq!(injection.notes.iter().map(|n| n.code).collect::<Vec<_>>(), ["headers_unreadable", "forwarded"]);
    let said = format!("{:?} {:?}", injection.notes, injection.forward.as_ref().unwrap().logs.as_ref().unwrap().headers.len());
    assert!(!said.contains("cret") && !said.contains("pass"), "{said}");
    let user = injection.forward.unwrap();
    let said = format!("{user:?}");
    assert!(!said.contains("cret") && !said.contains("pass"), "{said}");
    let common = SignalEndpoint {
        timeout_millis: Some(2500),
        certificate: Some("/ca".into()),
        ..endpoint("https://me:pass@c/v1/traces", "https://me:pass@c")
    };
    let authorization = vec![("authorization".to_owned(), "Bearer t".to_owned())];
    assert_eq!(user.traces, Some(SignalEndpoint { protocol: Some(Protocol::Grpc), headers: authorization, ..common.clone() }));
    let general = vec![("api-key".to_owned(), "se=cret".to_owned()), ("x-b".to_owned(), "2".to_owned())];
    let logs = SignalEndpoint {
        http_url: "https://me:pass@c/v1/logs".into(),
        protocol: Some(Protocol::HttpJson),
        headers: general,
        compression: Compression::Gzip,
        client_key: Some("/key".into()),
        ..common
    };
    assert_eq!(user.logs, Some(logs));
}

#[test]
fn an_endpoint_that_is_not_understood_is_left_alone() {
    for unknown in [
        "unix:///run/c.sock",
        "ftp://c",
        "http://",
        "http://:4318",
        "collector",
        "dns:///c:4317",
        "http://127.0.0.1:99999",
        "https://c:4318x/otlp",
        "http://me:pass@c:-1",
        "http://[::1]:65536",
        "c:65536",
    ] {
        let general = format!("OTEL_EXPORTER_OTLP_ENDPOINT={unknown}");
        check(&general, &general, &["endpoint_unknown"]);
        let own = format!("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT={unknown}");
        check(&own, &format!("{own} OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:41234"), &["endpoint_unknown"]);
    }
}
