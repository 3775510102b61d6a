//! The main thread's record: in a frame of `run`, not in thread-local storage. Needs a `main` of its own, which libtest does not
//! give; it ends as libtest would.
//!
//! Run with the name of a role, the same program does in a process of its own what would disturb the others: it panics, exits
//! with a code, or finds nobody to send to.

#[cfg(target_os = "linux")]
#[path = "it/collector.rs"]
#[allow(dead_code, reason = "shared with the other test, which uses all of it")]
mod collector;
#[cfg(target_os = "linux")]
#[path = "it/stack_record.rs"]
#[allow(dead_code, reason = "shared with the other test, which uses all of it")]
mod stack_record;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::{Command, ExitCode, Output};

    use longpole_sdk::SpanExt;
    use tracing::info_span;

    use crate::collector::{Collector, dead_endpoint, tree};
    use crate::stack_record::read;

    pub(crate) fn main() -> ExitCode {
        match std::env::args().nth(1).as_deref() {
            Some("role:record") => record_in_a_frame_of_run(),
            Some("role:panic") => longpole_sdk::run(|| {
                let _span = info_span!("doomed").entered();
                panic!("as expected");
            }),
            Some("role:code") => {
                return longpole_sdk::run(|| {
                    info_span!("worked");
                    ExitCode::from(7)
                });
            }
            Some("role:parent") => longpole_sdk::run(|| {
                let span = info_span!("parent").entered();
                let status = Command::new(std::env::current_exe().unwrap())
                    .arg("role:code")
                    .env("TRACEPARENT", span.traceparent().unwrap())
                    .status();
                assert_eq!(status.unwrap().code(), Some(7));
            }),
            // Whatever libtest options a runner passes.
            _ => all(),
        }
        ExitCode::SUCCESS
    }

    fn run_role(role: &str, vars: &[(&str, &str)]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("role:{role}"));
        for inherited in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "TRACEPARENT", "RUST_LOG", "OTEL_TRACES_SAMPLER"] {
            command.env_remove(inherited);
        }
        command.envs(vars.iter().copied()).output().unwrap()
    }

    fn stderr(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn all() {
        let output = run_role("record", &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");

        let collector = Collector::start(&[]);
        let output = run_role("panic", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)]);
        assert_eq!(output.status.code(), Some(101));
        assert_eq!(tree(&collector.spans()), "doomed\n");

        let collector = Collector::start(&[]);
        let output = run_role("parent", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(tree(&collector.spans()), "parent\n  worked\n");

        let collector = Collector::start(&[]);
        let output = run_role("code", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint), ("RUST_LOG", "warn")]);
        assert_eq!(output.status.code(), Some(7));
        assert!(collector.spans().is_empty());

        let endpoint = dead_endpoint();
        let output = run_role("code", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "soon")]);
        assert_eq!(output.status.code(), Some(7));
        let told = stderr(&output);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert_eq!(lines[0], "longpole-sdk: OTEL_BSP_SCHEDULE_DELAY=soon is not usable, the default 5000 is used");
        assert!(lines[1].starts_with(&format!("longpole-sdk: 1 of 1 spans were lost on the way to {endpoint}/v1/traces: ")), "{told}");

        let output = run_role("code", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_SDK_DISABLED", "true")]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(7), ""));
    }

    fn record_in_a_frame_of_run() {
        assert_eq!(read(), None, "a record outside of run");
        let seen = longpole_sdk::run(|| {
            assert_eq!(read().unwrap().traceparent(), None);
            let outer = info_span!("outer").entered();
            let inner = info_span!("inner").entered();
            let record = read().unwrap();
            assert_eq!(record.traceparent(), inner.traceparent());
            drop(inner);
            assert_eq!(read().unwrap().traceparent(), outer.traceparent());
            // Another thread has its own.
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(read().and_then(|record| record.traceparent()), None));
            });
            // A run inside of a run changes nothing.
            longpole_sdk::run(|| assert_eq!(read().unwrap().traceparent(), outer.traceparent()));
            assert_eq!(read().unwrap().traceparent(), outer.traceparent());
            record.distance
        });
        assert!(seen < 16 << 10, "{seen} bytes away");
        assert_eq!(read(), None, "a record after run");
    }
}
