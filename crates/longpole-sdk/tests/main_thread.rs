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

#[cfg(target_os = "linux")]
#[path = "it/journal_file.rs"]
mod journal_file;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "forks")]
mod linux {
    use std::process::{Command, ExitCode, Output};
    use std::sync::atomic::{AtomicBool, Ordering};

    use longpole_sdk::SpanExt;
    use tracing::info_span;

    use crate::collector::{Collector, dead_endpoint, tree};
    use crate::journal_file::{Journal, journals_in};
    use crate::stack_record::read;

    pub(crate) fn main() -> ExitCode {
        match std::env::args().nth(1).as_deref() {
            Some("role:record") => read_the_record_in_and_out_of_run(),
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
            Some("role:signals") => look_at_the_signals_of_the_exporter(),
            Some("role:fork") => fork_while_threads_make_spans(),
            Some("role:journal") => make_spans_on_threads_and_in_a_child(),
            Some("role:many-entries") => many_entries(),
            // Whatever libtest options a runner passes.
            _ => longpole_testing::run_named(&TESTS),
        }
        ExitCode::SUCCESS
    }

    fn run_role(role: &str, vars: &[(&str, &str)]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("role:{role}"));
        let inherited =
            ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "TRACEPARENT", "RUST_LOG", "OTEL_TRACES_SAMPLER", "LONGPOLE_JOURNAL_DIR"];
        for inherited in inherited {
            command.env_remove(inherited);
        }
        command.envs(vars.iter().copied()).output().unwrap()
    }

    fn stderr(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    const TESTS: [(&str, fn()); 10] = [
        ("the_record_of_the_main_thread_lies_in_a_frame_of_run", the_record_of_the_main_thread_lies_in_a_frame_of_run),
        ("run_sends_the_spans_of_a_program_that_panics", run_sends_the_spans_of_a_program_that_panics),
        ("traceparent_of_the_environment_is_the_parent_of_the_spans", traceparent_of_the_environment_is_the_parent_of_the_spans),
        (
            "run_returns_what_the_program_returned_and_rust_log_chooses_spans",
            run_returns_what_the_program_returned_and_rust_log_chooses_spans,
        ),
        ("a_dead_collector_and_a_bad_setting_are_a_line_each", a_dead_collector_and_a_bad_setting_are_a_line_each),
        ("the_exporter_takes_none_of_the_programs_signals", the_exporter_takes_none_of_the_programs_signals),
        ("children_of_forks_publish_and_send_nothing", children_of_forks_publish_and_send_nothing),
        ("a_sdk_that_is_disabled_says_nothing", a_sdk_that_is_disabled_says_nothing),
        ("threads_and_children_have_journals_of_their_own", threads_and_children_have_journals_of_their_own),
        ("a_program_goes_on_without_a_journal", a_program_goes_on_without_a_journal),
    ];

    fn the_record_of_the_main_thread_lies_in_a_frame_of_run() {
        let output = run_role("record", &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
    }

    fn run_sends_the_spans_of_a_program_that_panics() {
        let collector = Collector::start(&[]);
        let output = run_role("panic", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)]);
        assert_eq!(output.status.code(), Some(101));
        assert_eq!(tree(&collector.spans()), "doomed\n");
    }

    fn traceparent_of_the_environment_is_the_parent_of_the_spans() {
        let collector = Collector::start(&[]);
        let output = run_role("parent", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(tree(&collector.spans()), "parent\n  worked\n");
    }

    fn run_returns_what_the_program_returned_and_rust_log_chooses_spans() {
        let collector = Collector::start(&[]);
        let output = run_role("code", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint), ("RUST_LOG", "warn")]);
        assert_eq!(output.status.code(), Some(7));
        assert!(collector.spans().is_empty());
    }

    fn a_dead_collector_and_a_bad_setting_are_a_line_each() {
        let endpoint = dead_endpoint();
        let output = run_role("code", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "soon")]);
        assert_eq!(output.status.code(), Some(7));
        let told = stderr(&output);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert_eq!(lines[0], "longpole-sdk: OTEL_BSP_SCHEDULE_DELAY=soon is not usable; using the default 5000");
        assert!(lines[1].starts_with(&format!("longpole-sdk: 1 of 1 spans were lost on the way to {endpoint}/v1/traces: ")), "{told}");
    }

    fn the_exporter_takes_none_of_the_programs_signals() {
        let output = run_role("signals", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &dead_endpoint())]);
        assert!(output.status.success(), "{}", stderr(&output));
    }

    fn children_of_forks_publish_and_send_nothing() {
        let collector = Collector::start(&[]);
        let output = run_role("fork", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "1")]);
        assert!(output.status.success(), "{}", stderr(&output));
        let spans = collector.spans();
        assert!(!spans.is_empty() && spans.iter().all(|span| span.name != "of a child"));
    }

    fn a_sdk_that_is_disabled_says_nothing() {
        let output = run_role("code", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &dead_endpoint()), ("OTEL_SDK_DISABLED", "true")]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(7), ""));
    }

    /// A directory that is gone at the end.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("longpole-sdk-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn threads_and_children_have_journals_of_their_own() {
        let folder = Folder::new("journals");
        let output = run_role("journal", &[("LONGPOLE_JOURNAL_DIR", folder.path())]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        let journals = journals_in(&folder.0);
        let shown = |journal: &Journal| format!("{} {}", journal.spans(), if journal.is_ended { "ended" } else { "open" });
        let shown: Vec<String> = journals.iter().map(shown).collect();
        // The child's begins with its own first span, and stays open: it ends with the process.
        assert_eq!(shown, ["1.2.1.-.3.- ended", "4.-.5.- ended", "6.1.- open"]);
        let [main, thread, child] = journals.as_slice() else { panic!("{shown:?}") };
        assert!(main.pid == main.tid && thread.pid == main.pid && thread.tid != main.tid && child.pid != main.pid);
        assert!(journals.iter().all(|journal| journal.times.is_sorted() && journal.times[0] >= journal.made_at));
    }

    /// What the test above expects, span by its number.
    fn make_spans_on_threads_and_in_a_child() {
        let enter = |number: u8| longpole_sdk::enter_span_context([1; 16], [number; 8], 1);
        longpole_sdk::run(|| {
            let outer = enter(1);
            drop(enter(2));
            std::thread::spawn(move || {
                drop(enter(4));
                drop(enter(5));
                // A thread without spans has no journal.
                std::thread::spawn(longpole_sdk::current_traceparent).join().unwrap();
            })
            .join()
            .unwrap();
            // SAFETY: the child uses what is made for it, and ends by `_exit`.
            match unsafe { libc::fork() } {
                0 => {
                    drop(enter(6));
                    drop(outer);
                    // SAFETY: ends the process, without any of the parent's handlers.
                    unsafe { libc::_exit(0) }
                }
                child => {
                    // SAFETY: waits for a child whose status nobody wants.
                    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                }
            }
            drop(outer);
            drop(enter(3));
        });
    }

    fn many_entries() {
        longpole_sdk::run(|| {
            for _ in 0..5_000 {
                drop(longpole_sdk::enter_span_context([1; 16], [2; 8], 1));
            }
        });
    }

    fn a_program_goes_on_without_a_journal() {
        let folder = Folder::new("no-journals");
        for vars in [vec![], vec![("LONGPOLE_JOURNAL_DIR", folder.path()), ("OTEL_SDK_DISABLED", "true")]] {
            let output = run_role("many-entries", &vars);
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
            assert_eq!(journals_in(&folder.0).len(), 0);
        }
        // The recorder is gone, and its directory with it.
        let output = run_role("many-entries", &[("LONGPOLE_JOURNAL_DIR", "/nonexistent/journals")]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let output = run_role("many-entries", &[("LONGPOLE_JOURNAL_DIR", "/etc/passwd")]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        // Whoever makes a file larger than this gets a signal that ends the program.
        for limit in ["0", "100"] {
            let script = format!("ulimit -f {limit} && exec \"$0\" role:many-entries");
            let mut limited = Command::new("sh");
            limited.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env("LONGPOLE_JOURNAL_DIR", folder.path());
            assert_eq!(limited.output().unwrap().status.code(), Some(0), "ulimit -f {limit}");
            assert_eq!(journals_in(&folder.0).len(), 0);
        }
        a_full_file_system_ends_a_journal(&folder);
    }

    /// A write to memory that is not there would kill the program by SIGBUS.
    fn a_full_file_system_ends_a_journal(folder: &Folder) {
        let me = std::env::current_exe().unwrap();
        let (me, path) = (me.to_str().unwrap(), folder.path());
        let script = format!("mount -t tmpfs -o size=64k none {path} && {me} role:many-entries && cp {path}/* {path}.kept");
        let mounted = Command::new("unshare").args(["--mount", "sh", "-c", &script]).env("LONGPOLE_JOURNAL_DIR", path).output();
        let kept = std::path::PathBuf::from(format!("{path}.kept"));
        let Ok(bytes) = std::fs::read(&kept) else {
            return longpole_testing::skip("a full file system ends a journal", &format!("none can be mounted here: {mounted:?}"));
        };
        std::fs::remove_file(&kept).unwrap();
        let output = mounted.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("no room for more of it"), "{}", stderr(&output));
        let journal = Journal::parse(&bytes);
        assert!(journal.state == 2 && journal.times.len() > 400, "{journal:?}");
    }

    fn read_the_record_in_and_out_of_run() {
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

    /// A program that waits for signals in its own way must not lose them to a thread it does not know of.
    fn look_at_the_signals_of_the_exporter() {
        longpole_sdk::run(|| {
            // It begins with the first span, and names itself when it runs.
            info_span!("first").in_scope(|| ());
            let exporter = || {
                let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
                tasks.into_iter().find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm == "longpole-sdk\n"))
            };
            let exporter = std::iter::repeat_with(exporter).inspect(|_| std::thread::yield_now()).flatten().next();
            let status = std::fs::read_to_string(exporter.unwrap().join("status")).unwrap();
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
            let is_blocked = |signal: i32| blocked & 1 << (signal - 1) != 0;
            assert!([libc::SIGINT, libc::SIGTERM, libc::SIGCHLD, libc::SIGUSR1].into_iter().all(is_blocked));
            assert!(![libc::SIGSEGV, libc::SIGBUS].into_iter().any(is_blocked));
        });
    }

    const FORKS: usize = 50;

    /// Forks while other threads make spans: each child has a record of its own, makes spans, shuts down, and ends.
    fn fork_while_threads_make_spans() {
        let done = AtomicBool::new(false);
        longpole_sdk::run(|| {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while !done.load(Ordering::Relaxed) {
                            info_span!("meanwhile").in_scope(|| ());
                        }
                    });
                }
                for _ in 0..FORKS {
                    let span = info_span!("forks").entered();
                    // SAFETY: the child runs code of its own thread only, and what that code uses of other threads is what is
                    // tested here; it leaves by `_exit`, and an alarm ends it should it hang.
                    match unsafe { libc::fork() } {
                        0 => {
                            // SAFETY: takes a number of seconds.
                            unsafe { libc::alarm(60) };
                            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| in_forked_child(&span)));
                            // SAFETY: ends the process, without any of the parent's handlers.
                            unsafe { libc::_exit(i32::from(well.is_err())) }
                        }
                        child => {
                            let mut status = 0;
                            // SAFETY: the pointer is to a local that outlives the call.
                            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                            assert_eq!(status, 0);
                        }
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
        });
    }

    fn in_forked_child(span: &tracing::Span) {
        assert_eq!(read().unwrap().traceparent(), span.traceparent());
        let own = info_span!("of a child").entered();
        assert_eq!(read().unwrap().traceparent(), own.traceparent());
        drop(own);
        std::thread::spawn(|| info_span!("of a child").in_scope(|| assert!(read().is_some()))).join().unwrap();
        assert_eq!(longpole_sdk::shutdown(std::time::Duration::from_secs(600)), longpole_sdk::SpanCounts::default());
    }
}
