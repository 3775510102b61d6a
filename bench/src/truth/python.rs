//! A plan as a Python program.

use std::fmt::Write as _;

use super::plan::{HEAD_START_MILLIS, Noise, Plan, Step};

const HEAD: &str = r#"import os, queue, subprocess, sys, threading, time

def lane(functions):
    for function in functions:
        function()

def start_thread(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    return thread

def start_child(name, **options):
    return subprocess.Popen([sys.executable, '-S', __file__, name], **options)

"#;

pub(super) fn source(plan: &Plan) -> String {
    let mut text = HEAD.to_owned();
    for function in &plan.functions {
        let (name, seconds) = (&function.name, function.millis as f64 / 1e3);
        let _ = if function.computes {
            write!(
                text,
                "def {name}():\n    if os.environ.get('SKIP') == '{name}':\n        return\n    end = time.thread_time() + {seconds}\n    total = 0\n    while time.thread_time() < end:\n        for number in range(2000):\n            total += number * number % 7\n\n"
            )
        } else {
            write!(text, "def {name}():\n    if os.environ.get('SKIP') != '{name}':\n        time.sleep({seconds})\n\n")
        };
    }
    let name = |function: usize| plan.functions[function].name.as_str();
    let lane = |functions: &[usize]| format!("[{}]", functions.iter().map(|&function| name(function)).collect::<Vec<_>>().join(", "));
    let (mut children, mut main) = (String::new(), String::new());
    for (at, step) in plan.steps.iter().enumerate() {
        let _ = match step {
            Step::Call(function) => writeln!(main, "    {}()", name(*function)),
            Step::Threads(lanes) => {
                let lanes: Vec<String> = lanes.iter().map(|functions| lane(functions)).collect();
                writeln!(
                    main,
                    "    for thread in [start_thread(lane, functions) for functions in [{}]]:\n        thread.join()",
                    lanes.join(", ")
                )
            }
            Step::Children { lanes, at_once } => {
                let names: Vec<String> = (0..lanes.len()).map(|lane| format!("'step{at}-{lane}'")).collect();
                for (functions, name) in lanes.iter().zip(&names) {
                    let _ = writeln!(children, "    {name}: lambda: lane({}),", lane(functions));
                }
                let names = names.join(", ");
                if *at_once {
                    writeln!(main, "    for child in [start_child(name) for name in [{names}]]:\n        child.wait()")
                } else {
                    writeln!(main, "    for name in [{names}]:\n        start_child(name).wait()")
                }
            }
            Step::Serialised { threads, function } => writeln!(
                main,
                "    lock{at} = threading.Lock()\n    def worker{at}():\n        with lock{at}:\n            {}()\n    for thread in [start_thread(worker{at}) for _ in range({threads})]:\n        thread.join()",
                name(*function)
            ),
            Step::Held { holder, waiter } => writeln!(
                main,
                "    lock{at} = threading.Lock()\n    def holder{at}():\n        with lock{at}:\n            {}()\n    thread = start_thread(holder{at})\n    time.sleep({})\n    with lock{at}:\n        {}()\n    thread.join()",
                name(*holder),
                HEAD_START_MILLIS as f64 / 1e3,
                name(*waiter)
            ),
            Step::Items { of_child: false, items, capacity, produce, consume } => writeln!(
                main,
                "    queue{at} = queue.Queue({})\n    def producer{at}():\n        for item in range({items}):\n            {}()\n            queue{at}.put(item)\n    thread = start_thread(producer{at})\n    for _ in range({items}):\n        queue{at}.get()\n        {}()\n    thread.join()",
                capacity.unwrap_or(0),
                name(*produce),
                name(*consume)
            ),
            Step::Items { of_child: true, items, produce, consume, .. } => {
                let _ = writeln!(children, "    'step{at}': produce{at},");
                let _ = write!(
                    text,
                    "def produce{at}():\n    for item in range({items}):\n        {}()\n        print(item, flush=True)\n\n",
                    name(*produce)
                );
                writeln!(
                    main,
                    "    child = start_child('step{at}', stdout=subprocess.PIPE, text=True)\n    for line in child.stdout:\n        {}()\n    child.wait()",
                    name(*consume)
                )
            }
        };
    }
    let noise = match plan.noise {
        Noise::None => "",
        Noise::Burns | Noise::Polls => {
            "    def poll_noise():\n        while True:\n            time.sleep(0.003)\n    threading.Thread(target=poll_noise, daemon=True).start()\n"
        }
    };
    let _ = write!(
        text,
        "CHILDREN = {{\n{children}}}\n\ndef main():\n{noise}{main}\nif __name__ == '__main__':\n    CHILDREN.get(sys.argv[1] if len(sys.argv) > 1 else '', main)()\n"
    );
    text
}
