//! Story: a Go program waits, and none of its threads runs a function of its own: goroutines that wait have no thread.
//! Guarantees: what the program waits for has the name of its own function, asleep with a lock held and on the network, whatever other goroutines
//! wait for; a binary without a table of symbols is reported.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Sandbox, ask, can_sample, json, longpole, rows, skip};

/// Asks the bank at the address of its argument, then lets four goroutines wait for a lock that one of them holds while it sleeps.
const PROGRAM: &str = r#"
package main

import (
	"net"
	"os"
	"sync"
	"time"
)

var mutex sync.Mutex

//go:noinline
func askBank(address string) {
	bank, err := net.Dial("tcp", address)
	if err != nil {
		os.Exit(3)
	}
	bank.Write([]byte("?"))
	bank.Read(make([]byte, 8))
	bank.Close()
}

//go:noinline
func signContract() { time.Sleep(200 * time.Millisecond) }

//go:noinline
func serveNobody(orders chan int) { <-orders }

func main() {
	go serveNobody(make(chan int))
	askBank(os.Args[1])
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			mutex.Lock()
			signContract()
			mutex.Unlock()
		}()
	}
	group.Wait()
}
"#;

/// Builds the program; `None`, noted, if there is no Go.
fn build(sandbox: &Sandbox, story: &str, name: &str, more: &[&str]) -> Option<PathBuf> {
    let (file, program) = (sandbox.path(&format!("{name}.go")), sandbox.path(name));
    std::fs::write(&file, PROGRAM).unwrap();
    match Command::new("go").arg("build").args(more).arg("-o").arg(&program).arg(&file).output() {
        Err(_) => {
            skip(story, "there is no Go");
            None
        }
        Ok(out) => {
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            Some(program)
        }
    }
}

/// Records the program beside a bank that answers after half a second.
fn record(store: &Path, program: &Path) -> Value {
    let bank = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = bank.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let (mut client, _) = bank.accept().unwrap();
        client.read_exact(&mut [0]).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        client.write_all(b"yes").unwrap();
    });
    let out = longpole(store).args(["run", "--"]).arg(program).arg(address).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    answers.join().unwrap();
    json(longpole(store).args(["show", "--format", "json"]))
}

#[test]
fn a_goroutine_that_sleeps_or_waits_for_the_network_is_named() {
    const STORY: &str = "a_goroutine_that_sleeps_or_waits_for_the_network_is_named";
    if !can_sample(STORY) {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = build(&sandbox, STORY, "orders", &[]) else { return };
    let store = sandbox.path("store");
    record(&store, &program);
    let waits_in = |function: &str| {
        let waits = ask(&store)(&format!(
            "SELECT w.kind, sum(w.nanos) FROM (SELECT unnest(k.location_ids) AS id, w.kind, w.end_time_monotonic_nano - \
             w.start_time_monotonic_nano AS nanos FROM waits w JOIN stacks k ON k.stack_id = w.stack_id) w \
             JOIN frames f ON f.location_id = w.id WHERE f.function = '{function}' GROUP BY w.kind"
        ));
        rows(&waits).map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_u64().unwrap() / 1_000_000)).collect::<Vec<_>>()
    };
    // 800 and 500 ms by construction; a busy machine takes longer, and the first wait of a thread may be short.
    let (sleeps, asks) = (waits_in("main.signContract"), waits_in("main.askBank"));
    let millis = |waits: &[(String, u64)], kind: &str| waits.iter().find(|(of, _)| of == kind).map_or(0, |(_, millis)| *millis);
    assert!(millis(&sleeps, "sleep") > 500, "{sleeps:?}");
    assert!(millis(&asks, "network") > 400, "{asks:?}");
    assert_eq!(waits_in("main.serveNobody"), [], "it explains nothing");
}

#[test]
fn goroutines_of_a_stripped_program_are_reported() {
    const STORY: &str = "goroutines_of_a_stripped_program_are_reported";
    if !can_sample(STORY) {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = build(&sandbox, STORY, "stripped", &["-ldflags=-s"]) else { return };
    let view = record(&sandbox.path("store"), &program);
    let quality = view["quality"].to_string();
    assert!(quality.contains("goroutines that wait: the binary has no symbol table"), "{quality}");
}
