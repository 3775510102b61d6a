//! What a program can choose, by the names that people type: in a flag, in a variable, in a settings file.

use std::fmt;
use std::str::FromStr;

/// The part that takes spans from the program's threads and sends them.
///
/// Its names are values of a flag: with `clap`, `#[arg(long, default_value_t)] tracing_span_processor: SpanProcessor` is all.
///
/// ```
/// use longpole_sdk::SpanProcessor;
///
/// assert_eq!("batch-span-processor".parse(), Ok(SpanProcessor::Batch));
/// assert_eq!(SpanProcessor::default().to_string(), "longpole");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SpanProcessor {
    /// `longpole`: ours. Spans are encoded by the thread that ends them and sent by one plain thread.
    #[default]
    Longpole,
    /// `batch-span-processor`: OpenTelemetry's, with a thread of its own.
    Batch,
    /// `batch-span-processor-experimental-async-runtime`: OpenTelemetry's, as a task of an async runtime, here one that nobody
    /// else uses.
    BatchAsyncRuntime,
    /// `simple`: each span is sent when it ends, and the thread that ended it waits for that. For looking at what a program does,
    /// not for one that has much to do.
    Simple,
}

impl SpanProcessor {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::Longpole, Self::Batch, Self::BatchAsyncRuntime, Self::Simple];

    /// The name that people type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Longpole => "longpole",
            Self::Batch => "batch-span-processor",
            Self::BatchAsyncRuntime => "batch-span-processor-experimental-async-runtime",
            Self::Simple => "simple",
        }
    }
}

/// How spans go over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// `http/protobuf`.
    #[default]
    HttpProtobuf,
    /// `grpc`, with the feature `opentelemetry`.
    Grpc,
    /// `http/json`: taken as a name, and told; `http/protobuf` is used, which every collector takes on the same port.
    HttpJson,
}

impl Protocol {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::HttpProtobuf, Self::Grpc, Self::HttpJson];

    /// The name, as in `OTEL_EXPORTER_OTLP_PROTOCOL`.
    pub fn name(self) -> &'static str {
        match self {
            Self::HttpProtobuf => "http/protobuf",
            Self::Grpc => "grpc",
            Self::HttpJson => "http/json",
        }
    }
}

/// What becomes of events, beside their place in the span: lines on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Logs {
    /// `off`: no lines.
    #[default]
    Off,
    /// `text`: for people, with `trace_id` and `span_id` at the end of the line.
    Text,
    /// `json`: one object per line, with `trace_id` and `span_id`.
    Json,
}

impl Logs {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Text, Self::Json];

    /// The name that people type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// A name that is none of those to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not one of {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

macro_rules! named {
    ($($choice:ty),*) => {$(
        impl FromStr for $choice {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                let found = Self::ALL.into_iter().find(|choice| choice.name() == name);
                found.ok_or_else(|| UnknownName { known: Self::ALL.iter().map(|choice| choice.name()).collect() })
            }
        }

        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )*};
}

named!(SpanProcessor, Protocol, Logs);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        for processor in SpanProcessor::ALL {
            assert_eq!(processor.to_string().parse(), Ok(processor));
        }
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        for logs in Logs::ALL {
            assert_eq!(logs.to_string().parse(), Ok(logs));
        }
        assert_eq!("best".parse::<Logs>().unwrap_err().to_string(), "not one of off, text, json");
    }
}
