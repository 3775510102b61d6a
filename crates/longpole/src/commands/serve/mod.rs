//! `serve`: takes spans of all services and answers about them, until a signal ends it.

pub(super) mod jaeger_variables;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_server::receive::{AccessTokens, AllowedOrigins, NotAScrapeTarget, ScrapeTarget, Scrapes};
use longpole_server::serve::{Door, Ports, ServeError, ServeOptions, Server, Signals, Strategies};
use longpole_store::live::LiveOptions;
use longpole_store::outside;

use self::jaeger_variables::JaegerVariables;
use crate::args::ServeArguments;
use crate::env_vars;
use crate::failure::{Failure, Kind};
use crate::invocation::Invocation;
use crate::terminal::screen::print_line;
use crate::terminal::stderr;

/// Bytes of a file of sampling strategies.
const STRATEGIES_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a file of tokens.
const TOKENS_BYTES_MAX: u64 = 1 << 20;

/// Bits of a mode: its group or everybody may read.
const READABLE_BY_OTHERS: u32 = 0o044;

/// A signal that comes so soon after another one is the same: `timeout` and terminals send it to the process and to its group.
const ONE_SIGNAL: Duration = Duration::from_millis(300);

/// Serves until SIGINT, SIGTERM or SIGHUP.
pub(crate) fn serve(invocation: &Invocation, arguments: &ServeArguments) -> Result<()> {
    let addresses = match arguments.listen {
        None => loopback(),
        Some(address) if address.is_loopback() || arguments.insecure || arguments.token_file.is_some() => vec![address],
        Some(address) => bail!(
            "at {address} anyone who can reach this machine could send and read spans: add --token-file FILE, add --insecure if only trusted \
             machines can, or leave out --listen"
        ),
    };
    // Not by the parser of arguments, which would print a password with them.
    let target = |text: &String| text.parse().map_err(|error: NotAScrapeTarget| Failure::new(Kind::Usage, format!("--scrape: {error}")));
    let targets: Vec<ScrapeTarget> = arguments.scrapes.iter().map(target).collect::<Result<_, _>>()?;
    // Connections and segments need more than the 1,024 that most systems begin with.
    longpole_capture::raise_open_files_limit();
    let store = invocation.open_store()?;
    let root = store.root().display().to_string();
    let jaeger = JaegerVariables::of(env_vars::all_text())?;
    jaeger.say();
    let mut ports = Ports::default();
    jaeger.set_ports(&mut ports);
    for setting in &arguments.ports {
        let doors = setting.door.map_or(Door::ALL.to_vec(), |door| vec![door]);
        doors.into_iter().for_each(|door| ports.set(door, setting.port));
    }
    let tokens = arguments.token_file.as_deref().map(read_tokens).transpose()?;
    if tokens.is_some() {
        // Their protocols have no place for a token.
        for door in [Door::JaegerCompact, Door::JaegerBinary, Door::AppDash] {
            if arguments.ports.iter().any(|setting| setting.door == Some(door) && setting.port.is_some()) {
                bail!("--port {}: this protocol carries no token; leave out --token-file or the port", door.name());
            }
            ports.set(door, None);
        }
    }
    let mut origins = AllowedOrigins::default();
    for origin in &arguments.allow_origins {
        origins.add(origin).with_context(|| format!("--allow-origin {origin}"))?;
    }
    let strategies = match arguments.sampling_strategies.as_ref().or(jaeger.strategies.as_ref()) {
        None => Strategies::default(),
        Some(path) => {
            let bytes = outside::read(path, STRATEGIES_BYTES_MAX).with_context(|| format!("failed to read {}", path.display()))?;
            let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", path.display()))?;
            Strategies::parse(&text).with_context(|| path.display().to_string())?
        }
    };
    let live = LiveOptions {
        keep_nanos: Some(u64::try_from(arguments.keep.as_nanos()).unwrap_or(u64::MAX)),
        keep_bytes: Some(arguments.keep_bytes),
        generation_nanos: u64::try_from(arguments.segment_every.as_nanos()).unwrap_or(u64::MAX),
        ..LiveOptions::default()
    };
    let say = |line| stderr::note(line);
    let scrapes = Scrapes { targets: targets.clone(), every: arguments.scrape_every, say };
    let keep_credentials = arguments.keep_credentials;
    let options = ServeOptions { store, addresses, ports, live, keep_credentials, origins, tokens, strategies, scrapes };
    let server = match Server::start(options) {
        Err(ServeError::Listen(error)) => return Err(error).context("failed to listen: another program may use the port (see --port)"),
        started => started.context("failed to serve")?,
    };
    for problem in server.problems() {
        stderr::note(format!("a log of an earlier server: {problem}"));
    }
    // Before the greeting: whoever reads it may send one at once.
    let mut signals = Signals::watch().context("failed to watch for signals")?;
    greet(&server, &root, arguments, &targets)?;
    signals.wait().context("failed to wait for a signal")?;
    let (ended, outcome) = mpsc::channel();
    let second_signal = ended.clone();
    thread::spawn(move || ended.send(Some(server.end())));
    let first = Instant::now();
    thread::spawn(move || {
        while signals.wait().is_ok() {
            if first.elapsed() > ONE_SIGNAL {
                return second_signal.send(None).is_ok();
            }
        }
        false
    });
    let Ok(Some(losses)) = outcome.recv() else {
        bail!("a second signal ended the server; the store has everything that it acknowledged");
    };
    for loss in losses {
        stderr::note(format!("{} ({})", loss.detail, loss.count));
    }
    Ok(())
}

/// The addresses of this machine that only it reaches.
fn loopback() -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into()];
    // `localhost` means it for some clients, and some machines do not have it.
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    addresses
}

/// Reads the tokens of a file. A secret that a container mounts is often readable by all who run there, so that is a note and no error.
fn read_tokens(path: &Path) -> Result<AccessTokens> {
    let bytes = outside::read(path, TOKENS_BYTES_MAX).with_context(|| format!("failed to read {}", path.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", path.display()))?;
    let tokens = AccessTokens::parse(&text).with_context(|| path.display().to_string())?;
    if fs::metadata(path).is_ok_and(|data| data.mode() & READABLE_BY_OTHERS != 0) {
        stderr::note(format!("other users can read the tokens in {}: chmod 600 helps", path.display()));
    }
    Ok(tokens)
}

fn greet(server: &Server, root: &str, arguments: &ServeArguments, targets: &[ScrapeTarget]) -> Result<()> {
    print_line("longpole serve: ready")?;
    for (what, door, path) in [
        ("page and Jaeger API", Door::Page, ""),
        ("OTLP over HTTP", Door::OtlpHttp, ""),
        ("OTLP over gRPC", Door::OtlpGrpc, ""),
        ("Zipkin", Door::Zipkin, "/api/v2/spans"),
        ("Pyroscope", Door::Pyroscope, ""),
        ("health and metrics", Door::Admin, "/readyz, /metrics"),
    ] {
        if let Some(address) = server.address(door) {
            print_line(format!("  {what:<20}  http://{}:{}{path}", host(address), address.port()))?;
        }
    }
    let others = [
        Door::JaegerThrift,
        Door::JaegerGrpc,
        Door::JaegerCompact,
        Door::JaegerBinary,
        Door::JaegerQuery,
        Door::Sampling,
        Door::SamplingGrpc,
        Door::AppDash,
    ];
    let open = others.into_iter().filter_map(|door| Some((door.name(), server.address(door)?.port())));
    let open: Vec<String> = open.map(|(name, port)| format!("{name} {port}")).collect();
    for (place, some) in open.chunks(4).enumerate() {
        print_line(format!("  {:<20}  {}", if place == 0 { "other ports" } else { "" }, some.join(", ")))?;
    }
    let is_loopback =
        server.address(Door::Page).or_else(|| server.address(Door::OtlpHttp)).is_none_or(|address| address.ip().is_loopback());
    let access = match (&arguments.token_file, is_loopback) {
        (Some(file), true) => format!("users of this machine with a token from {}", file.display()),
        (Some(file), false) => {
            format!("anyone with a token from {}; tokens travel unencrypted unless a TLS proxy is in front", file.display())
        }
        (None, true) => "every user of this machine can send and read".to_owned(),
        (None, false) => "anyone who can reach these ports can send and read".to_owned(),
    };
    print_line(format!("  {:<20}  {access}", "access"))?;
    if let Some(config) = &arguments.config {
        print_line(format!("  {:<20}  {}", "settings", config.display()))?;
    }
    print_line(format!("  {:<20}  {root}", "store"))?;
    for (place, target) in targets.iter().enumerate() {
        print_line(format!("  {:<20}  {target}", if place == 0 { "fetches profiles of" } else { "" }))?;
    }
    Ok(())
}

/// How a person reaches this address.
fn host(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) | IpAddr::V6(Ipv6Addr::LOCALHOST) => "localhost".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    }
}
