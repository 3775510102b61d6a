//! The last spans of a program, however it ends, and spans where none can be made: nothing is lost without a word, nothing panics, nothing
//! hangs. Needs a `main` of its own. Run with the name of a role, the program does in a process of its own what is tried.

#[cfg(target_os = "linux")]
#[path = "it/collector.rs"]
#[allow(dead_code, reason = "shared with the other test, which uses all of it")]
mod collector;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "forks, exit handlers and signal handlers")]
#[allow(clippy::exit, clippy::print_stdout, reason = "roles end in every way there is, and say what they counted")]
mod linux {
    use std::cell::RefCell;
    use std::process::{Command, ExitCode, Output};
    use std::sync::Barrier;
    use std::time::Duration;

    use tracing::{Span, info_span};

    use crate::collector::{Collector, Reply, dead_endpoint};

    /// Makes a span when it is dropped, and leaves one.
    struct Late(&'static str, RefCell<Option<tracing::span::EnteredSpan>>);

    impl Late {
        const fn new(name: &'static str) -> Self {
            Late(name, RefCell::new(None))
        }
    }

    impl Drop for Late {
        fn drop(&mut self) {
            drop(info_span!("late", thread = self.0).entered());
            self.1.take();
            tracing::info!("an event of a thread that ends");
        }
    }

    thread_local! {
        static FIRST: Late = const { Late::new("first") };
        static LAST: Late = const { Late::new("last") };
    }

    /// A value whose text runs code of the program in the middle of the making of a span.
    struct Text(fn());

    impl std::fmt::Debug for Text {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            (self.0)();
            f.write_str("text")
        }
    }

    extern "C" fn make_a_span() {
        drop(info_span!("of a handler").entered());
    }

    extern "C" fn exit_in_a_handler(_: i32) {
        std::process::exit(9);
    }

    extern "C" fn span_in_a_handler(_: i32) {
        make_a_span();
    }

    fn on_signal(handler: extern "C" fn(i32)) {
        // SAFETY: the handler has the required signature and lives as long as the program.
        unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
    }

    fn raise() {
        // SAFETY: sends a signal that has a handler to this thread.
        unsafe { libc::raise(libc::SIGUSR1) };
    }

    pub(crate) fn main() -> ExitCode {
        let Some(role) = std::env::args().nth(1).and_then(|role| role.strip_prefix("role:").map(str::to_owned)) else {
            longpole_testing::run_named(&TESTS);
            return ExitCode::SUCCESS;
        };
        match role.as_str() {
            "return" => {
                std::mem::forget(longpole_sdk::init());
                info_span!("a");
            }
            "let-underscore" => {
                let _ = longpole_sdk::init();
                info_span!("a");
            }
            "guard" => {
                let guard = longpole_sdk::init();
                info_span!("a");
                drop(guard);
                info_span!("b");
            }
            "exit" => {
                let _guard = longpole_sdk::init();
                info_span!("a");
                std::process::exit(3);
            }
            "exit-on-a-thread" => {
                let _guard = longpole_sdk::init();
                std::thread::spawn(|| {
                    info_span!("a");
                    std::process::exit(3);
                })
                .join()
                .unwrap();
            }
            "panic" => {
                let _guard = longpole_sdk::init();
                info_span!("a");
                panic!("as expected");
            }
            "layer" => {
                use tracing_subscriber::prelude::*;
                tracing_subscriber::registry().with(longpole_sdk::layer()).init();
                info_span!("a");
            }
            "run" => {
                longpole_sdk::run(|| drop(info_span!("a")));
                info_span!("b");
            }
            "fork" => fork(),
            "storage" => {
                let _guard = longpole_sdk::init();
                let use_storage = || {
                    FIRST.with(|_| ());
                    info_span!("a").in_scope(|| LAST.with(|last| last.1.replace(Some(info_span!("left late").entered()))));
                };
                std::thread::spawn(use_storage).join().unwrap();
                // It gets the number of the one that has ended, and nothing of what that one was inside of.
                std::thread::spawn(|| assert!(Span::current().is_none())).join().unwrap();
                std::thread::spawn(|| FIRST.with(|_| ())).join().unwrap();
                use_storage();
            }
            "handlers-at-exit" => {
                // SAFETY: the handler has the required signature and lives as long as the program.
                unsafe { libc::atexit(make_a_span) };
                let _guard = longpole_sdk::init();
                // SAFETY: as above.
                unsafe { libc::atexit(make_a_span) };
                info_span!("a");
            }
            "signals" => {
                let guard = longpole_sdk::init();
                on_signal(span_in_a_handler);
                // In code of the program it is a span like any other.
                info_span!("a", text = ?Text(raise));
                raise();
                let spans = std::thread::spawn(|| (0..20_000).for_each(|_| drop(info_span!("b").entered())));
                spans.join().unwrap();
                assert_eq!(guard.flush().refused, 0);
            }
            "exit-in-a-handler" => {
                let _guard = longpole_sdk::init();
                on_signal(exit_in_a_handler);
                info_span!("a");
                info_span!("b", text = ?Text(raise));
            }
            "panic-in-a-value" => {
                let _guard = longpole_sdk::init();
                let spans = || drop(info_span!("never", text = ?Text(|| panic!("as expected"))));
                assert!(std::panic::catch_unwind(spans).is_err());
                drop(info_span!("a", text = ?Text(|| drop(info_span!("b")))));
            }
            "threads" => threads(),
            "no-files" => {
                let none = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
                // SAFETY: a valid limit.
                unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) };
                let _guard = longpole_sdk::init();
                info_span!("a").in_scope(|| ());
            }
            other => panic!("{other} is no role"),
        }
        ExitCode::SUCCESS
    }

    /// More threads at a time than `tracing-subscriber` has numbers for.
    fn threads() {
        const THREADS: usize = 4_400;
        let guard = longpole_sdk::builder().shutdown_within(Duration::from_secs(60)).init();
        let all_live = Barrier::new(THREADS);
        let outer = info_span!("outer");
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (all_live, outer) = (&all_live, outer.clone());
                let run = move || {
                    let span = info_span!(parent: &outer, "a").entered();
                    all_live.wait();
                    drop(span);
                    drop(outer);
                };
                std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, run).unwrap();
            }
        });
        drop(outer);
        // The threads are gone, and there is room again.
        info_span!("a");
        let counts = guard.flush();
        println!("{} {} {}", counts.emitted, counts.exported, counts.refused);
    }

    /// A child that ends by `exit` has its parent's handlers, and a copy of the parent's spans.
    fn fork() {
        let _guard = longpole_sdk::init();
        info_span!("a");
        // SAFETY: the child makes a span and ends.
        match unsafe { libc::fork() } {
            0 => {
                info_span!("of a child");
                std::process::exit(0)
            }
            child => {
                let mut status = 0;
                // SAFETY: waits for a child, and `status` is a valid place for the answer.
                unsafe { libc::waitpid(child, &mut status, 0) };
                assert_eq!(status, 0);
            }
        }
    }

    fn run_role(role: &str, vars: &[(&str, &str)]) -> (Output, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("role:{role}"));
        for inherited in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "TRACEPARENT", "RUST_LOG", "LONGPOLE_JOURNAL_DIR"] {
            command.env_remove(inherited);
        }
        // What is sent by its turn does not come to anybody's help.
        let output = command.env("OTEL_BSP_SCHEDULE_DELAY", "600000").envs(vars.iter().copied()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, stderr)
    }

    /// Names of the spans that arrive from a role which ends with this code, in order; and what it says.
    fn arrived(role: &str, code: i32, more: &[(&str, &str)]) -> (Vec<String>, String) {
        let collector = Collector::start(&[]);
        let vars: Vec<(&str, &str)> =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.endpoint)].into_iter().chain(more.iter().copied()).collect();
        let (output, stderr) = run_role(role, &vars);
        assert_eq!(output.status.code(), Some(code), "{role}: {stderr}");
        let mut names: Vec<String> = collector.spans().into_iter().map(|span| span.name).collect();
        names.sort();
        (names, stderr)
    }

    const TESTS: [(&str, fn()); 5] = [
        ("however_a_program_ends_its_spans_arrive", however_a_program_ends_its_spans_arrive),
        ("an_outage_is_reported_once_and_not_waited_for", an_outage_is_reported_once_and_not_waited_for),
        ("what_is_made_while_a_thread_ends_is_sent_or_counted", what_is_made_while_a_thread_ends_is_sent_or_counted),
        ("handlers_and_values_may_make_spans", handlers_and_values_may_make_spans),
        ("more_threads_than_there_are_numbers_are_counted", more_threads_than_there_are_numbers_are_counted),
    ];

    fn however_a_program_ends_its_spans_arrive() {
        let standard = ["batch-span-processor", "batch-span-processor-experimental-async-runtime", "simple"];
        for processor in standard.iter().filter(|_| cfg!(feature = "opentelemetry")).chain(&["longpole"]) {
            spans_arrive_by(processor);
        }
    }

    fn spans_arrive_by(processor: &str) {
        let processor = [("LONGPOLE_SPAN_PROCESSOR", processor)];
        for (role, code, expected) in [
            ("return", 0, "a"),
            ("let-underscore", 0, "a"),
            ("guard", 0, "a b"),
            ("exit", 3, "a"),
            ("exit-on-a-thread", 3, "a"),
            ("panic", 101, "a"),
            ("fork", 0, "a"),
        ] {
            let (names, stderr) = arrived(role, code, &processor);
            assert_eq!(names.join(" "), expected, "{role}: {stderr}");
            assert!(!stderr.contains("longpole-sdk: "), "{role}: {stderr}");
        }
        let (names, stderr) = arrived("layer", 0, &[]);
        assert_eq!(names, ["a"], "{stderr}");
        // The program has said that this is the end; later spans are reported.
        let (names, stderr) = arrived("run", 0, &processor);
        assert_eq!(names, ["a"]);
        assert!(stderr.contains("1 of 2 spans were lost") && stderr.contains("1 ended after the shutdown"), "{stderr}");
    }

    fn an_outage_is_reported_once_and_not_waited_for() {
        for role in ["return", "guard", "exit"] {
            let endpoint = dead_endpoint();
            let (output, stderr) = run_role(role, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
            assert!(matches!(output.status.code(), Some(0 | 3)), "{role}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{role}: {stderr}");
            assert!(stderr.contains("spans were lost on the way to"), "{role}: {stderr}");
            // No other timeout ends this but the one of the end.
            let collector = Collector::start(&[Reply::Stall; 4]);
            let no_limits = [("OTEL_EXPORTER_OTLP_TIMEOUT", "0"), ("OTEL_BSP_EXPORT_TIMEOUT", "0")];
            let vars: Vec<_> = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.endpoint)].into_iter().chain(no_limits).collect();
            let (output, stderr) = run_role(role, &vars);
            assert!(matches!(output.status.code(), Some(0 | 3)), "{role}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{role}: {stderr}");
            assert!(stderr.contains("spans were not sent"), "{role}: {stderr}");
        }
        // Descriptors: none for a connection.
        let (names, stderr) = arrived("no-files", 0, &[]);
        assert!(names.is_empty());
        assert!(stderr.contains("1 of 1 spans were lost"), "{stderr}");
    }

    fn what_is_made_while_a_thread_ends_is_sent_or_counted() {
        let (names, stderr) = arrived("storage", 0, &[]);
        let came = |name: &str| names.iter().filter(|known| *known == name).count();
        assert_eq!((came("a"), came("left late")), (2, 2), "{names:?} {stderr}");
        // Storage that a thread had before its first span goes after what spans need: too late.
        let refused = 5 - came("late");
        assert!(stderr.contains(&format!("; {refused} could not be made")), "{names:?} {stderr}");
        let (names, stderr) = arrived("handlers-at-exit", 0, &[]);
        assert_eq!(names, ["a"]);
        assert!(stderr.is_empty() || stderr.contains("could not be made"), "{stderr}");
    }

    fn handlers_and_values_may_make_spans() {
        let (names, stderr) = arrived("signals", 0, &[("OTEL_BSP_MAX_QUEUE_SIZE", "30000")]);
        assert_eq!(names.iter().filter(|name| *name == "of a handler").count(), 2, "{stderr}");
        assert_eq!(names.len(), 20_003, "{stderr}");
        let (names, stderr) = arrived("exit-in-a-handler", 9, &[]);
        assert_eq!(names, ["a"], "{stderr}");
        let (names, stderr) = arrived("panic-in-a-value", 0, &[]);
        assert_eq!(names, ["a", "b"], "{stderr}");
    }

    fn more_threads_than_there_are_numbers_are_counted() {
        let collector = Collector::start(&[]);
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.endpoint), ("RUST_MIN_STACK", "65536")];
        let (output, stderr) = run_role("threads", &vars);
        assert!(output.status.success(), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let counts: Vec<usize> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [emitted, exported, refused] = counts[..] else { panic!("{said}") };
        assert_eq!((emitted, exported + refused), (4_402, 4_402), "{said} {stderr}");
        assert!(refused > 0, "{said}");
        assert_eq!(collector.spans().len(), exported);
    }
}
