//! The stories: what users want, told from outside the binary. One test binary, one file a wish.

#![allow(unsafe_code, reason = "pseudo-terminals and raw signals; the files are few and listed in xtask's tidy")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "stories say what they skip and how far they are")]

mod support;

mod answer_for_any_program;
mod ask_a_server;
mod ask_about_a_function;
mod ask_in_sql;
mod attach_to_a_process;
mod deploy_with_pulumi;
mod exec_in_a_script;
mod fail_at_each_call;
mod fill_the_disk;
mod find_the_long_pole;
mod find_what_grows;
mod follow_a_checkout;
mod hand_on_to_anybody;
mod hand_the_code_on;
mod keep_continuous_profiles;
mod keep_no_secret;
mod keep_recordings;
mod let_in_by_a_token;
mod live_in_a_container;
mod map_the_services;
mod name_who_holds_a_lock;
mod profile_a_machine;
mod read_a_profile;
mod read_other_tools_files;
mod read_the_page;
mod read_what_pulumi_writes;
mod receive_from_any_sdk;
mod replace_a_jaeger_server;
mod run_a_command;
mod see_below_sudo;
mod see_code_made_meanwhile;
mod see_native_code;
mod see_the_code;
mod see_the_kernel;
mod see_the_spans_of_any_sdk;
mod see_what_coroutines_wait_for;
mod see_what_goroutines_wait_for;
mod send_by_other_doors;
mod send_to_a_trusted_collector;
#[cfg(feature = "sql")]
mod serve_like_embucket;
mod survive_a_crash;
mod tie_code_to_spans;
mod type_a_command;
