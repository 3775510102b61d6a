//! Story: a plain user's command runs `sudo make`, or a program that may be run and not read.
//! Guarantees: the kernel takes sampling off such a program and off all that it starts, and they are in the recording all the same, with the
//! time that they really lived and worked; the first pole is the one that works; the answer says why there are no samples. Where `/proc` hides them
//! (hidepid), they have the life that they had and the code that they ended with, and the answer reports the rest as missing.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::program;
use crate::support::{PlainUser, Sandbox, can_sample, clean, json, longpole, plain_user, skip};

/// Works, and starts a program that sleeps.
const SCRIPT: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; sleep 0.05; :";

#[test]
fn processes_below_an_unreadable_program_are_recorded() {
    let story = "what runs below a program that may not be read is seen";
    let sandbox = Sandbox::new();
    let Some((user, shell)) = user_of_closed_shell(&sandbox, story) else { return };
    let store = sandbox.path("store");
    // A child, and then the command itself.
    let shell = shell.display();
    for command in [format!("'{shell}' -c '{SCRIPT}'; exit 3"), format!("exec '{shell}' -c '{SCRIPT}; exit 3'")] {
        let run = user.with_store(&store).args(["run", "--", "sh", "-c", &command]).stdin(Stdio::null()).output().unwrap();
        let answer = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(3), "{answer}");
        let summary = json(user.with_store(&store).args(["show", "--format", "json"]));
        let processes = json(user.with_store(&store).args(["processes", "--format", "json"]));
        let of = |name: &str| -> Vec<Value> {
            processes["processes"].as_array().unwrap().iter().filter(|process| process["name"] == name).cloned().collect()
        };
        let wall = summary["wall_nanos"].as_f64().unwrap();
        let closed = of("closed");
        let longest = closed.iter().map(|process| process["duration_nanos"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!(longest > 0.5 * wall && longest <= 1.01 * wall, "{longest} of {wall}:\n{answer}\n{processes}");
        let worked = closed.iter().map(|process| process["cpu_nanos"].as_f64().unwrap_or_default()).fold(0.0, f64::max);
        // Some 0.3 s, however busy the machine is; up to where the kernel took the program out of the recording it was 0.004 s.
        assert!(worked > 0.1e9, "{worked} of {wall}:\n{answer}\n{processes}");
        assert_eq!(of("sleep").len(), 1, "{answer}\n{processes}");
        assert_eq!(summary["poles"][0]["name"], "closed", "{answer}");
        let why = summary["quality"].as_array().unwrap().iter().find(|quality| quality["code"] == "profiling_refused");
        assert!(why.is_some_and(|why| why["detail"].as_str().unwrap_or_default().contains("as root")), "{answer}");
    }
}

/// A plain user who can sample, and a shell that this user may run and not read, as `closed`; or a noted skip.
fn user_of_closed_shell(sandbox: &Sandbox, story: &str) -> Option<(PlainUser, PathBuf)> {
    if !can_sample(story) {
        return None;
    }
    let user = plain_user(sandbox, story)?;
    let closed = user.install(std::path::Path::new("/bin/sh"));
    let shell = closed.with_file_name("closed");
    std::fs::rename(&closed, &shell).unwrap();
    std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o111)).unwrap();
    let mut reads = user.command("cat".as_ref());
    if reads.arg(&shell).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success() {
        skip(story, "this user reads every file");
        return None;
    }
    Some((user, shell))
}

/// A shell of a day that executes sudo while somebody looks has worked as much as it did meanwhile.
#[test]
fn time_before_attaching_does_not_count() {
    let story = "what it did before somebody looked is not counted";
    let sandbox = Sandbox::new();
    let Some((user, shell)) = user_of_closed_shell(&sandbox, story) else { return };
    let store = sandbox.path("store");
    let mut service = user.command("sh".as_ref());
    let script = format!("{SCRIPT}; cat /proc/$$/schedstat; read line; exec '{}' -c 'sleep 0.1; :'", shell.display());
    let mut service = service.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let worked = line.split_ascii_whitespace().next().unwrap().parse::<f64>().unwrap();
    let pid = service.id();
    let mut attach = user.with_store(&store);
    let mut attach = attach.args(["attach", "-p", &pid.to_string()]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(attach.stderr.take().unwrap());
    let mut said = String::new();
    errors.read_line(&mut said).unwrap();
    assert!(said.contains("recording process"), "{said}");
    service.stdin.take().unwrap().write_all(b"\n").unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert!(attach.wait().unwrap().success(), "{said}");
    service.wait().unwrap();
    let threads = json(user.with_store(&store).args(["threads", "--format", "json"]));
    let of_service = |thread: &&Value| thread["tid"] == pid;
    let thread = threads["threads"].as_array().unwrap().iter().find(of_service).unwrap();
    assert!(thread["on_cpu_nanos"].as_f64().unwrap() < worked / 2.0, "{worked} before: {threads}");
    let quality = json(user.with_store(&store).args(["show", "--format", "json"]))["quality"].to_string();
    assert!(quality.contains("profiling_refused"), "it was watched: {quality}");
}

/// Hardened and shared machines mount `/proc` so.
#[test]
fn a_process_hidden_by_proc_has_start_and_end() {
    let story = "what /proc hides as well has its life and its end";
    let sandbox = Sandbox::new();
    let Some((user, shell)) = user_of_closed_shell(&sandbox, story) else { return };
    if !user.becomes {
        return skip(story, "only root mounts /proc anew");
    }
    let hidden = |command: &Command| {
        let mut out = Command::new("unshare");
        out.args(["--mount", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"]);
        out.arg(command.get_program()).args(command.get_args()).current_dir("/").stdin(Stdio::null());
        clean(&mut out);
        out
    };
    if !hidden(&Command::new("true")).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skip(story, "/proc cannot be mounted anew here");
    }
    let store = sandbox.path("store");
    let mut run = user.with_store(&store);
    let shell = shell.display();
    // What executes it, and it executes what /proc shows again. The user's own programs that let nobody read them, as password managers do,
    // are sampled, and /proc hides their end only: prctl(PR_SET_DUMPABLE, 0).
    let prctl = if cfg!(target_arch = "x86_64") { 157 } else { 167 };
    let own = format!("for i in $(seq 40); do perl -e 'exit(syscall({prctl}, 4, 0))' || exit 9; done");
    let script = format!("{own}; '{shell}' -c 'sleep 0.3; exit 3'; '{shell}' -c 'sleep 0.1; exec sleep 0.2'; exit 4");
    run.args(["run", "--", "sh", "-c", &script]);
    let run = hidden(&run).output().unwrap();
    let answer = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(4), "{answer}");
    let summary = json(user.with_store(&store).args(["show", "--format", "json"]));
    let processes = json(user.with_store(&store).args(["processes", "--format", "json"]));
    let processes = processes["processes"].as_array().unwrap();
    let of = |name: &str| -> Vec<f64> {
        let named = processes.iter().filter(|process| process["name"] == name);
        named.map(|process| process["duration_nanos"].as_f64().unwrap()).collect()
    };
    let (closed, sleep) = (of("closed"), of("sleep"));
    assert!(closed.len() == 1 && closed[0] > 0.29e9, "{answer}\n{processes:#?}");
    assert!(sleep.len() == 1 && sleep[0] > 0.29e9, "{answer}\n{processes:#?}");
    let refused = summary["quality"].as_array().unwrap().iter().filter(|quality| quality["code"] == "profiling_refused");
    let told: Vec<(Option<u64>, &str)> = refused.map(|it| (it["count"].as_u64(), it["detail"].as_str().unwrap_or_default())).collect();
    // One of the forty may have taken long to end.
    assert!(matches!(told[..], [(Some(2..=4), detail)] if detail.contains("hidepid")), "{summary}");
}

/// Go's `syscall.Exec` mostly runs on such a thread. The kernel tells that the first thread has ended, whose place the other one takes.
#[test]
fn a_program_executed_by_another_thread_is_sampled() {
    if !can_sample("a program that another thread executes is sampled as ever") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    program::plays(&mut run, program::EXEC_ON_A_THREAD);
    run.env(program::SCRIPT, "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; sleep 0.3; exit 3");
    let run = run.args(["run", "--", &program::me()]).output().unwrap();
    let answer = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{answer}");
    let processes = json(longpole(&store).args(["processes", "--format", "json"]));
    let processes = processes["processes"].as_array().unwrap();
    let of = |name: &str| processes.iter().filter(|process| process["name"] == name).count();
    assert_eq!((of("true"), of("sleep"), of("sh")), (100, 1, 1), "{answer}\n{processes:#?}");
    let pids: std::collections::BTreeSet<_> = processes.iter().map(|process| process["pid"].as_u64()).collect();
    assert_eq!(pids.len(), processes.len(), "each once: {processes:#?}");
    let summary = json(longpole(&store).args(["show", "--format", "json"]));
    let codes: Vec<&Value> = summary["quality"].as_array().unwrap().iter().map(|quality| &quality["code"]).collect();
    assert!(!codes.contains(&&Value::from("profiling_refused")), "{answer}");
}
