//! The attacks: what an attacker, a hostile file or bad luck tries, from outside the binary. One file for each line of the list in
//! `SECURITY.md`.
//!
//! `cargo test` runs each once, as whoever runs it. `cargo xtask attack` runs them all, the slow ones too, as root and as a plain user,
//! under umask 022 and 077, with and without `HOME`; `--binary PATH` attacks another binary, such as that of an earlier commit.

#![allow(unsafe_code, reason = "pseudo-terminals and raw signals; the files are few and listed in xtask's tidy")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "attacks say what they skip and how far they are")]
#![allow(dead_code, reason = "the support is that of the stories, which use all of it")]

#[path = "../stories/support/mod.rs"]
mod support;

mod damage_a_log;
#[cfg(feature = "sql")]
mod damage_a_segment;
mod delete_any_directory;
mod exhaust_a_server;
mod exhaust_sql;
mod feed_a_hostile_file;
mod leak_a_secret;
mod lose_the_last_spans;
mod plant_a_trace_file;
mod read_any_file;
mod read_recordings_of_others;
mod send_spans_of_others;
mod spy_on_a_machine;
mod starve_the_receiver;
mod steal_the_key;
mod steer_the_terminal;
mod step_the_clock;

use support::{PlainUser, Sandbox, plain_user, skip};

/// Another user than the one whose recording is attacked, or a noted skip where nobody can become one.
fn another_user(sandbox: &Sandbox, attack: &str) -> Option<PlainUser> {
    let user = plain_user(sandbox, attack)?;
    if !user.becomes {
        skip(attack, "only root can become another user");
    }
    user.becomes.then_some(user)
}
