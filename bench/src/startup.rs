//! What `longpole run -- true` and `longpole exec -- true` cost over `true`, beside otel-cli.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result};

use crate::{Subject, peers, timing};

const ROUNDS: usize = 101;

/// Prints the median of each, interleaved, and what it adds to plain `true`.
pub(crate) fn measure(subjects: &[Subject]) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("failed to make a temporary folder")?;
    let words = |line: &[&str]| line.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let mut rows = vec![("true".to_owned(), words(&["true"]))];
    let kinds: [(&str, &[&str]); 4] = [
        ("run --no-profile", &["run", "--no-profile", "--summary", "none", "--", "true"]),
        ("run", &["run", "--summary", "none", "--", "true"]),
        ("run, with its answer", &["run", "--", "true"]),
        ("exec", &["exec", "-s", "bench", "-n", "true", "--", "true"]),
    ];
    for (kind, arguments) in kinds {
        for Subject { name, binary } in subjects {
            let store = dir.join(name).to_string_lossy().into_owned();
            rows.push((format!("{name} {kind}"), words(&[&[binary, "--store", &store], arguments].concat())));
        }
    }
    if subjects.len() == 1
        && let Some(otel_cli) = peers::find("otel-cli")
    {
        rows.push(("otel-cli exec".to_owned(), words(&[&otel_cli, "exec", "--service", "bench", "--name", "true", "--", "true"])));
    }
    let endpoint = endpoint()?;
    let exporter = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut walls = vec![Vec::with_capacity(ROUNDS); rows.len()];
    for round in 0..ROUNDS {
        // In turn from both ends: on some file systems what the row before deleted makes the files of the next one slower.
        let from_the_front = round % 2 == 0;
        for place in 0..rows.len() {
            let place = if from_the_front { place } else { rows.len() - 1 - place };
            let (name, argv) = &rows[place];
            // Only `exec` sends its span somewhere.
            let env = if name.ends_with("exec") { &exporter[..] } else { &[] };
            walls[place].push(timing::once(argv, env)?.wall_secs * 1e3);
        }
    }
    let base = timing::median(&walls[0]).value;
    println!("start-up, {ROUNDS} interleaved rounds, milliseconds of wall time");
    for ((name, _), wall) in rows.iter().zip(&walls) {
        let m = timing::median(wall);
        println!("  {name:32} {:7.2}  [{:.2}, {:.2}]   over true: {:+.2}", m.value, m.low, m.high, m.value - base);
    }
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}

/// An OTLP endpoint over HTTP that takes whatever comes.
fn endpoint() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("failed to listen")?;
    let address = listener.local_addr().context("failed to listen")?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(format!("http://{address}"))
}

/// Answers the requests of one connection, until it ends.
fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut body = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                body = length.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        std::io::copy(&mut (&mut requests).take(body), &mut std::io::sink())?;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")?;
    }
}
