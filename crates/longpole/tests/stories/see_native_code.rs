//! Story: somebody runs a program in C, however it was built and however it lives, and wants its functions and its CPU time.
//! Guarantees: the functions of a program have the share of the CPU that it measured itself, and each stack goes up to `main`, whether it
//! is linked to libraries, loads them while it runs, is static, position independent or of musl; without symbols its addresses stand
//! there and say why; 200 threads, threads and processes of some milliseconds are all there, with the CPU time that they measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longpole_testing::holds;
use serde_json::Value;

use crate::see_the_code::{Entry, Samples, of_runtime, the_shares_are_right, took};
use crate::support::{Sandbox, ask, can_sample, json, longpole, rows, skip};

/// Burns CPU in functions with known names and says what each took by the clock of its thread.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef LOADS
#include <dlfcn.h>
#endif

static volatile unsigned long sink;

double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Asks for the time seldom: that is work of the kernel. */
#define BURNS(name) \
    __attribute__((noinline)) double name(double seconds) { \
        double start = cpu(); \
        while (cpu() < start + seconds) \
            for (int i = 0; i < 40000; i++) sink = sink * 31 + i; \
        return cpu() - start; \
    }

BURNS(burn_three)
BURNS(burn_one)
BURNS(in_thread)
BURNS(in_child)

static void *run(void *seconds) {
    double *took = seconds;
    *took = in_thread(*took);
    return NULL;
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    if (strcmp(what, "burn") == 0) {
        double three = 0, one = 0, library = 0;
#ifdef LOADS
        void *loaded = dlopen(argv[2], RTLD_NOW);
        double (*in_library)(double) = loaded ? dlsym(loaded, "in_library") : NULL;
        if (!in_library) return 2;
#endif
        for (int i = 0; i < 15; i++) {
            three += burn_three(0.03);
            one += burn_one(0.01);
#ifdef LOADS
            library += in_library(0.02);
#endif
        }
        printf("burn_three %f\nburn_one %f\n", three, one);
        if (library > 0) printf("in_library %f\n", library);
    } else if (strcmp(what, "together") == 0 || strcmp(what, "short") == 0) {
        enum { COUNT = 200 };
        int together = strcmp(what, "together") == 0;
        static pthread_t threads[COUNT];
        static double times[COUNT];
        double sum = 0;
        for (int i = 0; i < COUNT; i++) {
            times[i] = together ? 0.005 : 0.001;
            if (pthread_create(&threads[i], NULL, run, &times[i])) return 3;
            if (!together) pthread_join(threads[i], NULL);
        }
        for (int i = 0; i < COUNT; i++) {
            if (together) pthread_join(threads[i], NULL);
            sum += times[i];
        }
        printf("in_thread %f\n", sum);
    } else if (strcmp(what, "forks") == 0) {
        int ends[2];
        if (pipe(ends)) return 4;
        for (int i = 0; i < 20; i++)
            if (fork() == 0) {
                double took = in_child(0.01);
                _exit(write(ends[1], &took, sizeof took) != sizeof took);
            }
        double sum = 0, took;
        for (int i = 0; i < 20; i++) {
            if (read(ends[0], &took, sizeof took) != sizeof took) return 5;
            sum += took;
        }
        while (wait(NULL) > 0) {}
        printf("in_child %f\n", sum);
    }
    return 0;
}
"#;

/// What is loaded while the program runs.
const LIBRARY: &str = r#"
double cpu(void);
static volatile unsigned long sink;
double in_library(double seconds) {
    double start = cpu();
    while (cpu() < start + seconds)
        for (int i = 0; i < 40000; i++) sink = sink * 31 + i;
    return cpu() - start;
}
"#;

/// Has functions found at their first call, and takes signals, most of the time.
const BY_HAND: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

__attribute__((noinline)) double bind_all(char *binder, double seconds) {
    double start = cpu();
    while (cpu() < start + seconds) {
        void *loaded = dlopen(binder, RTLD_LAZY | RTLD_LOCAL);
        int (*call_all)(void) = loaded ? dlsym(loaded, "call_all") : NULL;
        if (!call_all || call_all() == 0 || dlclose(loaded)) return -1;
    }
    return cpu() - start;
}

static volatile sig_atomic_t taken;
static void take(int number) { taken = number; }

__attribute__((noinline)) double signal_itself(double seconds) {
    double start = cpu();
    while (cpu() < start + seconds)
        for (int i = 0; i < 500; i++) raise(SIGUSR1);
    return cpu() - start;
}

int main(int argc, char **argv) {
    signal(SIGUSR1, take);
    /* What calls this is bound at its first use too. */
    printf("bind_all %f\n", bind_all(argv[1], 0.6));
    printf("signal_itself %f\n", signal_itself(0.4));
    return 0;
}
"#;

/// A library with many functions, and one that calls each of them.
fn many_functions_and_their_caller() -> (String, String) {
    use std::fmt::Write as _;
    let (mut many, mut calls, mut declared) = (String::new(), "0".to_owned(), String::new());
    for number in 1..3000 {
        writeln!(many, "int f{number}(void) {{ return {number}; }}").unwrap();
        writeln!(declared, "int f{number}(void);").unwrap();
        write!(calls, " + f{number}()").unwrap();
    }
    (many, format!("{declared}int call_all(void) {{ return {calls}; }}\n"))
}

/// Compiles; `None` where there is no such compiler.
fn compiled(sandbox: &Sandbox, compiler: &str, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (input, output) = (sandbox.path(&format!("{name}.c")), sandbox.path(name));
    std::fs::write(&input, source).unwrap();
    let mut command = Command::new(compiler);
    command.arg("-O2").args(flags).arg(&input).arg("-o").arg(&output).stdin(Stdio::null());
    match command.output() {
        Ok(out) => assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => return None,
    }
    Some(output)
}

/// Records the program and returns what it said it took.
#[track_caller]
fn recorded(store: &Path, program: &Path, arguments: &[&str]) -> BTreeMap<String, f64> {
    let out = longpole(store).args(["run", "--"]).arg(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {:?}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    took(&out.stdout)
}

/// Samples in the functions that the program named, and how many of them go up to `main`.
#[track_caller]
fn stacks_go_up_to_main(samples: &Samples, took: &BTreeMap<String, f64>, context: &str) {
    let is_in = |stack: &[_], name: &str| of_runtime(stack, "").iter().any(|entry| entry.function == name);
    let all = samples.with(|stack| took.keys().any(|name| is_in(stack, name)));
    let up = samples.with(|stack| took.keys().any(|name| is_in(stack, name)) && is_in(stack, "main"));
    assert!(up * 100 >= all * 99, "{context}: {up} of {all} stacks go up to main\n{}", samples.dump());
}

#[test]
fn functions_have_their_shares_however_the_program_is_linked() {
    const STORY: &str = "functions_have_their_shares_however_the_program_is_linked";
    if !can_sample(STORY) {
        return;
    }
    let ways: [(&str, &str, &[&str]); 6] = [
        ("dynamic", "cc", &["-pthread"]),
        ("not_pie", "cc", &["-pthread", "-no-pie"]),
        ("static", "cc", &["-pthread", "-static"]),
        ("static_pie", "cc", &["-pthread", "-static-pie"]),
        ("frame_pointers", "cc", &["-pthread", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
        ("musl", "musl-gcc", &["-pthread", "-static"]),
    ];
    for (name, compiler, flags) in ways {
        let sandbox = Sandbox::new();
        let Some(program) = compiled(&sandbox, compiler, name, PROGRAM, flags) else {
            skip(&format!("{STORY}: {name}"), &format!("there is no {compiler}"));
            continue;
        };
        let store = sandbox.path("store");
        let took = recorded(&store, &program, &["burn"]);
        let samples = Samples::of(ask(&store));
        the_shares_are_right(&samples, "", &took, name);
        stacks_go_up_to_main(&samples, &took, name);
    }
}

#[test]
fn a_library_loaded_at_run_time_has_functions() {
    if !can_sample("a_library_loaded_at_run_time_has_functions") {
        return;
    }
    let sandbox = Sandbox::new();
    let library = compiled(&sandbox, "cc", "library.so", LIBRARY, &["-shared", "-fPIC"]);
    let program = compiled(&sandbox, "cc", "loads", PROGRAM, &["-pthread", "-DLOADS", "-rdynamic", "-ldl"]);
    let (Some(library), Some(program)) = (library, program) else {
        return skip("a_library_loaded_at_run_time_has_functions", "there is no cc");
    };
    let store = sandbox.path("store");
    let took = recorded(&store, &program, &["burn", library.to_str().unwrap()]);
    let samples = Samples::of(ask(&store));
    assert_eq!(took.len(), 3);
    the_shares_are_right(&samples, "", &took, "dlopen");
    stacks_go_up_to_main(&samples, &took, "dlopen");
    let is_of_library = |stack: &[_]| of_runtime(stack, "").iter().any(|entry| entry.binary.ends_with("library.so"));
    assert!(samples.with(is_of_library) > 0, "{}", samples.dump());
}

#[test]
fn functions_without_symbols_are_addresses_with_a_reason() {
    if !can_sample("functions_without_symbols_are_addresses_with_a_reason") {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = compiled(&sandbox, "cc", "bare", PROGRAM, &["-pthread", "-s"]) else {
        return skip("functions_without_symbols_are_addresses_with_a_reason", "there is no cc");
    };
    let store = sandbox.path("store");
    recorded(&store, &program, &["burn"]);
    let samples = Samples::of(ask(&store));
    let is_of_program = |stack: &[_]| of_runtime(stack, "").last().is_some_and(|leaf| leaf.binary.ends_with("/bare"));
    let is_whole = |stack: &[_]| of_runtime(stack, "").iter().any(|entry| entry.function.contains("libc_start_main"));
    let all = samples.with(is_of_program);
    let whole = samples.with(|stack| is_of_program(stack) && is_whole(stack));
    assert!(all >= 200 && whole * 100 >= all * 99, "{whole} of {all} stacks are whole\n{}", samples.dump());
    let flame = json(longpole(&store).args(["flame", "--format", "json"]));
    let frames = flame["frames"].as_array().unwrap();
    let unnamed: Vec<_> = frames.iter().filter(|frame| frame["function"].as_str().unwrap().starts_with("bare+0x")).collect();
    assert!(!unnamed.is_empty() && unnamed.iter().all(|frame| frame["reason"].as_str().is_some()), "{frames:?}");

    // The functions still differ: three parts of the time are in one, one part in another.
    let mut of_functions: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, count) in samples.stacks() {
        if let Some(leaf) = of_runtime(stack, "").last().filter(|leaf| leaf.binary.ends_with("/bare")) {
            *of_functions.entry(leaf.function.clone()).or_default() += count;
        }
    }
    let most = *of_functions.values().max().unwrap();
    assert!(most * 100 >= all * 65 && most * 100 <= all * 85, "{of_functions:?}");
}

#[test]
fn many_short_threads_and_processes_are_all_recorded() {
    if !can_sample("many_short_threads_and_processes_are_all_recorded") {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = compiled(&sandbox, "cc", "lives", PROGRAM, &["-pthread"]) else {
        return skip("many_short_threads_and_processes_are_all_recorded", "there is no cc");
    };
    let main_and = |others: u64| others + 1;
    for (what, threads, others) in
        [("together", main_and(200), "tid <> pid"), ("short", main_and(200), "tid <> pid"), ("forks", main_and(20), "TRUE")]
    {
        let store = sandbox.path(what);
        let took = recorded(&store, &program, &[what]);
        let mut sql = ask(&store);
        let mut number = |query: String| rows(&sql(&query)).next().unwrap()[0].as_f64().unwrap();
        let seen = number("SELECT count(*) FROM threads".to_owned());
        assert_eq!(seen as u64, threads, "{what}");
        // What a thread takes to begin and to end is the kernel's and the library's work; it stands in the slices too.
        let on_cpu =
            number(format!("SELECT sum(end_time_monotonic_nano - start_time_monotonic_nano) / 1e9 FROM cpu_slices WHERE {others}"));
        let said: f64 = took.values().sum();
        assert!(on_cpu >= said * 0.99, "{what}: {on_cpu} s in slices, the program measured {said} s");
        assert!(on_cpu <= said * 1.10 + threads as f64 * 0.000_5, "{what}: {on_cpu} s in slices, the program measured {said} s");
        let samples = Samples::of(ask(&store));
        let expected = said * 999.0;
        let function = took.keys().next().unwrap();
        let found = samples.with(|stack| of_runtime(stack, "").iter().any(|entry| entry.function == *function)) as f64;
        let tolerance = 5.0 * expected.sqrt() + expected * 0.05;
        assert!((found - expected).abs() <= tolerance, "{what}: {found} samples in {function}, {expected} expected\n{}", samples.dump());
    }
}

#[test]
fn stacks_pass_hand_written_frames() {
    const STORY: &str = "stacks_pass_hand_written_frames";
    if !can_sample(STORY) {
        return;
    }
    let sandbox = Sandbox::new();
    let (many, caller) = many_functions_and_their_caller();
    let Some(many) = compiled(&sandbox, "cc", "many.so", &many, &["-shared", "-fPIC", "-fomit-frame-pointer"]) else {
        return skip(STORY, "there is no cc");
    };
    let lazy = ["-shared", "-fPIC", "-fplt", "-Wl,-z,lazy,--no-as-needed", "-fomit-frame-pointer", many.to_str().unwrap()];
    let binder = compiled(&sandbox, "cc", "binder.so", &caller, &lazy).unwrap();
    let program = compiled(&sandbox, "cc", "by_hand", BY_HAND, &["-ldl", "-fomit-frame-pointer"]).unwrap();
    let store = sandbox.path("store");
    let took = recorded(&store, &program, &[binder.to_str().unwrap()]);
    let samples = Samples::of(ask(&store));
    stacks_go_up_to_main(&samples, &took, "by hand");
    let resolves = |stack: &[Entry]| of_runtime(stack, "").windows(2).any(|pair| pair[0].function == "call_all" && is_resolver(pair[1]));
    assert!(samples.with(resolves) >= 100, "{}", samples.dump());
    let cut = samples.with(|stack| stack.iter().any(|entry| entry.kind == "cut"));
    assert!(cut <= 1, "{cut} are cut off\n{}", samples.dump());
}

/// Whether this is what the loader has called instead of a function that it has not bound yet.
fn is_resolver(entry: &Entry) -> bool {
    entry.function.starts_with("_dl_runtime_resolve")
        || Path::new(&entry.binary).file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-"))
}

/// Waits of 1 ms, one after the other.
const SLEEPER: &str = r#"
#include <time.h>
__attribute__((noinline)) static void poll_often(void) {
    struct timespec millisecond = { 0, 1000000 };
    for (int i = 0; i < 400; i++) nanosleep(&millisecond, 0);
    __asm__ volatile("");
}
int main(void) { poll_often(); return 0; }
"#;

/// Each of them is too short to inspect all.
#[test]
fn repeated_short_waits_have_a_kind_and_a_function() {
    if !can_sample("repeated_short_waits_have_a_kind_and_a_function") {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = compiled(&sandbox, "cc", "sleeper", SLEEPER, &[]) else {
        return skip("repeated_short_waits_have_a_kind_and_a_function", "there is no cc");
    };
    // If others want the CPUs, sleeps of a millisecond last long enough to inspect.
    holds(2, 4, "what is waited for again and again is named", || {
        let summary = sandbox.path("summary");
        let mut run = longpole(&sandbox.path("store"));
        run.args(["run", "--summary-format", "json", "--summary"]).arg(&summary).arg("--").arg(&program);
        assert!(run.stdin(Stdio::null()).status().unwrap().success());
        let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
        let pole = &summary["poles"][0];
        let text = pole["reason"]["text"].as_str().unwrap();
        let is_named = text.contains("blocked in waits under 5ms: ") && text.contains(" sampled were asleep, in poll_often");
        let nanos = |state: &Value| state.as_f64().unwrap();
        let (unseen, asleep) = (&pole["states"]["blocked_unseen_nanos"], &pole["states"]["blocked_nanos"]["sleep"]);
        // longpole does not guess the others.
        let is_right = is_named && nanos(unseen) > nanos(asleep) && nanos(asleep) > 0.0;
        if is_right { Ok(()) } else { Err(summary.to_string()) }
    });
}
