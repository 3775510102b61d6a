//! `longpole-symbols` against binaries whose answers are known, and against bytes nobody would link.

#![expect(clippy::print_stdout, reason = "a test that cannot run here says so")]

mod binaries;
mod hostile;
mod oracle;
mod oracle_jitdump;
mod oracle_perf_map;
mod oracle_python;
mod recordings;
mod this_program;
