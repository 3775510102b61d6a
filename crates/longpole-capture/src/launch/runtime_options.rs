//! The environment by which a runtime is asked for the names of the code it compiles.
//!
//! | runtime | variable | what is appended |
//! |---|---|---|
//! | Node.js | `NODE_OPTIONS` | `--perf-basic-prof-only-functions --interpreted-frames-native-stack` |
//! | Java (JDK 17 and later) | `JAVA_TOOL_OPTIONS` | `-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit` |
//!
//! Only where somebody asks for it: Node compiles each function it interprets a frame of its own, Java gives up a register and says
//! on standard error that it was given options. What was in the variable stays in front. (`--perf-basic-prof` names the runtime's own
//! code too, which its binary names anyway, and leaves a log of V8 in the working directory. So does `--perf-prof`, with a dump of
//! megabytes beside it: see decision 0015.)

use std::ffi::OsString;

/// A runtime that can be asked.
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
            // A machine that does not know one of them would not start without the first.
            JitRuntime::Java => (
                "JAVA_TOOL_OPTIONS",
                "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
            ),
        }
    }
}

/// Adds to an environment what asks these runtimes.
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
    fn what_the_user_set_stays_in_front() {
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
