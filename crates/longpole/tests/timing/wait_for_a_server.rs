//! Story: a script calls a server, or somebody calls it from outside.
//! Guarantees: the server is idle between its requests, and what it does in them saves what it took by its own clock.

use std::path::PathBuf;

use longpole_testing::turn;
use serde_json::Value;

use crate::support::{Sandbox, can_sample, json, longpole, time_on_path};

/// A server with a request that computes and one that sleeps. It writes its port where its argument says. When it is stopped, it prints how long
/// both took by its own clock.
const SERVER: &str = r#"
import http.server, json, os, signal, sys, time

took = {"render_report": 0, "look_up": 0}
def stop(*_):
    print(json.dumps(took), flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, stop)

def render_report():
    until = time.monotonic() + 0.15
    while time.monotonic() < until:
        for row in range(1000): str(row)

def look_up():
    time.sleep(0.2)

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        work = {"/report": render_report, "/look-up": look_up}.get(self.path)
        began = time.monotonic()
        if work:
            work()
            took[work.__name__] += time.monotonic() - began
        self.send_response(200)
        self.end_headers()
        if self.path == "/stop": stop()

server = http.server.ThreadingHTTPServer if "threads" in sys.argv else http.server.HTTPServer
server = server(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file: file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
"#;

/// Its client: four times both requests, and a pause after each.
const CLIENT: &str = r#"
import os, sys, time, urllib.request
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
port = open(sys.argv[1]).read()
def pause():
    time.sleep(0.1)
for path in ["report", "look-up"] * 4:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}").read()
    pause()
if "stop" in sys.argv:
    try: urllib.request.urlopen(f"http://127.0.0.1:{port}/stop")
    except OSError: pass
"#;

/// Writes both programs; where they are, and where the server writes its port.
fn server_and_client(sandbox: &Sandbox) -> [PathBuf; 3] {
    let [server, client, port] = ["server.py", "client.py", "port"].map(|name| sandbox.path(name));
    std::fs::write(&server, SERVER).unwrap();
    std::fs::write(&client, CLIENT).unwrap();
    [server, client, port]
}

/// What the pole of this function would save, in milliseconds, as a range; and its place.
fn saves(view: &Value, function: &str) -> (usize, [i64; 2]) {
    let poles = view["poles"].as_array().unwrap();
    let place = poles.iter().position(|pole| pole["part"]["function"] == function || pole["reason"]["function"] == function);
    let place = place.unwrap_or_else(|| panic!("no pole is {function}: {view}"));
    let saves = &poles[place]["saves_if_zero_nanos"];
    (place, [0, 1].map(|end| saves[end].as_i64().unwrap() / 1_000_000))
}

/// Checks that it is what this took, by the clock of the program itself, in seconds.
fn is_right(saves: [i64; 2], took: &Value) {
    let millis = (took.as_f64().unwrap() * 1e3) as i64;
    assert!(saves[0] <= millis * 115 / 100 && saves[1] >= millis * 85 / 100, "took {millis} ms, saves {saves:?}");
    assert!(saves[1] - saves[0] <= millis / 2, "the range says something: {saves:?}");
}

#[test]
fn a_service_is_idle_between_its_requests() {
    let _turn = turn();
    if !can_sample("a_service_is_idle_between_its_requests") {
        return;
    }
    for threads in ["", "threads"] {
        let sandbox = Sandbox::new();
        let [server, client, port] = server_and_client(&sandbox);
        let store = sandbox.path("store");
        let longpole = || longpole(&store);
        let mut client = std::process::Command::new("python3").arg(&client).arg(&port).arg("stop").spawn().unwrap();
        let out = longpole().args(["run", "--", "python3"]).arg(&server).arg(&port).arg(threads).output().unwrap();
        assert!(out.status.success() && client.wait().unwrap().success(), "{out:?}");
        let view = json(longpole().args(["poles", "--format", "json"]));
        let [(first, look_up), (second, report)] = ["look_up", "render_report"].map(|function| saves(&view, function));
        assert!(first < second, "{view}");
        let took: Value = serde_json::from_slice(&out.stdout).unwrap();
        is_right(look_up, &took["look_up"]);
        is_right(report, &took["render_report"]);
        // Eight pauses of its client.
        assert!(view["idle_nanos"].as_i64().unwrap() > 8 * 85_000_000, "{view}");
        assert_eq!(time_on_path(&view), view["wall_nanos"].as_i64().unwrap(), "{view}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains("of the path is idle") && said.contains("(idle "), "{said}");
    }
}

#[test]
fn what_a_script_waits_for_is_what_its_server_does() {
    let _turn = turn();
    if !can_sample("what_a_script_waits_for_is_what_its_server_does") {
        return;
    }
    for threads in ["", "threads"] {
        let sandbox = Sandbox::new();
        let [server, client, port] = server_and_client(&sandbox);
        let store = sandbox.path("store");
        let longpole = || longpole(&store);
        let script = format!(
            "python3 {} {} {threads} & server=$!; python3 {} {}; kill $server; wait $server; true",
            server.display(),
            port.display(),
            client.display(),
            port.display()
        );
        let out = longpole().args(["run", "--", "sh", "-c", &script]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        let view = json(longpole().args(["poles", "--format", "json"]));
        // Where the server is waited for, and where the client waits by itself; nobody else's idle time.
        let [(_, look_up), (_, report), (_, pause)] = ["look_up", "render_report", "pause"].map(|function| saves(&view, function));
        let took: Value = serde_json::from_slice(&out.stdout).unwrap();
        is_right(look_up, &took["look_up"]);
        is_right(report, &took["render_report"]);
        // It may be a part of the client, or nearly all of it.
        assert!(pause[1] >= 8 * 85 && pause[0] <= 8 * 150, "{pause:?}");
        let wall = view["wall_nanos"].as_i64().unwrap();
        assert!(view["idle_nanos"].as_i64().unwrap() < wall / 20, "{view}");
        assert_eq!(time_on_path(&view), wall, "{view}");
    }
}
