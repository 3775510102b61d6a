//! Story: a Python program of coroutines waits, and its thread stands in the event loop: a coroutine that waits has no frame on any stack.
//! Guarantees: the wait has the functions of the coroutine that the program waits for, whether it sleeps, reads a socket, or is a worker of a queue,
//! with CPython from 3.8 on, whatever other tasks tick meanwhile.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use crate::see_the_code::pythons;
use crate::support::{Sandbox, ask, can_sample, longpole, rows, skip};

/// Asks the bank at the port of its argument while a task ticks, then lets three tasks wait for a lock that one of them holds while it sleeps, then
/// gives orders to workers.
const PROGRAM: &str = r#"
import asyncio, sys

async def tick():
    while True:
        await asyncio.sleep(0.02)

async def ask_bank(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"?")
    await reader.readexactly(3)
    writer.close()

async def sign_contract(lock):
    async with lock:
        await asyncio.sleep(0.2)

async def deliver(orders):
    while True:
        await asyncio.sleep(await orders.get())
        orders.task_done()

async def main():
    ticks = asyncio.ensure_future(tick())
    await asyncio.wait_for(ask_bank(int(sys.argv[1])), 60)
    ticks.cancel()
    lock = asyncio.Lock()
    await asyncio.gather(*(sign_contract(lock) for _ in range(3)))
    orders = asyncio.Queue()
    workers = [asyncio.ensure_future(deliver(orders)) for _ in range(2)]
    for _ in range(4):
        orders.put_nowait(0.25)
    await orders.join()
    for worker in workers:
        worker.cancel()

asyncio.run(main())
"#;

/// Records the program beside a bank that answers after half a second.
fn record(store: &Path, python: &Path, program: &Path) {
    let bank = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = bank.local_addr().unwrap().port().to_string();
    let answers = std::thread::spawn(move || {
        let (mut client, _) = bank.accept().unwrap();
        client.read_exact(&mut [0]).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        client.write_all(b"yes").unwrap();
    });
    let out = longpole(store).args(["run", "--"]).arg(python).arg(program).arg(port).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    answers.join().unwrap();
}

#[test]
fn the_coroutine_that_a_program_waits_for_is_named() {
    const STORY: &str = "the_coroutine_that_a_program_waits_for_is_named";
    if !can_sample(STORY) {
        return;
    }
    let pythons = pythons();
    if pythons.is_empty() {
        return skip(STORY, "there is no CPython from 3.8 to 3.13");
    }
    for python in pythons {
        let sandbox = Sandbox::new();
        let (store, program) = (sandbox.path("store"), sandbox.path("program.py"));
        std::fs::write(&program, PROGRAM).unwrap();
        record(&store, &python, &program);
        let millis_in = |function: &str| {
            let waits = ask(&store)(&format!(
                "SELECT sum(w.nanos) FROM (SELECT unnest(k.location_ids) AS id, w.end_time_monotonic_nano - w.start_time_monotonic_nano AS nanos \
                 FROM waits w JOIN stacks k ON k.stack_id = w.stack_id) w JOIN frames f ON f.location_id = w.id WHERE f.function = '{function}'"
            ));
            rows(&waits).next().and_then(|row| row[0].as_u64()).unwrap_or(0) / 1_000_000
        };
        // 500, 600 and 500 ms by construction; a busy machine takes longer, and the first wait of a task may be short.
        let millis = ["ask_bank", "sign_contract", "deliver", "tick", "main"].map(millis_in);
        let [asks, signs, delivers, ticks, main] = millis;
        assert!(asks > 350 && signs > 450 && delivers > 350, "{}: {millis:?}", python.display());
        assert!(ticks < 100, "{}: the program does not wait for it: {millis:?}", python.display());
        assert!(main >= asks + signs + delivers, "{}: main waits for each of them: {millis:?}", python.display());
    }
}
