//! Options that make a runtime write the names of the code that it compiles.
//!
//! | runtime | variable | appended |
//! |---|---|---|
//! | Node.js | `NODE_OPTIONS` | `--perf-basic-prof-only-functions --interpreted-frames-native-stack` |
//! | Java (JDK 17 and later) | `JAVA_TOOL_OPTIONS` | `-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit` |
//!
//! Only on request: Node then makes a native frame for each interpreted function, and Java gives up a register and prints on standard error that
//! it has options. The user's own value stays in front. (`--perf-basic-prof` also names the runtime's own code, which its binary does anyway,
//! and leaves a log of V8 in the working directory. So does `--perf-prof`, with a dump of megabytes: see decision 0015.)

use std::ffi::OsString;

/// A runtime with such options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JitRuntime {
    /// Node.js.
    Node,
    /// A Java virtual machine.
    Java,
}

impl JitRuntime {
    fn variable(self) -> (&'static str, &'static str) {
        match self {
            JitRuntime::Node => ("NODE_OPTIONS", "--perf-basic-prof-only-functions --interpreted-frames-native-stack"),
            // Without the first, a Java that does not know one of the others would not start.
            JitRuntime::Java => (
                "JAVA_TOOL_OPTIONS",
                "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
            ),
        }
    }
}

/// Adds the options of these runtimes to an environment.
pub fn add(runtimes: &[JitRuntime], environment: &mut Vec<(OsString, OsString)>) {
    for runtime in runtimes {
        let (name, options) = runtime.variable();
        match environment.iter_mut().find(|(key, _)| key == name) {
            Some((_, value)) if !value.is_empty() => {
                value.push(" ");
                value.push(options);
            }
            Some((_, value)) => value.push(options),
            None => environment.push((name.into(), options.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_options_stay_in_front() {
        let mut environment: Vec<(OsString, OsString)> = vec![("NODE_OPTIONS".into(), "--max-old-space-size=64".into())];
        add(&[JitRuntime::Node, JitRuntime::Java], &mut environment);
        let value = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(
            value("NODE_OPTIONS"),
            Some("--max-old-space-size=64 --perf-basic-prof-only-functions --interpreted-frames-native-stack")
        );
        assert!(value("JAVA_TOOL_OPTIONS").is_some_and(|value| value.starts_with("-XX:+IgnoreUnrecognizedVMOptions ")));
        let before = environment.clone();
        add(&[], &mut environment);
        assert_eq!(environment, before);
    }
}
