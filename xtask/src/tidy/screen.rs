//! All text leaves the binary through one file, which escapes what would steer a terminal.

use super::House;
use super::source::Source;

/// The one file of the binary that writes to a terminal.
const SCREEN: &str = "crates/longpole/src/terminal/screen.rs";

/// What writes to a terminal past it.
const PAST_THE_SCREEN: [&str; 6] = ["io::stdout", "io::stderr", "print!(", "println!(", "eprint!(", "eprintln!("];

pub(super) fn screen(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in house.rust().filter(|file| file.path.starts_with("crates/longpole/src/") && file.path != SCREEN) {
        for (index, line) in Source::new(&file.text).code.lines().enumerate() {
            if PAST_THE_SCREEN.iter().any(|call| line.contains(call)) {
                found.push(file.finding(index + 1, "writes past screen.rs: use print, say or to_output"));
            }
        }
    }
    found
}
