//! Story: the hot code is in no file; a runtime compiled it while it ran, threw it away, and compiled something else to the same place.
//! Guarantees: where the runtime writes a jitdump, each sample has the function that lay at its addresses when it was taken, with file
//! and line, also after code was moved; a dump that is broken names what stands before the fault, and says where the fault is; a
//! runtime of the wild (Node) is read; `attach` finds the dump of a process that runs already.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::see_the_code::{Samples, of_runtime, the_shares_are_right, took};
use crate::support::{Sandbox, ask, c, can_sample, json, longpole, skip};

/// Writes a loop into memory of its own, tells of it in `jit-PID.dump` as one function, runs it, and does the same again at the same place
/// as another function; a third one is run where it was loaded and once more where it was moved to, which is the same place again. The dump
/// is written through a buffer that reaches the file at the end, as V8's is. With an argument the dump ends in a record that breaks off.
/// With a line on its input it begins; what each function took is its output.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret */
static const unsigned char CODE[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

static FILE *dump;
static uint64_t indexes;

static uint64_t nanos(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void put32(uint32_t n) { fwrite(&n, 4, 1, dump); }
static void put64(uint64_t n) { fwrite(&n, 8, 1, dump); }

static void head(uint32_t kind, uint32_t bytes) {
  put32(kind);
  put32(16 + bytes);
  put64(nanos(CLOCK_MONOTONIC));
}

static void open_dump(void) {
  char path[64];
  snprintf(path, sizeof path, "jit-%d.dump", getpid());
  int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
  /* That is how tools find it. */
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) _exit(9);
  dump = fdopen(fd, "w+");
  setvbuf(dump, NULL, _IOFBF, 1 << 20);
  put32(0x4A695444); put32(1); put32(40); put32(62); put32(0); put32(getpid()); put64(nanos(CLOCK_MONOTONIC)); put64(0);
}

/* From its beginning line 10 of its file, from the loop on line 11. */
static void load(void *to, const char *name, const char *file) {
  memcpy(to, CODE, sizeof CODE);
  uint64_t at = (uint64_t)to;
  head(2, 16 + 16 + strlen(file) + 1 + 16 + 2);
  put64(at); put64(2);
  put64(at); put32(10); put32(0); fwrite(file, strlen(file) + 1, 1, dump);
  put64(at + 4); put32(11); put32(0); fwrite("\xff", 2, 1, dump);
  head(0, 40 + strlen(name) + 1 + sizeof CODE);
  put32(getpid()); put32(getpid()); put64(at); put64(at); put64(sizeof CODE); put64(indexes++);
  fwrite(name, strlen(name) + 1, 1, dump);
  fwrite(CODE, sizeof CODE, 1, dump);
}

static void moved(void *from, void *to, uint64_t index) {
  memcpy(to, CODE, sizeof CODE);
  head(1, 48);
  put32(getpid()); put32(getpid()); put64((uint64_t)to); put64((uint64_t)from); put64((uint64_t)to); put64(sizeof CODE); put64(index);
}

static double run(void *code, double seconds) {
  uint64_t start = nanos(CLOCK_THREAD_CPUTIME_ID), end = start + seconds * 1e9, now;
  while ((now = nanos(CLOCK_THREAD_CPUTIME_ID)) < end) ((void (*)(uint64_t))code)(1000000);
  return (now - start) / 1e9;
}

int main(int argc, char **argv) {
  char line[16];
  double first = 0, second = 0, third = 0;
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *here = page + 64, *there = page + 4096;
  open_dump();
  printf("begun 0\n");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 9;
  for (int i = 0; i < 12; i++) {
    load(here, "first", "/srv/first.lisp");
    first += run(here, 0.04);
    load(here, "second", "/srv/second.lisp");
    second += run(here, 0.02);
    load(there, "third", "/srv/third.lisp");
    third += run(there, 0.01);
    moved(there, here, indexes - 1);
    third += run(here, 0.01);
  }
  if (argc > 1) { head(0, 1000); put64(0); }
  fclose(dump);
  printf("first %f\nsecond %f\nthird %f\n", first, second, third);
  fflush(stdout);
  /* An attached recorder is to see that the dump is whole. */
  while (fgets(line, sizeof line, stdin)) {}
  return 0;
}
"#;

/// The program, where it can be compiled and run.
fn program(sandbox: &Sandbox, story: &str) -> Option<std::path::PathBuf> {
    if cfg!(not(target_arch = "x86_64")) {
        skip(story, "its machine code is of x86-64");
        return None;
    }
    can_sample(story).then(|| c::compile(sandbox, story, "jitter", PROGRAM)).flatten()
}

/// Runs a command with a line as its input; its output.
fn fed(command: &mut Command) -> std::process::Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child.wait_with_output().unwrap()
}

/// What each function has at the time of each sample, in shares and lines.
fn is_seen(store: &Path, stdout: &[u8], context: &str) {
    let samples = Samples::of(ask(store));
    let mut took = took(stdout);
    took.remove("begun");
    the_shares_are_right(&samples, "other", &took, context);
    let places = "SELECT DISTINCT f.function, f.file, f.line FROM samples s JOIN stacks k ON k.stack_id = s.stack_id \
                  JOIN locations l ON l.location_id = k.location_ids[1] JOIN frames f ON f.location_id = l.location_id \
                  WHERE l.kind = 'named' AND f.line = 11 ORDER BY f.function";
    let places = ask(store)(places);
    let shown: Vec<String> = places["rows"].as_array().unwrap().iter().map(|row| format!("{} {}", row["function"], row["file"])).collect();
    assert_eq!(shown, [r#""first" "/srv/first.lisp""#, r#""second" "/srv/second.lisp""#, r#""third" "/srv/third.lisp""#], "{context}");
    let nameless = samples.with(|stack| stack.iter().any(|entry| entry.function.starts_with("[unmapped")));
    assert!(nameless * 100 <= samples.count(), "{context}: {nameless}\n{}", samples.dump());
}

#[test]
fn reused_code_memory_has_the_function_of_its_time() {
    let story = "reused_code_memory_has_the_function_of_its_time";
    let sandbox = Sandbox::new();
    let Some(program) = program(&sandbox, story) else { return };
    let store = sandbox.path("store");
    let out = fed(longpole(&store).args(["run", "--summary", "none", "--"]).arg(&program).current_dir(sandbox.path("")));
    assert!(out.status.success() && out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    is_seen(&store, &out.stdout, "run");
}

#[test]
fn attach_finds_the_jitdump_of_a_running_process() {
    let story = "attach_finds_the_jitdump_of_a_running_process";
    let sandbox = Sandbox::new();
    let Some(program) = program(&sandbox, story) else { return };
    let store = sandbox.path("store");
    let mut child = Command::new(&program).current_dir(sandbox.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "begun 0");
    // Nobody can find it by its name any more.
    std::fs::remove_file(sandbox.path(&format!("jit-{}.dump", child.id()))).unwrap();
    let mut attached =
        longpole(&store).args(["attach", "-p", &child.id().to_string()]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(attached.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("recording process"), "{said}");
    child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let took: Vec<String> = lines.by_ref().take(3).collect();
    // It ends by itself, and so does the recording.
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(attached.wait().unwrap().success());
    is_seen(&store, took.join("\n").as_bytes(), "attach");
}

#[test]
fn a_truncated_jitdump_is_used_and_reported() {
    let story = "a_truncated_jitdump_is_used_and_reported";
    let sandbox = Sandbox::new();
    let Some(program) = program(&sandbox, story) else { return };
    let store = sandbox.path("store");
    let out = fed(longpole(&store).args(["run", "--summary", "none", "--"]).arg(&program).arg("broken").current_dir(sandbox.path("")));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    is_seen(&store, &out.stdout, "broken");
    let summary = json(longpole(&store).args(["show", "last", "--format", "json"]));
    let notes: Vec<&Value> = summary["quality"].as_array().unwrap().iter().filter(|note| note["code"] == "symbols_unreadable").collect();
    let said: Vec<&str> = notes.iter().filter_map(|note| note["detail"].as_str()).collect();
    let dumps = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().path());
    let dump = dumps.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "dump")).unwrap();
    let (offset, path) = (std::fs::metadata(&dump).unwrap().len() - 24, dump.display());
    let expected = format!("at offset {offset}, a record has 1016 bytes where 24 are left: {path}");
    assert!(said.iter().any(|said| said.contains(&expected)), "{expected}\n{said:?}");
}

/// Burns CPU in two functions, three parts and one.
const NODE: &str = r"
const took = {};
const now = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
function burnThree(until) { let x = 0; while (now() < until) { for (let i = 0; i < 200000; i++) x = (x * 31 + i) % 1000003; } return x; }
function burnOne(until) { let x = 0; while (now() < until) { for (let i = 0; i < 200000; i++) x = (x * 31 + i) % 1000003; } return x; }
function take(f, seconds) { const start = now(); f(start + seconds); took[f.name] = (took[f.name] ?? 0) + now() - start; }
function main() { for (let i = 0; i < 15; i++) { take(burnThree, 0.045); take(burnOne, 0.015); } }
main();
for (const [name, seconds] of Object.entries(took)) console.log(name, seconds);
";

#[test]
fn node_with_a_jitdump_shows_its_functions() {
    let story = "node_with_a_jitdump_shows_its_functions";
    if !can_sample(story) {
        return;
    }
    if Command::new("node").arg("--version").stdin(Stdio::null()).output().is_err() {
        return skip(story, "there is no node");
    }
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("program.js"));
    std::fs::write(&program, NODE).unwrap();
    let mut run = longpole(&store);
    run.args(["run", "--", "node", "--perf-prof", "--interpreted-frames-native-stack"]).arg(&program).current_dir(sandbox.path(""));
    let out = run.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !said.contains("--jit node") && !said.contains(".dump"), "{said}");
    let samples = Samples::of(ask(&store));
    the_shares_are_right(&samples, "node", &took(&out.stdout), "node");
    let burns =
        |stack: &[_]| of_runtime(stack, "node").iter().any(|entry| entry.function == "burnThree" && Path::new(&entry.file) == program);
    assert!(samples.with(burns) > 100, "{}", samples.dump());
}
