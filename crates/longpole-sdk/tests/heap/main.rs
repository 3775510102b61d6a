//! Heap profiles of programs whose memory is known. Needs a `main` and an allocator of its own. Run with the name of a role, the program does in a
//! process of its own what is tried, and writes its profile to stdout.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: longpole_sdk::heap::Allocator = longpole_sdk::heap::Allocator::new();

#[cfg(target_os = "linux")]
mod pprof;
#[cfg(target_os = "linux")]
mod roles;

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, ExitCode, Output};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use crate::pprof::{Profile, Row};
    use crate::roles;

    pub(crate) fn main() -> ExitCode {
        if let Some(role) = std::env::args().nth(1).and_then(|role| role.strip_prefix("role:").map(str::to_owned)) {
            roles::play(&role);
            return ExitCode::SUCCESS;
        }
        longpole_testing::run_named(&TESTS);
        ExitCode::SUCCESS
    }

    const TESTS: [(&str, fn()); 9] = [
        ("memory_in_use_has_its_function_and_its_span", memory_in_use_has_its_function_and_its_span),
        ("blocks_that_other_threads_free_are_free", blocks_that_other_threads_free_are_free),
        ("a_vector_that_grows_is_one_block", a_vector_that_grows_is_one_block),
        ("unusual_blocks_count_as_others_do", unusual_blocks_count_as_others_do),
        ("a_forked_child_runs_on_without_samples", a_forked_child_runs_on_without_samples),
        ("threads_that_end_and_handlers_at_the_exit_may_allocate", threads_that_end_and_handlers_at_the_exit_may_allocate),
        ("a_deep_stack_is_cut_and_the_profile_says_so", a_deep_stack_is_cut_and_the_profile_says_so),
        ("profiles_are_pushed_and_the_last_one_at_the_exit", profiles_are_pushed_and_the_last_one_at_the_exit),
        ("a_server_that_is_not_there_is_reported_once", a_server_that_is_not_there_is_reported_once),
    ];

    fn run_role(role: &str, vars: &[(&str, &str)]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("role:{role}"));
        for inherited in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "LONGPOLE_HEAP_SERVER", "LONGPOLE_JOURNAL_DIR"] {
            command.env_remove(inherited);
        }
        let output = command.envs(vars.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{role}: {:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        output
    }

    fn stderr(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The profile that a role writes.
    fn profile(role: &str) -> Profile {
        let output = run_role(role, &[]);
        assert_eq!(stderr(&output), "", "{role}");
        Profile::decode_all(&output.stdout)
    }

    /// Five deviations of an estimate of `count` blocks of this size: one test in two million fails by chance.
    fn tolerance(count: f64, bytes: f64, rate: f64) -> f64 {
        let probability = 1.0 - (-bytes / rate).exp();
        5.0 * bytes * (count * (1.0 - probability) / probability).sqrt()
    }

    fn memory_in_use_has_its_function_and_its_span() {
        let output = run_role("known", &[]);
        let profile = Profile::decode_all(&output.stdout);
        let said = stderr(&output);
        let [traceparent, ..] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
        let [_, trace_id, span_id, _] = traceparent.split('-').collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert_eq!(profile.types(), ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]);
        assert_eq!(profile.default_type(), "inuse_space");
        let (count, bytes) = (roles::KNOWN_BLOCKS as f64, roles::KNOWN_BYTES as f64);
        // The vector of all blocks is so much larger than the rate that it is surely a sample.
        let vector = count * 16.0;
        let near = |found: i64, expected: f64, what: &str| {
            let (error, allowed) = (found as f64 - expected, tolerance(count, bytes, roles::KNOWN_RATE as f64));
            assert!(error.abs() < allowed, "{what}: {found} of {expected} is {error} off, {allowed} is allowed");
        };
        let kept: Vec<Row> = profile.rows_of("keeps").into_iter().filter(|row| row.values[3] > 0).collect();
        near(kept.iter().map(|row| row.values[3]).sum(), count * bytes + vector, "in use by the one that keeps");
        for row in &kept {
            let label = |name: &str| row.labels.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
            assert_eq!([label("trace_id"), label("span_id"), label("span_name")], [Some(trace_id), Some(span_id), Some("keeping")]);
            assert!(row.functions.iter().any(|function| function.ends_with("roles::known")), "{row:?}");
            assert!(!row.functions[0].contains("__rust_") && !row.functions[0].contains("Allocator"), "{row:?}");
        }
        let freed = profile.rows_of("frees");
        assert_eq!(freed.iter().map(|row| row.values[2] + row.values[3]).sum::<i64>(), 0, "{freed:?}");
        near(freed.iter().map(|row| row.values[1]).sum(), count * bytes, "allocated by the one that frees");
        near(profile.rows_of("keeps").iter().map(|row| row.values[1]).sum(), count * bytes + vector, "allocated by the one that keeps");
        let objects = kept.iter().map(|row| row.values[2]).sum::<i64>() as f64;
        assert!((objects - 1.0 - count).abs() * bytes < tolerance(count, bytes, roles::KNOWN_RATE as f64), "{objects}");
    }

    /// With a rate of 1 byte each block is sampled and stands for itself: the numbers are exact.
    fn blocks_that_other_threads_free_are_free() {
        let profile = profile("threads");
        let rows = profile.rows_of("allocates_for_others");
        let sums = Row::sums(&rows);
        assert_eq!(sums, [(roles::THREADS * roles::BLOCKS) as i64, (roles::THREADS * roles::BLOCKS * 24) as i64, 0, 0]);
    }

    fn a_vector_that_grows_is_one_block() {
        let profile = profile("realloc");
        let sums = Row::sums(&profile.rows_of("grows"));
        // From 4 bytes by doubling: 4, 8 … 2^20.
        assert_eq!(sums, [19, (2 << 20) - 4, 1, 1 << 20]);
        assert_eq!(Row::sums(&profile.rows_of("shrinks")), [2, (1 << 20) + 100, 1, 100]);
    }

    fn unusual_blocks_count_as_others_do() {
        let profile = profile("unusual");
        assert_eq!(Row::sums(&profile.rows_of("over_aligned")), [2, 2 * 8_192, 1, 8_192]);
        assert_eq!(Row::sums(&profile.rows_of("without_size")), [0; 4]);
        assert_eq!(Row::sums(&profile.rows_of("zeroed")), [1, 5_000, 1, 5_000]);
        // The block that could not grow is still in use, and the one that could not be allocated never was.
        assert_eq!(Row::sums(&profile.rows_of("too_large")), [1, 300, 1, 300]);
    }

    fn a_forked_child_runs_on_without_samples() {
        let profile = profile("fork");
        assert_eq!(Row::sums(&profile.rows_of("before_the_fork")), [1, 77, 1, 77]);
    }

    fn threads_that_end_and_handlers_at_the_exit_may_allocate() {
        let profile = profile("storage");
        // Each thread allocates in its life and in two destructors, and frees all of it.
        assert_eq!(Row::sums(&profile.rows_of("in_a_destructor")), [2 * 50, 2 * 50 * 64, 0, 0]);
    }

    fn a_deep_stack_is_cut_and_the_profile_says_so() {
        let profile = profile("deep");
        let rows = profile.rows_of("deep_down");
        assert_eq!(Row::sums(&rows)[2..], [1, 1_000]);
        // Without those of the allocator.
        assert!((120..128).contains(&rows[0].functions.len()), "{rows:?}");
        assert!(profile.comments().iter().any(|comment| comment.contains("more than 128 frames")), "{:?}", profile.comments());
    }

    /// A server of some lines: the address and the body of each push.
    fn server() -> (String, Receiver<(String, Profile)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(push) = read_push(&mut reader, &stream) {
                        let _ = sender.send(push);
                    }
                });
            }
        });
        (address, receiver)
    }

    fn read_push(reader: &mut BufReader<TcpStream>, mut stream: &TcpStream) -> Option<(String, Profile)> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let length = lines.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
        assert!(lines.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer secret")), "{lines:?}");
        Some((lines[0].clone(), Profile::decode_all(&body)))
    }

    fn profiles_are_pushed_and_the_last_one_at_the_exit() {
        let (address, pushes) = server();
        let vars = [
            ("LONGPOLE_HEAP_SERVER", &*address),
            ("LONGPOLE_HEAP_PUSH_SECONDS", "1"),
            ("LONGPOLE_HEAP_HEADERS", "authorization=Bearer%20secret"),
            ("LONGPOLE_HEAP_SAMPLE_BYTES", "1"),
            ("OTEL_SERVICE_NAME", "cart"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.version=1.8"),
        ];
        let output = run_role("push", &vars);
        assert_eq!(stderr(&output), "");
        let pushes: Vec<(String, Profile)> = pushes.try_iter().collect();
        assert!(pushes.len() >= 2, "{}", pushes.len());
        let (line, first) = &pushes[0];
        assert!(line.starts_with("POST /ingest?name=cart%7Bservice_version%3D1.8%2Cprocess_pid%3D"), "{line}");
        assert!(line.contains("&format=pprof&spyName=longpole-sdk HTTP/1.1") && line.contains("&from=1"), "{line}");
        assert!(first.duration() > Duration::from_millis(900), "{:?}", first.duration());
        // Allocated is what came since the last push, in use is all of it.
        let sums: Vec<[i64; 4]> = pushes.iter().map(|(_, profile)| Row::sums(&profile.rows_of("pushed"))).collect();
        let total: i64 = sums.iter().map(|sums| sums[1]).sum();
        assert_eq!(total, 3_000 + 50_000, "{sums:?}");
        assert_eq!((sums[0][3], sums.last().unwrap()[3]), (3_000, 3_000), "{sums:?}");
        // What was freed before the push has its span, too.
        let churned = pushes.iter().flat_map(|(_, profile)| profile.rows_of("pushed")).find(|row| row.values[1] == 50_000).unwrap();
        assert!(churned.labels.contains(&("span_id".to_owned(), "0909090909090909".to_owned())), "{churned:?}");
    }

    fn a_server_that_is_not_there_is_reported_once() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let began = Instant::now();
        let address = format!("http://{closed}");
        let output = run_role("push", &[("LONGPOLE_HEAP_SERVER", &*address), ("LONGPOLE_HEAP_PUSH_SECONDS", "1")]);
        let said = stderr(&output);
        assert!(said.starts_with(&format!("longpole-sdk: cannot push a heap profile to {address}: ")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
