//! Tells cargo to look again when the page was built. A release build embeds `web/dist`; a debug build reads it where it is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A path that is not there would make every build run this again; a debug build does not need to know.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=../../web/dist");
    }
}
