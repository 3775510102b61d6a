//! The paragraph on `longpole agent`: what the processes of a machine say in their arguments does not leave it.

use std::io::Write;
use std::process::{Child, Command, Stdio};

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

/// A program that gets its text from standard input, and a secret as an argument.
fn piped(program: &str, arguments: &[&str], text: &str) -> Running {
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Running(child)
}

#[test]
fn agent_no_argument_of_a_program_is_sent() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let at = format!("http://127.0.0.1:{}", served.port("pyroscope"));
    let mut agent = longpole(&sandbox.path("agent"));
    agent.args(["agent", "--to", &at, "--every", "1s", "--rate", "99"]);
    let _agent = Running(agent.spawn().unwrap());
    let _secrets = [
        piped("sh", &["-s", "--", "hunter2-deploy-key"], "while :; do :; done"),
        piped("python3", &["-", "hunter2-database-password"], "while True: pass"),
    ];
    loop {
        let types = http::get(served.port("page"), "/longpole/v1/profiles/types").body;
        assert!(!types.contains("hunter2"), "{types}");
        let functions =
            http::get(served.port("page"), "/longpole/v1/profiles?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B%7D").body;
        assert!(!functions.contains("hunter2"), "{functions}");
        if types.contains("python3") && (types.contains("\"dash\"") || types.contains("\"bash\"") || types.contains("\"sh\"")) {
            break;
        }
        std::thread::yield_now();
    }
    served.stop();
}
