//! `--help` of every command, as it stands in a file or a pipe: see `snapshots/`.

use clap::{Arg, CommandFactory as _};

use super::Arguments;

/// Columns where there is no terminal.
const WIDTH: usize = 100;

#[test]
fn help_of_every_command() {
    let mut all = Arguments::command().term_width(WIDTH);
    all.build();
    insta::assert_snapshot!("help", all.render_long_help());
    for command in all.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let name = format!("help_{}", command.get_name().replace('-', "_"));
        // Variables of whoever runs the tests are none of the help.
        let mut command = command.clone().mut_args(|argument: Arg| argument.hide_env_values(true));
        insta::assert_snapshot!(name, command.render_long_help());
    }
}
