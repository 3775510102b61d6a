//! What a binary tells about itself beside its code: whether it holds an interpreter of Python, V8, a Java virtual machine, the variable of OpenTelemetry's
//! thread context, or code that a signal handler returns to.
//!
//! Each probe reads an ELF file that is open already. Most binaries hold none of these, so each begins with a search that is cheap.

mod dynamic_names;
pub(crate) mod go;
mod go_types;
pub(crate) mod hotspot;
pub(crate) mod otel_thread;
pub(crate) mod python;
pub(crate) mod realigning;
pub(crate) mod signal_return;
pub(crate) mod v8;
