//! The stories: what users want, told from outside the binary. One test binary, one file a wish.

mod support;

mod ask_in_sql;
mod find_the_long_pole;
mod read_the_page;
mod receive_from_any_sdk;
mod run_a_command;
mod survive_a_crash;
