//! `serve`: takes spans of all services and answers about them, until a signal ends it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail};
use longpole_server::serve::{self, Addresses, Ports, ServeError, ServeOptions, Server};
use longpole_store::live::LiveOptions;

use crate::args::ServeArguments;
use crate::invocation::Invocation;
use crate::terminal::screen::print_line;
use crate::terminal::stderr;

/// Serves until SIGINT, SIGTERM or SIGHUP.
pub(crate) fn serve(invocation: &Invocation, arguments: &ServeArguments) -> Result<()> {
    let addresses = match arguments.listen {
        None => loopback(),
        Some(address) if address.is_loopback() || arguments.insecure => vec![address],
        Some(address) => bail!(
            "at {address} everybody who reaches this machine could send and read spans: add --insecure if only trusted machines can, or \
             leave out --listen"
        ),
    };
    let store = invocation.open_store()?;
    let root = store.root().display().to_string();
    let ports = Ports {
        otlp_grpc: arguments.otlp_grpc_port,
        otlp_http: arguments.otlp_http_port,
        zipkin: arguments.zipkin_port,
        page: arguments.page_port,
        admin: arguments.admin_port,
    };
    let live = LiveOptions {
        keep_nanos: Some(u64::try_from(arguments.keep.as_nanos()).unwrap_or(u64::MAX)),
        keep_bytes: Some(arguments.keep_bytes),
        ..LiveOptions::default()
    };
    let options = ServeOptions { store, addresses, ports, live, keep_credentials: arguments.keep_credentials };
    let server = match Server::start(options) {
        Err(ServeError::Listen(error)) => return Err(error).context("failed to listen: another program may use the port"),
        started => started.context("failed to serve")?,
    };
    for problem in server.problems() {
        stderr::note(format!("a log of an earlier server: {problem}"));
    }
    greet(server.addresses(), &root)?;
    serve::wait_for_signal().context("failed to wait for a signal")?;
    let (ended, outcome) = mpsc::channel();
    let second_signal = ended.clone();
    thread::spawn(move || ended.send(Some(server.end())));
    thread::spawn(move || serve::wait_for_signal().map(|()| second_signal.send(None)));
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

fn greet(addresses: Addresses, root: &str) -> Result<()> {
    let Addresses { page, otlp_grpc, otlp_http, zipkin, admin } = addresses;
    let host = if page.ip().is_loopback() { "localhost".to_owned() } else { page.ip().to_string() };
    let url = |port: u16| format!("http://{host}:{port}");
    for text in [
        "longpole serve: ready".to_owned(),
        format!("  page and Jaeger API   {}", url(page.port())),
        format!("  OTLP over HTTP        {}", url(otlp_http.port())),
        format!("  OTLP over gRPC        {}", url(otlp_grpc.port())),
        format!("  Zipkin                {}/api/v2/spans", url(zipkin.port())),
        format!("  health and metrics    {}/readyz, /metrics", url(admin.port())),
        format!("  store                 {root}"),
    ] {
        print_line(&text)?;
    }
    Ok(())
}
