//! One request to a collector and what it answers.

use std::time::Duration;

use crate::config::ExportConfig;

mod answer;
#[cfg(feature = "opentelemetry")]
pub(crate) mod grpc;
pub(crate) mod http;
#[cfg(feature = "tls")]
mod tls;

pub(crate) use self::answer::Answer;

/// The way to the collector. Each has a connection of its own.
pub(crate) enum Transport {
    Http(http::Http),
    #[cfg(feature = "opentelemetry")]
    Grpc(Box<grpc::Grpc>),
    /// There is none: why.
    None(String),
}

impl Transport {
    pub(crate) fn new(config: &ExportConfig) -> Self {
        #[cfg(feature = "opentelemetry")]
        if config.protocol == crate::options::Protocol::Grpc {
            return match grpc::Grpc::new(config) {
                Ok(grpc) => Self::Grpc(Box::new(grpc)),
                Err(why) => Self::None(why),
            };
        }
        match http::Http::new(config) {
            Ok(http) => Self::Http(http),
            Err(why) => Self::None(why),
        }
    }

    /// Sends a request, waiting for no longer than `timeout` at a time: over HTTP in each phase, over gRPC in all.
    pub(crate) fn send(&mut self, request: &[u8], timeout: Option<Duration>) -> Answer {
        match self {
            Self::Http(http) => http.send(request, timeout),
            #[cfg(feature = "opentelemetry")]
            Self::Grpc(grpc) => grpc.send(request, timeout),
            Self::None(why) => Answer::Refused { why: why.clone() },
        }
    }
}
