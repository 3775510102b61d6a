//! Story: somebody's program has an SDK that is not ours, or their profiler is not ours; the two have never heard of each other and follow
//! OpenTelemetry's texts on sharing context (OTEP 4719 and 4947).
//! Guarantees: of a program that publishes by these texts, whoever wrote its SDK, samples are on the span that its thread was in, exactly,
//! and never on a wrong one; its process is called what it calls itself, without a span received; records out of reach are reported; a
//! debugger that follows the same texts finds the span and the resource of a program with our SDK.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, ask, c, clean, has_program, json, longpole, role, rows, skip};

/// The span id of a work function is its number in each byte.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct record { uint8_t trace_id[16], span_id[8], valid, flags; uint16_t attributes; } __attribute__((packed));
static __thread struct record own;
#ifdef LIBRARY
extern void attach(void *record);
#else
__thread void *otel_thread_ctx_v1;
static void attach(void *record) { *(void *volatile *)&otel_thread_ctx_v1 = record; }
#endif

static uint8_t message[256];
static size_t field(uint8_t *out, uint8_t number, const void *content, size_t length) {
    out[0] = number << 3 | 2, out[1] = length;
    memcpy(out + 2, content, length);
    return length + 2;
}
static size_t pair(uint8_t *out, const char *key, const char *text) {
    uint8_t value[64];
    size_t length = field(out, 1, key, strlen(key));
    return length + field(out + length, 2, value, field(value, 1, text, strlen(text)));
}
/* OTEP 4719, "Publication Protocol". */
static void publish(void) {
    struct header { char signature[8]; uint32_t version, size; uint64_t published_at, payload; } *header;
    uint8_t attribute[128], resource[128];
    size_t length = field(resource, 1, attribute, pair(attribute, "service.name", "by-hand"));
    length = field(message, 1, resource, length);
    length += field(message + length, 2, attribute, pair(attribute, "threadlocal.schema_version", "tlsdesc_v1_dev"));
    int file = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ftruncate(file, sizeof *header);
    header = mmap(0, sizeof *header, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    madvise(header, sizeof *header, MADV_DONTFORK);
    memcpy(header->signature, "OTEL_CTX", 8);
    header->version = 2, header->size = length, header->payload = (uint64_t)(uintptr_t)message;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *(volatile uint64_t *)&header->published_at = now.tv_sec * 1000000000ull + now.tv_nsec;
    prctl(0x53564d41, 0, header, sizeof *header, "OTEL_CTX");
}

/* OTEP 4947: a fixed record; `valid` says whether it counts. */
static void enter(volatile struct record *record, int number) {
    record->valid = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (int i = 0; i < 16; i++) record->trace_id[i] = 0xab;
    for (int i = 0; i < 8; i++) record->span_id[i] = number;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    record->valid = number != 0;
}

volatile unsigned long sink;
#define WORK(number) __attribute__((noinline)) void work_##number(void) { for (unsigned long i = 0; i < 400000; i++) sink += i * number; }
WORK(0) WORK(1) WORK(2) WORK(3)

static void *thread(void *record) {
    if (!record) record = &own;
    attach(record);
    for (int round = 0; round < 2000; round++) {
        enter(record, 1), work_1();
        enter(record, 2), work_2();
        enter(record, 0), work_0();
    }
    attach(NULL);
    return NULL;
}

int main(int argc, char **argv) {
    publish();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread, argc > 1 ? calloc(1, sizeof own) : NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

const LIBRARY: &str =
    "__thread void *otel_thread_ctx_v1;\nvoid attach(void *record) { *(void *volatile *)&otel_thread_ctx_v1 = record; }\n";

/// The linker makes the variable one that others find.
const EXPORT: &str = "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1";

/// The program, with the variable in itself; a skip if it cannot be built.
fn program(sandbox: &Sandbox, story: &str) -> Option<PathBuf> {
    c::compile_with(sandbox, story, "by-hand", PROGRAM, &[EXPORT])
}

/// Samples by work function, evidence and span id; trace ids are checked.
fn judged(store: &Path) -> BTreeMap<(String, String, String), u64> {
    let answer = ask(store)(
        "SELECT f.function, s.evidence, s.trace_id, s.span_id, count(*) FROM samples s
         JOIN stacks k ON k.stack_id = s.stack_id JOIN frames f ON f.location_id = k.location_ids[1]
         WHERE f.function LIKE 'work_%' GROUP BY f.function, s.evidence, s.trace_id, s.span_id",
    );
    let mut judged = BTreeMap::new();
    for row in rows(&answer) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let trace = row[3].as_str().map(|_| "ab".repeat(16));
        assert_eq!(row[2].as_str(), trace.as_deref(), "a span comes with its trace: {answer}");
        *judged.entry((text(&row[0]), text(&row[1]), text(&row[3]))).or_default() += row[4].as_u64().unwrap();
    }
    judged
}

/// Records the program, and holds its samples against the truth.
fn check(sandbox: &Sandbox, command: &[&Path]) {
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--"]).args(command).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let judged = judged(&store);
    let sum = |is: &dyn Fn(&str, &str, &str) -> bool| -> u64 {
        judged.iter().filter(|((function, evidence, span), _)| is(function, evidence, span)).map(|(_, count)| count).sum()
    };
    let expected = |function: &str| if function == "work_1" { "01".repeat(8) } else { "02".repeat(8) };
    let in_spans = sum(&|function, _, _| function != "work_0");
    let right = sum(&|function, evidence, span| function != "work_0" && evidence == "record" && span == expected(function));
    let wrong = sum(&|function, evidence, span| evidence == "record" && (function == "work_0" || span != expected(function)));
    assert_eq!(wrong, 0, "called exact, and wrong: {judged:?}");
    // The first reading of a program comes some milliseconds after its start.
    assert!(in_spans > 100 && right as f64 >= 0.9 * in_spans as f64, "{right} of {in_spans} are right: {judged:?}");
    println!("{right} of {in_spans} samples on the right span: {judged:?}");
}

#[test]
fn a_program_that_implements_the_oteps_has_spans_and_a_name() {
    let sandbox = Sandbox::new();
    let Some(program) = program(&sandbox, "an SDK by hand") else { return };
    check(&sandbox, &[&program]);
    let store = sandbox.path("store");
    let named = ask(&store)("SELECT name, resource_attributes['service.name'] FROM processes");
    assert_eq!(rows(&named).next().unwrap(), [Value::from("by-hand"), Value::from("by-hand")], "{named}");
    assert_eq!(json(longpole(&store).args(["span", "s1", "--format", "json"]))["resource"][0]["value"], "by-hand");
}

#[test]
fn the_context_variable_may_be_in_a_library() {
    let sandbox = Sandbox::new();
    let flags = ["-fPIC", "-shared", "-mtls-dialect=gnu2"];
    let Some(library) = c::compile_with(&sandbox, "an SDK in a library", "libcontext.so", LIBRARY, &flags) else { return };
    let library = library.to_str().unwrap().to_owned();
    let search = format!("-Wl,-rpath,{}", sandbox.path("").display());
    let program = c::compile_with(&sandbox, "an SDK in a library", "with-library", PROGRAM, &["-DLIBRARY", &library, &search]).unwrap();
    check(&sandbox, &[&program]);
}

#[test]
fn a_context_record_outside_the_copied_stack_is_reported() {
    let sandbox = Sandbox::new();
    let Some(program) = program(&sandbox, "a record on the heap") else { return };
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--"]).arg(&program).arg("heap").stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(judged(&store).keys().all(|(_, evidence, _)| evidence == "none"));
    let lost = ask(&store)("SELECT count, detail FROM losses WHERE kind = 'context_not_seen'");
    let lost = rows(&lost).next().unwrap_or_else(|| panic!("no loss is reported"));
    assert!(lost[0].as_u64().unwrap() > 100 && lost[1].as_str().unwrap().contains("on the heap"), "{lost:?}");
}

/// Says that it is in a span, and stays in it until its input ends; played by a process of its own.
#[test]
fn stay_in_a_span() {
    if std::env::var_os("LONGPOLE_STORY_SPAN").is_none() {
        return;
    }
    let _guard = longpole_sdk::builder().service_name("shop").init();
    let _span = longpole_sdk::enter_span_context([0xab; 16], [0xcd; 8], 1);
    println!("in the span");
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_debugger_finds_span_and_resource_of_our_sdk() {
    if !has_program("our SDK as others see it", "gdb") {
        return;
    }
    let arguments = role("see_the_spans_of_any_sdk::stay_in_a_span");
    let mut command = Command::new(&arguments[0]);
    clean(&mut command);
    command.args(&arguments[1..]).env("LONGPOLE_STORY_SPAN", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("in the span")));

    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).unwrap();
    let header = maps.lines().find(|line| line.contains("OTEL_CTX")).unwrap_or_else(|| panic!("no process context: {maps}"));
    let header = header.split('-').next().unwrap();
    let show = [
        // The record of each thread: 28 bytes behind the pointer.
        "thread apply all -q -s x/28xb *(void**)&otel_thread_ctx_v1".to_owned(),
        format!("x/8c 0x{header}"),
        format!("x/2dw 0x{header}+8"),
        format!("printf \"payload %lu %u\\n\", *(unsigned long*)(0x{header}+24), *(unsigned*)(0x{header}+12)"),
    ];
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-p"]).arg(program.id().to_string());
    for show in &show {
        gdb.args(["-ex", show]);
    }
    let seen = gdb.output().unwrap();
    let text = String::from_utf8_lossy(&seen.stdout).into_owned() + &String::from_utf8_lossy(&seen.stderr);
    let bytes: String =
        text.lines().filter_map(|line| line.strip_prefix("0x")?.split_once(":\t0x")).map(|(_, bytes)| bytes.replace("\t0x", "")).collect();
    let record = format!("{}{}0101", "ab".repeat(16), "cd".repeat(8));
    assert!(bytes.contains(&record), "{text}");

    let place = text.lines().find_map(|line| line.strip_prefix("payload ")?.split_once(' ')).unwrap_or_else(|| panic!("{text}"));
    let mut message = vec![0; place.1.parse().unwrap()];
    let memory = std::fs::File::open(format!("/proc/{}/mem", program.id())).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut message, place.0.parse().unwrap()).unwrap();
    let message = String::from_utf8_lossy(&message);
    assert!(message.contains("service.name") && message.contains("shop") && message.contains("tlsdesc_v1_dev"), "{message:?}");

    drop(program.stdin.take());
    assert!(program.wait().unwrap().success());
}

/// Two threads of one name work at the same time, each in a span, which says its thread as Python's instrumentations do.
const TWO_THREADS: &str = r#"
import threading
import time
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

class SaysItsThread(SpanProcessor):
    def on_start(self, span, parent_context=None):
        span.set_attribute("thread.id", threading.get_ident())
        span.set_attribute("thread.name", threading.current_thread().name)

provider = TracerProvider()
provider.add_span_processor(SaysItsThread())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("story")

def work_a():
    end, x = time.thread_time() + 0.7, 0
    while time.thread_time() < end:
        for i in range(10000): x += i * i

def work_b():
    end, x = time.thread_time() + 0.7, 0
    while time.thread_time() < end:
        for i in range(10000): x ^= i + x

def serve(name, work):
    with tracer.start_as_current_span(name):
        both.wait()
        work()
        both.wait()

both = threading.Barrier(2)
threads = [threading.Thread(target=serve, args=it, name="worker") for it in [("a", work_a), ("b", work_b)]]
for it in threads: it.start()
for it in threads: it.join()
provider.shutdown()
"#;

#[test]
fn python_thread_ids_are_those_of_the_kernel() {
    let Some(python) = std::env::var_os("LONGPOLE_PYTHON") else {
        return skip("threads as Python numbers them", "LONGPOLE_PYTHON is not set; cargo xtask test sets it");
    };
    let sandbox = Sandbox::new();
    let (store, script) = (sandbox.path("store"), sandbox.path("two_threads.py"));
    std::fs::write(&script, TWO_THREADS).unwrap();
    let run = longpole(&store).args(["run", "--"]).arg(python).arg(&script).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut sql = ask(&store);
    // The first thread, both workers, and those of the exporter.
    let idents = sql("SELECT count(DISTINCT ident) FROM threads WHERE ident IS NOT NULL");
    assert!(rows(&idents).next().unwrap()[0].as_u64() >= Some(3), "{idents}");
    let answer = sql("SELECT w.function, s.evidence, p.name, count(*)
         FROM samples s
         JOIN (SELECT DISTINCT k.stack_id, f.function
               FROM (SELECT stack_id, unnest(location_ids) AS location_id FROM stacks) k
               JOIN frames f ON f.location_id = k.location_id
               WHERE f.function LIKE '%work\\__') w ON w.stack_id = s.stack_id
         LEFT JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id
         GROUP BY w.function, s.evidence, p.name");
    let (mut right, mut wrong) = (0, 0);
    for row in rows(&answer) {
        let count = row[3].as_u64().unwrap();
        let is_right = row[1] == "inferred" && row[0].as_str().unwrap().ends_with(row[2].as_str().unwrap_or("?"));
        *if is_right { &mut right } else { &mut wrong } += count;
    }
    assert!(right > 200 && wrong * 100 <= right, "{right} right, {wrong} not: {answer}");
}
