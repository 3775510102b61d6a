//! Tells cargo to look again when the page was built. A release build embeds `web/dist`; a debug build reads it where it is.

use std::path::Path;

/// The page, seen from this crate.
const PAGE: &str = "../../web";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A path that is not there would make every build run this again; a debug build does not need to know.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed={PAGE}/dist");
    } else if Path::new(PAGE).is_dir() {
        // A debug build settles when it is compiled where the folder is, and would never find one that comes later. Without it the
        // page is reported as not built, as it is with an empty one.
        std::fs::create_dir_all(format!("{PAGE}/dist")).ok();
    }
}
