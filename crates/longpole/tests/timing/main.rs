//! The stories that hold the answer against a clock. They take turns, and cargo runs this binary after the other stories: whoever else
//! works on the machine changes what is measured.

#![allow(unsafe_code, reason = "the clock of a thread; the file is listed in xtask's tidy")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "stories say what they skip and how far they are")]
#![allow(dead_code, reason = "the support is that of the stories, which use all of it")]

#[path = "../stories/support/mod.rs"]
mod support;

mod account_for_the_time;
mod find_the_slow_part_of_a_pipeline;
mod save_in_a_deployment;
mod see_a_web_service;
mod see_what_processes_use;
mod wait_for_a_server;
