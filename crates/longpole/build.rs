//! How the binary is linked.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A position-independent executable of this size has 200,000 addresses to relocate before `main`: 3 of the 13 ms that
    // `run -- true` took. See docs/decisions/0005-start-up.md.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // A program of the stories that another profiler looks into: as the SDK's page tells people to link theirs.
        println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
    }
}
