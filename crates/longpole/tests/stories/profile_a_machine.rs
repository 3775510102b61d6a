//! Story: a machine runs services that nobody changed, and a user wants to know whose code uses the CPUs.
//! Guarantees: `longpole agent` sends the code of every process to a server, under its service; a server that was away gets each window later,
//! and none twice; an agent that a process holds up goes on without that process.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::served::Served;
use crate::support::{Sandbox, http, longpole};

/// A process that is killed at the end of its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program with this service name that computes in one function, for ever. An agent profiles those of other tests, too.
fn burner(sandbox: &Sandbox, service: &str) -> Running {
    let script = sandbox.path("burn.py");
    fs::write(&script, "def churn():\n    return sum(i * i for i in range(10_000))\n\nwhile True:\n    churn()\n").unwrap();
    let mut python = Command::new("python3");
    Running(python.arg(script).env("OTEL_SERVICE_NAME", service).stdout(Stdio::null()).spawn().unwrap())
}

fn agent(store: &Path, server: u16) -> Running {
    let mut command = longpole(store);
    command.args(["agent", "--to", &format!("http://127.0.0.1:{server}"), "--every", "1s", "--rate", "99", "--label", "env=test"]);
    Running(command.stdin(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap())
}

/// The profile of a burner.
fn profile(served: &Served, service: &str) -> Value {
    let query = format!("process_cpu:cpu:nanoseconds:cpu:nanoseconds%7Bservice_name=%22{service}%22,env=%22test%22%7D");
    http::get(served.port("page"), &format!("/longpole/v1/profiles?query={query}")).json()
}

/// Waits until the burner's profile has so much CPU time.
#[track_caller]
fn wait_for(served: &Served, service: &str, agent: &mut Running, nanos: f64) -> Value {
    loop {
        assert_eq!(agent.0.try_wait().unwrap(), None, "the agent ended");
        let view = profile(served, service);
        if view["total"].as_f64().is_some_and(|total| total >= nanos) {
            return view;
        }
        std::thread::yield_now();
    }
}

#[test]
fn every_process_is_profiled_under_its_service_and_nothing_is_sent_twice() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let burner = burner(&sandbox, "burner-once");
    let begun = Instant::now();
    let mut agent = agent(&sandbox.path("agent"), served.port("pyroscope"));
    let view = wait_for(&served, "burner-once", &mut agent, 1e9);
    let functions = view["functions"].as_array().unwrap();
    let churn = functions.iter().find(|it| it["function"] == "churn").unwrap_or_else(|| panic!("{functions:?}"));
    assert!(churn["total"].as_f64().unwrap() > 0.8 * view["total"].as_f64().unwrap(), "{functions:?}");
    // The server goes away, and windows wait on disk; another one is there later.
    let port = served.port("pyroscope").to_string();
    let pushed = || {
        let of_server = fs::read_dir(sandbox.path("agent").join("agent")).unwrap().next().unwrap().unwrap();
        let files = fs::read_dir(of_server.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "push")).count()
    };
    served.kill();
    while pushed() < 2 {
        std::thread::yield_now();
    }
    let served = Served::start_with(&store, &["--port", &format!("pyroscope={port}")], &[]);
    while pushed() > 0 {
        std::thread::yield_now();
    }
    // The last window goes out at the end.
    let pid = agent.0.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(agent.0.wait().unwrap().success());
    let (took, total) = (begun.elapsed(), profile(&served, "burner-once")["total"].as_f64().unwrap());
    drop(burner);
    let most = took.as_secs_f64() * 1.1e9;
    assert!(total <= most, "one thread used {total} ns of CPU time in {took:?}: something was counted twice");
    // On a busy machine it gets less of a CPU.
    assert!(total >= Duration::from_millis(1_500).as_nanos() as f64, "{total}");
    served.stop();
}

/// A way to the server on which the answers of the first connections get lost. Returns its port.
fn losing_answers(server: u16, lost: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().map(Result::unwrap).enumerate() {
            let mut client = client;
            let mut upstream = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || {
                let mut answer = [0; 4_096];
                while let Ok(read @ 1..) = upstream.read(&mut answer) {
                    if number < lost || client.write_all(&answer[..read]).is_err() {
                        break;
                    }
                }
                let _ = (client.shutdown(Shutdown::Both), upstream.shutdown(Shutdown::Both));
            });
        }
    });
    port
}

/// The worker of an agent.
fn worker_of(agent: &Running) -> Option<u32> {
    let pid = agent.0.id();
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_worker_that_stands_still_is_replaced_and_ends_with_its_supervisor() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let burner = burner(&sandbox, "burner-replaced");
    let mut agent = agent(&sandbox.path("agent"), served.port("pyroscope"));
    wait_for(&served, "burner-replaced", &mut agent, 1e8);
    let first = worker_of(&agent).unwrap();
    assert!(Command::new("kill").args(["-STOP", &first.to_string()]).status().unwrap().success());
    let before = profile(&served, "burner-replaced")["total"].as_f64().unwrap();
    wait_for(&served, "burner-replaced", &mut agent, before + 5e8);
    let second = worker_of(&agent).unwrap();
    assert_ne!(first, second);
    // Even SIGKILL of the supervisor leaves no worker.
    agent.0.kill().unwrap();
    while fs::exists(format!("/proc/{second}")).unwrap() {
        std::thread::yield_now();
    }
    drop(burner);
    served.stop();
}

#[test]
fn a_window_whose_answer_got_lost_counts_once() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let burner = burner(&sandbox, "burner-lost");
    let begun = Instant::now();
    let mut agent = agent(&sandbox.path("agent"), losing_answers(served.port("pyroscope"), 3));
    wait_for(&served, "burner-lost", &mut agent, 3e9);
    assert!(Command::new("kill").arg(agent.0.id().to_string()).status().unwrap().success());
    assert!(agent.0.wait().unwrap().success());
    let (took, total) = (begun.elapsed(), profile(&served, "burner-lost")["total"].as_f64().unwrap());
    drop(burner);
    assert!(total <= took.as_secs_f64() * 1.1e9, "one thread used {total} ns of CPU time in {took:?}: something was counted twice");
    served.stop();
}
