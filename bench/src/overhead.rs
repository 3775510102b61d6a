//! The cost of sampling to the program: wall and CPU time at 999 Hz beside perf and samply, on a CPU-bound program of one thread and of two, on one
//! that switches, and on one of many threads.

use anyhow::{Context, Result};

use crate::{Subject, peers, timing};

const ROUNDS: usize = 21;

/// Prints, for each load, the ratio of wall time and of its own CPU time to the plain program, and the CPU time of program and tool that was added.
pub(crate) fn measure(subjects: &[Subject]) -> Result<()> {
    let me = std::env::current_exe().context("failed to find this program")?.to_string_lossy().into_owned();
    let dir = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("failed to make a temporary folder")?;
    let peer = |name: &str| if subjects.len() == 1 { peers::find(name) } else { None };
    let (perf, samply) = (peer("perf"), peer("samply"));
    let loads = [
        ("a busy thread", ["one", "2000"]),
        ("two busy threads", ["spin", "2000"]),
        ("a byte passed to and fro", ["switch", "40000"]),
        ("200 threads that work for 0.1 ms and sleep for 30", ["burst", "60"]),
    ];
    for (title, load) in loads {
        let program: Vec<String> = [&me, "load", load[0], load[1]].map(str::to_owned).to_vec();
        let mut tools: Vec<(&str, Vec<String>)> = vec![("plain", Vec::new())];
        let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
        let words = |line: &[&str]| line.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for Subject { name, binary } in subjects {
            tools.push((name, words(&[binary, "--store", &path(name), "run", "--summary", "none", "--"])));
        }
        if let Some(perf) = &perf {
            tools.push(("perf record -g", words(&[perf, "record", "-q", "-F", "999", "-g", "-o", &path("fp.data"), "--"])));
            tools.push((
                "perf record, dwarf",
                words(&[perf, "record", "-q", "-F", "999", "--call-graph", "dwarf,16384", "-o", &path("dwarf.data"), "--"]),
            ));
            // The least that exact states can cost here: the kernel's record of each switch, and not one sample.
            let switches = ["record", "-q", "-e", "dummy:u", "--switch-events", "-o", &path("switches.data"), "--"];
            tools.push(("perf, switches only", words(&[&[perf.as_str()], &switches[..]].concat())));
        }
        if let Some(samply) = &samply {
            tools.push(("samply record", words(&[samply, "record", "-s", "-r", "999", "-o", &path("profile.json.gz"), "--"])));
        }
        // A peer that the kernel refuses here (samply, at perf_event_paranoid 2) is reported once and left out of all rounds.
        tools.retain(|(name, tool)| {
            let argv: Vec<String> = tool.iter().chain(&program).cloned().collect();
            let tried = timing::once(&argv, &[]);
            if let Err(error) = &tried {
                println!("{name}: left out, it does not run here: {error}");
            }
            tried.is_ok()
        });
        let mut rounds = vec![Vec::with_capacity(ROUNDS); tools.len()];
        for _ in 0..ROUNDS {
            for ((_, tool), kept) in tools.iter().zip(&mut rounds) {
                let argv: Vec<String> = tool.iter().chain(&program).cloned().collect();
                kept.push(timing::once(&argv, &[])?);
            }
        }
        print_table(title, &tools, &rounds);
    }
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}

fn print_table(title: &str, tools: &[(&str, Vec<String>)], rounds: &[Vec<timing::Round>]) {
    println!("{title}, {ROUNDS} interleaved rounds at 999 Hz");
    for ((name, _), mine) in tools.iter().zip(rounds) {
        // Each round is compared with the plain run of the same round: drift of the machine cancels.
        let against_plain = |of: fn(&timing::Round) -> f64| -> timing::Median {
            timing::median(&mine.iter().zip(&rounds[0]).map(|(tool, plain)| (of(tool) / of(plain) - 1.0) * 100.0).collect::<Vec<_>>())
        };
        let (own, whole) = (against_plain(|round| round.own_secs), against_plain(|round| round.wall_secs));
        let own_cpu = against_plain(|round| round.own_cpu_secs);
        let added: Vec<f64> = mine.iter().zip(&rounds[0]).map(|(tool, plain)| tool.cpu_secs - plain.cpu_secs).collect();
        let wall = timing::median(&mine.iter().map(|r| r.wall_secs).collect::<Vec<_>>());
        let cpu = timing::median(&added);
        println!(
            "  {name:20} {:6.3} s   work {:+5.1} % [{:+.1}, {:+.1}]   its CPU {:+5.1} % [{:+.1}, {:+.1}]   with start and end {:+5.1} %   CPU of all {:+.2} s",
            wall.value, own.value, own.low, own.high, own_cpu.value, own_cpu.low, own_cpu.high, whole.value, cpu.value
        );
    }
}
