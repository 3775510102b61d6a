//! Refusals of the kernel and of the sink are reported. Each test uses a process of its own, because limits and filters are for whole processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use longpole_capture::recorder::{Options, Recorder, Refused};
use longpole_model::sink::SinkError;
use longpole_model::{Observation, ObservationSink};
use longpole_testing::skip;

use crate::privilege::{is_root, unprivileged};
use crate::program::{FACTS, ROLE, fact, me, role_command};
use crate::recorded::{Folder, Gated, record};

fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: reads the structure it is given.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

fn tell_refusal(outcome: Result<Recorder, Refused>) {
    match outcome {
        Ok(_) => fact("started", "yes"),
        Err(refused) => {
            fact("reason", &refused);
            fact("remedy", refused.remedy().unwrap_or_default());
        }
    }
}

fn gated_sleeper() -> Gated {
    Gated::new(&Command::new("true"))
}

pub(crate) fn role_without_files() {
    let gated = gated_sleeper();
    limit(libc::RLIMIT_NOFILE, 6);
    tell_refusal(Recorder::start(gated.pid(), &Options::default(), Box::new(Vec::new())));
    gated.run();
}

pub(crate) fn role_without_system_call() {
    let gated = gated_sleeper();
    let statement = |code, value| libc::sock_filter { code, jt: 0, jf: 0, k: value };
    let number = libc::SYS_perf_event_open as u32;
    let mut filter = [
        // The number of the system call; where it is ours, an error, else go on.
        statement((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0),
        libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: 1, k: number },
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: installs a filter of this thread from memory that outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
    tell_refusal(Recorder::start(gated.pid(), &Options::default(), Box::new(Vec::new())));
    gated.run();
}

/// Records until the memory that a user may lock is used up.
pub(crate) fn role_without_memory() {
    limit(libc::RLIMIT_MEMLOCK, 0);
    let mut running = Vec::new();
    let refused = loop {
        let gated = gated_sleeper();
        match Recorder::start(gated.pid(), &Options::default(), Box::new(Vec::new())) {
            Ok(recorder) => running.push((recorder, gated)),
            refused => {
                gated.run();
                break refused;
            }
        }
        assert!(running.len() < 200, "the limit is never reached");
    };
    fact("running", running.len());
    tell_refusal(refused);
    for (recorder, gated) in running {
        gated.run();
        recorder.finish();
    }
}

fn facts_of(mut command: Command, facts: &Path) -> BTreeMap<String, String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(facts).unwrap();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn refusal(role: &str) -> BTreeMap<String, String> {
    let folder = Folder::new();
    let facts = folder.path("facts");
    facts_of(role_command(&me(), role, &facts), &facts)
}

#[test]
fn without_descriptors_the_recorder_is_refused_in_words() {
    let facts = refusal("without-files");
    assert_eq!(facts["reason"], "too many open files: sampling needs two descriptors for each CPU");
    assert_eq!(facts["remedy"], "raise the limit: ulimit -n 4096");
}

#[test]
fn behind_a_seccomp_filter_the_recorder_is_refused_in_words() {
    let facts = refusal("without-system-call");
    assert_eq!(facts["reason"], "perf_event_open is blocked by a seccomp filter (operation not permitted)");
    assert!(facts["remedy"].contains("docker"));
}

#[test]
fn the_memory_that_a_user_may_lock_is_shared_by_its_recordings() {
    if !is_root() {
        skip("the_memory_that_a_user_may_lock_is_shared_by_its_recordings", "only root can become a user that records nothing else");
        return;
    }
    let folder = Folder::new();
    let facts = folder.path("facts");
    let mut command = unprivileged(&folder, 64_321);
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]).env(ROLE, "without-memory").env(FACTS, &facts);
    let facts = facts_of(command, &facts);
    let running: u32 = facts["running"].parse().unwrap();
    assert!(running >= 2, "later ones get smaller buffers: {running}");
    assert!(facts["reason"].starts_with("the memory that a user may lock for samples is used up"), "{facts:?}");
    assert!(facts["remedy"].contains("perf_event_mlock_kb"));
}

#[test]
fn a_sink_that_fails_is_counted() {
    struct Full;
    impl ObservationSink for Full {
        fn observe(&mut self, _: Observation) -> Result<(), SinkError> {
            Err(SinkError("disk full".to_owned()))
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            Err(SinkError("disk full".to_owned()))
        }
    }
    let folder = Folder::new();
    let facts = folder.path("facts");
    let gated = Gated::new(&role_command(&me(), "leaf", &facts));
    let recorder = Recorder::start(gated.pid(), &Options::default(), Box::new(Full)).unwrap();
    gated.run();
    let stats = recorder.finish();
    assert_eq!(stats.samples, 0);
    assert!(stats.not_kept > 100);
    assert_eq!(stats.not_kept_reason.as_deref(), Some("disk full"));
}

#[test]
fn a_recorder_that_takes_too_much_memory_ends_and_its_command_does_not() {
    let folder = Folder::new();
    let facts = folder.path("facts");
    // Longer than it takes until the recorder checks its memory.
    let mut command = Command::new("sleep");
    command.arg("1.5");
    let recorded = record(&command, &Options { memory_bytes_max: Some(1 << 20), ..Options::default() }, &facts);
    let losses: Vec<String> = recorded.losses().into_iter().map(|loss| loss.detail).collect();
    assert_eq!(losses, ["the recorder ended early, because longpole would need more than 1.0MB of memory: what followed is missing"]);
}
