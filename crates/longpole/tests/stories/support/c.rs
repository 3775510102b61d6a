//! Small programs in C: what they do is known to the function and to the system call.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Sandbox, skip};

/// Compiles a program with debug information; `None`, noted, where there is no compiler.
pub(crate) fn compile(sandbox: &Sandbox, story: &str, name: &str, source: &str) -> Option<PathBuf> {
    compile_with(sandbox, story, name, source, &[])
}

/// The same, with more arguments for the compiler.
pub(crate) fn compile_with(sandbox: &Sandbox, story: &str, name: &str, source: &str, more: &[&str]) -> Option<PathBuf> {
    let (file, program) = (sandbox.path(&format!("{name}.c")), sandbox.path(name));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O1", "-pthread", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o"]).arg(&program).arg(&file).args(more);
    match compiler.output() {
        Err(_) => {
            skip(story, "there is no C compiler");
            None
        }
        Ok(out) => {
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            Some(program)
        }
    }
}

/// Runs a tool that must be there and succeed; `false`, noted, where it is not there.
pub(crate) fn tool(story: &str, name: &str, arguments: &[&Path]) -> bool {
    match Command::new(name).args(arguments).output() {
        Err(_) => {
            skip(story, &format!("{name} is not there"));
            false
        }
        Ok(out) => {
            assert!(out.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
            true
        }
    }
}
