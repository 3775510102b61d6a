//! Story: a service is slow right now, and nobody may restart it.
//! Guarantees: `attach` finds the process and its children, sees code and waits of both, and what it saw is a recording like any other;
//! it ends when it is told to, by time, by Ctrl-C, or because the process did; the processes themselves never notice.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, json, longpole};

/// A shell that works without end, and a child of it that sleeps. Killed when it is dropped.
struct Service {
    shell: Child,
    sleeper: u32,
}

impl Service {
    fn start() -> Service {
        let script = "sleep 1000 & echo $!; while :; do :; done";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Service { shell, sleeper: line.trim().parse().unwrap() }
    }

    fn pid(&self) -> String {
        self.shell.id().to_string()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        Command::new("kill").args(["-KILL", &self.sleeper.to_string()]).status().ok();
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}

#[test]
fn a_service_shows_its_code_and_its_waits_and_never_notices() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut service = Service::start();
    let answer = json(longpole(&store).args(["attach", "-p", &service.pid(), "-d", "1", "--format", "json"]));
    assert_eq!((answer["processes"].as_u64(), answer["exit"].is_null()), (Some(2), true), "{answer}");
    assert!(answer["samples"].as_u64().unwrap() > 50, "{answer}");
    let attached = &answer["attached"];
    assert_eq!((attached["pid"].as_u64(), attached["threads_seen"].as_u64()), (Some(u64::from(service.shell.id())), Some(2)), "{answer}");
    assert!(attached["blocked_nanos"]["sleep"].as_f64().unwrap() > 0.9e9, "{answer}");
    assert!(!answer["functions"].as_array().unwrap().is_empty() && attached["waits"][0]["kind"] == "sleep", "{answer}");
    let threads = json(longpole(&store).args(["threads", "--format", "json"]));
    let of = |pid: u32| -> &Value { threads["threads"].as_array().unwrap().iter().find(|thread| thread["pid"] == pid).unwrap() };
    let sleeper = of(service.sleeper);
    let slept = sleeper["blocked_nanos"]["sleep"].as_f64().unwrap();
    assert!(slept > 0.9 * sleeper["nanos"].as_f64().unwrap(), "{threads}");
    assert!(of(service.shell.id())["on_cpu_nanos"].as_f64().unwrap() > 50e6, "{threads}");
    assert!(service.shell.try_wait().unwrap().is_none(), "the service runs on");
}

#[test]
fn it_ends_by_ctrl_c_and_by_the_end_of_the_process() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for ends_itself in [false, true] {
        let mut service = Service::start();
        let mut attach = longpole(&store);
        attach.args(["attach", "-p", &service.pid()]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut attached = attach.spawn().unwrap();
        let mut said = String::new();
        let mut errors = BufReader::new(attached.stderr.take().unwrap());
        errors.read_line(&mut said).unwrap();
        assert!(said.contains("until Ctrl-C"), "{said}");
        if ends_itself {
            service.shell.kill().unwrap();
            service.shell.wait().unwrap();
        } else {
            Command::new("kill").args(["-INT", &attached.id().to_string()]).status().unwrap();
        }
        let mut answer = String::new();
        attached.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        assert!(attached.wait().unwrap().success());
        // It did not end: there is nothing that would have ended earlier.
        assert!(answer.contains("looked at for") && answer.contains("THREAD") && !answer.contains("LONG POLES"), "{answer}");
    }
}

#[test]
fn a_process_that_is_not_there_is_said() {
    let sandbox = Sandbox::new();
    // Larger than the largest number that the kernel gives.
    let out = longpole(&sandbox.path("store")).args(["attach", "-p", "4194305"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "longpole: failed to find the process 4194305\nhint: ps ax lists processes\n");
    assert!(!out.status.success());
}
