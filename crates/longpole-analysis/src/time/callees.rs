//! Whom a span calls: the address it names, and the process of the run that took connections there.
//!
//! ```text
//! payment    ├── validate card  server.address=127.0.0.1 server.port=4711 ──┤        sends spans
//! bank       ──────── accept ──┤ look_up_card ├── accept ───                    listens at 127.0.0.1:4711, sends none
//! ```
//!
//! What the bank did between the start and the end of the call is what the call waited for, as far as anybody can see: another call
//! may have been served meanwhile. Where the process sends spans of its own, these say it better.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use longpole_model::{
    AttributeValue, IdVec, Monotonic, Nanos, Process, ProcessRow, Recording, SampleId, Span, SpanKind, Timestamp, WaitId,
};

use crate::link::waits::is_for_work;
use crate::time::wait_groups::WaitSum;

/// What a key says of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressPart {
    /// A host, maybe with a port behind a colon.
    Host,
    Port,
    Url,
}

/// Keys by how near they are to the socket itself, nearest first: what OpenTelemetry says now, what it said before, what others say.
const KEYS: [(&str, usize, AddressPart); 15] = [
    ("network.peer.address", 0, AddressPart::Host),
    ("network.peer.port", 0, AddressPart::Port),
    ("net.sock.peer.addr", 1, AddressPart::Host),
    ("net.sock.peer.port", 1, AddressPart::Port),
    ("server.address", 2, AddressPart::Host),
    ("server.port", 2, AddressPart::Port),
    ("net.peer.ip", 3, AddressPart::Host),
    ("net.peer.name", 4, AddressPart::Host),
    ("net.peer.port", 3, AddressPart::Port),
    ("net.peer.port", 4, AddressPart::Port),
    ("peer.ipv4", 5, AddressPart::Host),
    ("peer.port", 5, AddressPart::Port),
    ("peer.address", 6, AddressPart::Host),
    ("url.full", 7, AddressPart::Url),
    ("http.url", 8, AddressPart::Url),
];

const RANKS: usize = 9;

/// The address that a span calls, while its attributes are read.
#[derive(Debug, Default)]
pub struct Called<'a> {
    hosts: [Option<&'a str>; RANKS],
    ports: [Option<u16>; RANKS],
}

impl<'a> Called<'a> {
    /// One attribute: its text, or its number.
    pub fn add(&mut self, key: &str, text: Option<&'a str>, number: Option<i64>) {
        // Every attribute of every span comes by here.
        if !matches!(key.as_bytes().first(), Some(b'n' | b's' | b'p' | b'u' | b'h')) {
            return;
        }
        for (_, rank, part) in KEYS.iter().filter(|(known, ..)| *known == key) {
            match part {
                AddressPart::Host => self.hosts[*rank] = text,
                AddressPart::Port => {
                    let number = number.or_else(|| text?.parse().ok());
                    self.ports[*rank] = number.and_then(|number| u16::try_from(number).ok());
                }
                AddressPart::Url => self.hosts[*rank] = text.and_then(authority),
            }
        }
    }

    /// The address, where it is one: names of hosts say nothing about this machine, except `localhost`.
    pub fn address(&self) -> Option<SocketAddr> {
        (0..RANKS).find_map(|rank| {
            let host = self.hosts[rank]?;
            let (ip, port) = match self.ports[rank] {
                Some(port) => (ip_of(host)?, port),
                None => {
                    let (host, port) = host.rsplit_once(':')?;
                    (ip_of(host)?, port.parse().ok()?)
                }
            };
            Some(SocketAddr::new(ip, port)).filter(|address| address.port() != 0)
        })
    }
}

/// `host:port` of a URL, where it has both.
fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.rsplit_once('@').map_or(authority, |(_, host)| host))
}

fn ip_of(host: &str) -> Option<IpAddr> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    Some(host.parse::<IpAddr>().ok()?.to_canonical())
}

/// Whether spans of this kind say whom they call: a server says who called it, or itself.
pub fn calls(kind: SpanKind) -> bool {
    matches!(kind, SpanKind::Client | SpanKind::Producer)
}

/// The address that a span calls.
pub fn address_of(span: &Span) -> Option<SocketAddr> {
    if !calls(span.kind) {
        return None;
    }
    let mut called = Called::default();
    for attribute in span.attributes.iter() {
        let number = if let AttributeValue::Int(number) = attribute.value { Some(number) } else { None };
        called.add(&attribute.key, attribute.value.as_str(), number);
    }
    called.address()
}

/// The processes that took connections at this address at one of these moments, by row: one, and those that it forked to share the work.
pub(crate) fn processes_at(recording: &Recording, address: SocketAddr, mut moments: Vec<Timestamp>) -> Vec<ProcessRow> {
    moments.sort_unstable();
    let lives = |process: &Process| {
        let start = recording.clock.to_unix(process.start)?;
        let end = process.end.and_then(|end| recording.clock.to_unix(end));
        let first = moments.get(moments.partition_point(|moment| *moment < start))?;
        end.is_none_or(|end| *first <= end).then_some(())
    };
    let listens = |at: &ProcessRow| {
        let process = &recording.processes[*at];
        process.listens.contains(&address) && lives(process).is_some()
    };
    recording.process_rows().filter(listens).collect()
}

/// The other side of calls: the processes that answer them, and what they did meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Callee<'a> {
    /// The address that is called.
    pub address: SocketAddr,
    /// Processes that take connections there, in `recording.processes`; several where one forked others to share the work. None where
    /// nobody was seen.
    pub processes: Vec<ProcessRow>,
    /// Whether a span of it answers: then that says what it does.
    pub answers: bool,
    /// Samples of these processes while they were called, for whomever.
    pub samples: Vec<SampleId>,
    /// What they waited for then, longest first.
    pub waits: Vec<WaitSum<'a>>,
}

/// What processes that take connections ran and waited for, by pid: offsets from the start of the run in nanoseconds, and places in the
/// recording.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    samples: HashMap<u32, Vec<(Nanos, SampleId)>>,
    waits: HashMap<u32, Vec<(Nanos, Nanos, WaitId)>>,
}

impl Servers {
    /// `idle` says which waits are those of workers for work.
    pub(crate) fn of(recording: &Recording, origin: Timestamp, idle: &IdVec<WaitId, bool>) -> Servers {
        let pids: HashSet<u32> = recording.processes.iter().filter(|it| !it.listens.is_empty()).map(|it| it.pid).collect();
        let mut out = Servers::default();
        if pids.is_empty() {
            return out;
        }
        let offset = |at: Monotonic| recording.clock.to_unix(at).map(|at| Nanos(at.nanos_since(origin)));
        for (id, sample) in recording.sample_ids().zip(&recording.samples).filter(|(_, sample)| pids.contains(&sample.pid)) {
            if let Some(at) = offset(sample.time) {
                out.samples.entry(sample.pid).or_default().push((at, id));
            }
        }
        for (id, wait) in recording.wait_ids().zip(&recording.waits) {
            let is_work = pids.contains(&wait.pid) && !idle[id] && !is_for_work(wait);
            if let (true, Some(from), Some(to)) = (is_work, offset(wait.start), offset(wait.end)) {
                out.waits.entry(wait.pid).or_default().push((from, to, id));
            }
        }
        out.samples.values_mut().for_each(|list| list.sort_unstable());
        out.waits.values_mut().for_each(|list| list.sort_unstable());
        out
    }

    /// What these processes did in these stretches of time, which stand in order and do not overlap: samples, and waits that began in one
    /// of them, each with its start and its end there. What a thread waited for before it was called is not for the call.
    pub(crate) fn meanwhile(&self, pids: &HashSet<u32>, stretches: &[(Nanos, Nanos)]) -> (Vec<SampleId>, Vec<(WaitId, Nanos, Nanos)>) {
        let (mut samples, mut waits) = (Vec::new(), Vec::new());
        for pid in pids {
            let (of_samples, of_waits) = (self.samples.get(pid).map_or(&[][..], |it| it), self.waits.get(pid).map_or(&[][..], |it| it));
            samples.extend(within(of_samples, stretches, |it| it.0).map(|(it, _)| it.1));
            waits.extend(within(of_waits, stretches, |it| it.0).map(|(it, to)| (it.2, it.0, it.1.min(to))));
        }
        samples.sort_unstable();
        (samples, waits)
    }
}

/// What lies in one of these stretches, with the end of that one. Both stand in order, and stretches do not overlap: those between two neighbours of
/// the list are passed over.
fn within<'a, T>(list: &'a [T], stretches: &'a [(Nanos, Nanos)], at: impl Fn(&T) -> Nanos) -> impl Iterator<Item = (&'a T, Nanos)> {
    let (mut list, mut stretches) = (list, stretches);
    std::iter::from_fn(move || {
        loop {
            let first = list.first()?;
            stretches = &stretches[stretches.partition_point(|(_, to)| *to <= at(first))..];
            let (from, to) = *stretches.first()?;
            if from <= at(first) {
                list = &list[1..];
                return Some((first, to));
            }
            list = &list[list.partition_point(|it| at(it) < from)..];
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{Id, text};

    #[test]
    fn an_address_is_found_in_each_spelling() {
        let check = |said: &str, expected: Option<&str>| {
            let recording = text::parse(&format!("a 0..9ms web kind client {said}\n")).unwrap();
            let found = address_of(&recording.spans[0]).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{said}");
        };
        check("server.address=127.0.0.1 server.port=80", Some("127.0.0.1:80"));
        check("server.address=shop.example server.port=80", None);
        check("server.address=shop.example server.port=80 network.peer.address=10.0.0.7 network.peer.port=81", Some("10.0.0.7:81"));
        check("server.address=localhost server.port=80", Some("127.0.0.1:80"));
        check("server.address=::1 server.port=80", Some("[::1]:80"));
        check("server.address=127.0.0.1", None);
        check("server.address=127.0.0.1 server.port=0", None);
        check("server.address=127.0.0.1 server.port=123456", None);
        check("net.peer.name=127.0.0.1:42421", Some("127.0.0.1:42421"));
        check("net.peer.name=localhost net.peer.port=8080", Some("127.0.0.1:8080"));
        check("net.peer.name=x net.peer.ip=::ffff:127.0.0.1 net.peer.port=8080", Some("127.0.0.1:8080"));
        check("peer.address=127.0.0.1:9000", Some("127.0.0.1:9000"));
        check("url.full=http://user:pass@127.0.0.1:9000/x?y", Some("127.0.0.1:9000"));
        check("http.url=http://[::1]:9000", Some("[::1]:9000"));
        check("http.url=http://127.0.0.1/", None);
        check("url.full=: server.address= peer.port=x", None);
        let server = text::parse("a 0..9ms web kind server server.address=127.0.0.1 server.port=80\n").unwrap();
        assert_eq!(address_of(&server.spans[0]), None);
    }

    #[test]
    fn the_process_that_listened_at_the_time_of_the_call_is_meant() {
        let recording = text::parse(
            "\
run x 0..100ms
process old  1..40ms pid 2 under 1 listens 127.0.0.1:80
process new 41..99ms pid 3 under 1 listens 127.0.0.1:80
process fork 45..99ms pid 4 under 3 forked listens 127.0.0.1:80
a 20..30ms web kind client pid 1 server.address=localhost server.port=80
b 60..70ms web kind client pid 1 server.address=localhost server.port=80
c 60..70ms web kind client pid 1 server.address=localhost server.port=81
",
        )
        .unwrap();
        let names = |span: &Span| -> Vec<&str> {
            processes_at(&recording, address_of(span).unwrap(), vec![span.start])
                .iter()
                .map(|&at| recording.processes[at].name.as_str())
                .collect()
        };
        let found: Vec<Vec<&str>> = recording.spans.iter().map(names).collect();
        assert_eq!(found, [vec!["old"], vec!["new", "fork"], vec![]]);
    }

    /// For each call all processes were searched, and each kept the processes that it found: 20,000,000,000 steps and 40 GB.
    #[test]
    fn many_calls_of_many_processes_find_each_of_them_once() {
        const COUNT: i64 = 100_000;
        let mut recording =
            text::parse("run x 0..100s\nprocess a 1..2ms pid 2 under 1 listens 127.0.0.1:80\nprocess b 1..2ms pid 3 under 1\n").unwrap();
        let [_, listens, other] = &recording.processes[..] else { panic!() };
        let process = |of: &Process, number: u64| Process { pid: of.pid + 2 * number as u32, end: None, ..of.clone() };
        recording.processes = (0..COUNT as u64).flat_map(|number| [process(listens, number), process(other, number)]).collect();
        let moment = |number: i64| recording.run.start.plus_nanos(2_000_000 + number);
        let found = processes_at(&recording, "127.0.0.1:80".parse().unwrap(), (0..COUNT).rev().map(moment).collect());
        assert!(found.iter().map(|row| row.place()).eq((0..COUNT as usize).map(|number| 2 * number)));
        assert!(processes_at(&recording, "127.0.0.1:80".parse().unwrap(), vec![recording.run.start]).is_empty());
    }

    /// For each process all stretches were searched.
    #[test]
    fn stretches_without_anything_are_passed_over() {
        const COUNT: i64 = 1 << 20;
        let stretches: Vec<(Nanos, Nanos)> = (0..COUNT).map(|number| (Nanos(10 * number), Nanos(10 * number + 5))).collect();
        let list = [3, 4, 5, 7, 10, 10 * COUNT - 10, 10 * COUNT - 6, 10 * COUNT];
        let steps = std::cell::Cell::new(0);
        let found = within(&list, &stretches, |at| {
            steps.set(steps.get() + 1);
            Nanos(*at)
        });
        let last = 10 * COUNT - 5;
        let found: Vec<(i64, i64)> = found.map(|(at, to)| (*at, to.0)).collect();
        assert_eq!(found, [(3, 5), (4, 5), (10, 15), (10 * COUNT - 10, last), (10 * COUNT - 6, last)]);
        assert!(steps.get() < 400, "{}", steps.get());
    }
}
