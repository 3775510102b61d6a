//! A plan as a C program.

use std::fmt::Write as _;

use super::plan::{HEAD_START_MILLIS, Noise, Plan, Step};

const HEAD: &str = r#"#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static const char *skipped;

#define IS_SKIPPED(NAME) (skipped && !strcmp(skipped, #NAME))
#define COMPUTE(NAME, MILLIS)                                                                                     \
    __attribute__((noinline)) void NAME(void) {                                                                   \
        if (IS_SKIPPED(NAME)) return;                                                                             \
        struct timespec at;                                                                                       \
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);                                                              \
        long end = at.tv_sec * 1000000000L + at.tv_nsec + MILLIS * 1000000L;                                      \
        do {                                                                                                      \
            for (int i = 0; i < 20000; i++) sink += i;                                                            \
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);                                                          \
        } while (at.tv_sec * 1000000000L + at.tv_nsec < end);                                                     \
    }
#define SLEEP(NAME, MILLIS)                                                                                       \
    __attribute__((noinline)) void NAME(void) {                                                                   \
        if (IS_SKIPPED(NAME)) return;                                                                             \
        struct timespec time = { MILLIS / 1000, MILLIS % 1000 * 1000000L };                                       \
        nanosleep(&time, 0);                                                                                      \
        sink++;                                                                                                   \
    }

typedef void (*function)(void);

static void *run_thread(void *target) {
    ((function)target)();
    sink++;
    return 0;
}

static void join_all(int count, function *targets) {
    pthread_t threads[8];
    for (int i = 0; i < count; i++) pthread_create(&threads[i], 0, run_thread, (void *)targets[i]);
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
}

static pid_t start_child(const char *name, int out) {
    pid_t child = fork();
    if (child == 0) {
        if (out >= 0) dup2(out, 1);
        execl("/proc/self/exe", "program", name, (char *)0);
        _exit(127);
    }
    return child;
}

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int items, capacity;
};

__attribute__((noinline)) static void put_item(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (queue->capacity && queue->items >= queue->capacity) pthread_cond_wait(&queue->changed, &queue->lock);
    queue->items++;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

__attribute__((noinline)) static void take_item(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (!queue->items) pthread_cond_wait(&queue->changed, &queue->lock);
    queue->items--;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

"#;

pub(super) fn source(plan: &Plan) -> String {
    let mut text = HEAD.to_owned();
    for function in &plan.functions {
        let kind = if function.computes { "COMPUTE" } else { "SLEEP" };
        let _ = writeln!(text, "{kind}({}, {})", function.name, function.millis);
    }
    let name = |function: usize| plan.functions[function].name.as_str();
    let calls = |functions: &[usize]| functions.iter().map(|&function| format!("{}(); ", name(function))).collect::<String>();
    let (mut functions, mut children, mut main) = (String::new(), String::new(), String::new());
    for (at, step) in plan.steps.iter().enumerate() {
        let _ = match step {
            Step::Call(function) => writeln!(main, "    {}();", name(*function)),
            Step::Threads(lanes) => {
                let mut targets = Vec::new();
                for (lane, called) in lanes.iter().enumerate() {
                    let _ = writeln!(functions, "static void lane{at}_{lane}(void) {{ {}sink++; }}", calls(called));
                    targets.push(format!("lane{at}_{lane}"));
                }
                writeln!(main, "    join_all({}, (function[]){{ {} }});", lanes.len(), targets.join(", "))
            }
            Step::Children { lanes, at_once } => {
                for (lane, called) in lanes.iter().enumerate() {
                    let _ = writeln!(children, "    if (!strcmp(name, \"step{at}-{lane}\")) {{ {}return 0; }}", calls(called));
                    let started = format!("start_child(\"step{at}-{lane}\", -1)");
                    let _ = if *at_once { writeln!(main, "    {started};") } else { writeln!(main, "    waitpid({started}, 0, 0);") };
                }
                if *at_once { writeln!(main, "    while (wait(0) > 0) continue;") } else { Ok(()) }
            }
            Step::Serialised { threads, function } => {
                let _ = writeln!(
                    functions,
                    "static pthread_mutex_t lock{at} = PTHREAD_MUTEX_INITIALIZER;\nstatic void worker{at}(void) {{ pthread_mutex_lock(&lock{at}); {}(); pthread_mutex_unlock(&lock{at}); sink++; }}",
                    name(*function)
                );
                let targets = vec![format!("worker{at}"); *threads];
                writeln!(main, "    join_all({threads}, (function[]){{ {} }});", targets.join(", "))
            }
            Step::Held { holder, waiter } => {
                let _ = writeln!(
                    functions,
                    "static pthread_mutex_t lock{at} = PTHREAD_MUTEX_INITIALIZER;\nstatic void *holder{at}(void *no) {{ pthread_mutex_lock(&lock{at}); {}(); pthread_mutex_unlock(&lock{at}); return no; }}",
                    name(*holder)
                );
                writeln!(
                    main,
                    "    pthread_t thread{at};\n    pthread_create(&thread{at}, 0, holder{at}, 0);\n    usleep({});\n    pthread_mutex_lock(&lock{at});\n    {}();\n    pthread_mutex_unlock(&lock{at});\n    pthread_join(thread{at}, 0);",
                    HEAD_START_MILLIS * 1000,
                    name(*waiter)
                )
            }
            Step::Items { of_child: false, items, capacity, produce, consume } => {
                let _ = writeln!(
                    functions,
                    "static struct queue queue{at} = {{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {} }};\nstatic void *producer{at}(void *no) {{ for (int i = 0; i < {items}; i++) {{ {}(); put_item(&queue{at}); }} return no; }}",
                    capacity.unwrap_or(0),
                    name(*produce)
                );
                writeln!(
                    main,
                    "    pthread_t thread{at};\n    pthread_create(&thread{at}, 0, producer{at}, 0);\n    for (int i = 0; i < {items}; i++) {{ take_item(&queue{at}); {}(); }}\n    pthread_join(thread{at}, 0);",
                    name(*consume)
                )
            }
            Step::Items { of_child: true, items, produce, consume, .. } => {
                let _ = writeln!(
                    children,
                    "    if (!strcmp(name, \"step{at}\")) {{ for (int i = 0; i < {items}; i++) {{ {}(); if (write(1, \"x\", 1) < 1) return 1; }} return 0; }}",
                    name(*produce)
                );
                writeln!(
                    main,
                    "    int ends{at}[2];\n    char byte{at};\n    if (pipe2(ends{at}, O_CLOEXEC)) return 1;\n    pid_t child{at} = start_child(\"step{at}\", ends{at}[1]);\n    close(ends{at}[1]);\n    while (read(ends{at}[0], &byte{at}, 1) == 1) {}();\n    waitpid(child{at}, 0, 0);",
                    name(*consume)
                )
            }
        };
    }
    let noise = match plan.noise {
        Noise::None => "",
        Noise::Burns => "    pthread_t noise;\n    pthread_create(&noise, 0, burn_noise, 0);\n    pthread_detach(noise);\n",
        Noise::Polls => "    pthread_t noise;\n    pthread_create(&noise, 0, poll_noise, 0);\n    pthread_detach(noise);\n",
    };
    let _ = write!(
        text,
        "\n{functions}
void *burn_noise(void *no) {{ for (;;) sink++; return no; }}
void *poll_noise(void *no) {{ for (;;) usleep(3000); return no; }}

static int run_child(const char *name) {{
{children}    return 1;
}}

int main(int count, char **arguments) {{
    skipped = getenv(\"SKIP\");
    if (count > 1) return run_child(arguments[1]);
{noise}{main}    return 0;
}}
"
    );
    text.replace("#include <pthread.h>", "#include <fcntl.h>\n#include <pthread.h>")
}
