//! The ports of a server, by what comes there.

use std::net::{IpAddr, SocketAddr};

/// What comes at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// Browsers, and the queries of Jaeger's HTTP API.
    Page,
    /// OTLP over HTTP.
    OtlpHttp,
    /// OTLP over gRPC.
    OtlpGrpc,
    /// Zipkin: spans and queries.
    Zipkin,
    /// The queries of Jaeger's gRPC API.
    JaegerQuery,
    /// Spans of Jaeger's clients: Thrift over HTTP.
    JaegerThrift,
    /// The same over gRPC.
    JaegerGrpc,
    /// The same over UDP, in Thrift's compact protocol.
    JaegerCompact,
    /// The same over UDP, in Thrift's binary protocol.
    JaegerBinary,
    /// Sampling strategies for Jaeger's samplers, over HTTP.
    Sampling,
    /// The same over gRPC.
    SamplingGrpc,
    /// Profiles of Pyroscope's clients, and its queries.
    Pyroscope,
    /// Spans of AppDash's clients over TCP.
    AppDash,
    /// Health and metrics.
    Admin,
}

/// What is spoken at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Udp,
    AppDash,
}

impl Door {
    /// All of them.
    pub const ALL: [Door; 14] = [
        Door::Page,
        Door::OtlpHttp,
        Door::OtlpGrpc,
        Door::Zipkin,
        Door::JaegerQuery,
        Door::JaegerThrift,
        Door::JaegerGrpc,
        Door::JaegerCompact,
        Door::JaegerBinary,
        Door::Sampling,
        Door::SamplingGrpc,
        Door::Pyroscope,
        Door::AppDash,
        Door::Admin,
    ];

    /// Its name, and the port at which clients expect it.
    const fn facts(self) -> (&'static str, u16) {
        match self {
            Door::Page => ("page", 16686),
            Door::OtlpHttp => ("otlp-http", 4318),
            Door::OtlpGrpc => ("otlp-grpc", 4317),
            Door::Zipkin => ("zipkin", 9411),
            Door::JaegerQuery => ("jaeger-query", 16685),
            Door::JaegerThrift => ("jaeger-thrift", 14268),
            Door::JaegerGrpc => ("jaeger-grpc", 14250),
            Door::JaegerCompact => ("jaeger-compact", 6831),
            Door::JaegerBinary => ("jaeger-binary", 6832),
            Door::Sampling => ("sampling", 5778),
            Door::SamplingGrpc => ("sampling-grpc", 5779),
            Door::Pyroscope => ("pyroscope", 4040),
            Door::AppDash => ("appdash", 7701),
            Door::Admin => ("admin", 14269),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// The port at which clients expect it.
    pub fn usual_port(self) -> u16 {
        self.facts().1
    }

    /// The door of this name.
    pub fn named(name: &str) -> Option<Door> {
        Door::ALL.into_iter().find(|door| door.name() == name)
    }

    pub(super) fn transport(self) -> Transport {
        match self {
            Door::JaegerCompact | Door::JaegerBinary => Transport::Udp,
            Door::AppDash => Transport::AppDash,
            _ => Transport::Http,
        }
    }
}

/// The ports of a server. 0 takes a free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports([Option<u16>; Door::ALL.len()]);

impl Default for Ports {
    fn default() -> Self {
        Ports(Door::ALL.map(|door| Some(door.usual_port())))
    }
}

impl Ports {
    /// Sets the port of a door; without one it stays closed.
    pub fn set(&mut self, door: Door, port: Option<u16>) {
        self.0[door as usize] = port;
    }

    /// The port of a door.
    pub fn get(&self, door: Door) -> Option<u16> {
        self.0[door as usize]
    }

    /// Where the doors of this transport are to listen, one door after the other.
    pub(super) fn addresses(&self, transport: Transport, addresses: &[IpAddr]) -> Vec<(Door, SocketAddr)> {
        let doors = Door::ALL.into_iter().filter(|door| door.transport() == transport);
        let open = doors.filter_map(|door| Some((door, self.get(door)?)));
        open.flat_map(|(door, port)| addresses.iter().map(move |address| (door, SocketAddr::new(*address, port)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_have_a_name_and_a_port_of_their_own() {
        for (place, door) in Door::ALL.into_iter().enumerate() {
            assert_eq!(door as usize, place);
            assert_eq!(Door::named(door.name()), Some(door));
            assert_eq!(Ports::default().get(door), Some(door.usual_port()));
        }
        let mut numbers = Door::ALL.map(Door::usual_port);
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|two| two[0] != two[1]));
    }
}
