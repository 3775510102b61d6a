//! A client of HTTP/1.1 that keeps its connection: little CPU, so that the server has the machine. Jaeger's query port closes each connection after its
//! answer; the next question makes one, which counts for its time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// A server that answers nothing for this long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    port: u16,
    stream: BufReader<TcpStream>,
    /// The server said that it closes it.
    is_closed: bool,
}

/// A status and a body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Client {
    pub(super) fn connect(port: u16) -> Result<Client> {
        Ok(Client { port, stream: connect(port)?, is_closed: false })
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Answer> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\naccept: */*\r\n\r\n", self.port);
        self.ask(head.as_bytes(), &[]).with_context(|| format!("failed to get {path}"))
    }

    /// An answer that says 2xx.
    pub(super) fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Result<()> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        let answer = self.ask(head.as_bytes(), body).with_context(|| format!("failed to post to {path}"))?;
        ensure!(answer.status / 100 == 2, "{path} answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        Ok(())
    }

    fn ask(&mut self, head: &[u8], body: &[u8]) -> Result<Answer> {
        if std::mem::take(&mut self.is_closed) {
            self.stream = connect(self.port)?;
        }
        let mut out = self.stream.get_ref();
        out.write_all(head)?;
        out.write_all(body)?;
        let status_line = self.line()?;
        let status: u16 = status_line.split(' ').nth(1).context("no status")?.parse().context("no status")?;
        let (mut length, mut is_chunked) = (None, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>().context("a bad length")?);
            }
            self.is_closed |= line == "connection: close";
            is_chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let line = self.line()?;
                let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16).context("a bad chunk")?;
                self.read(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.read(length.unwrap_or(0), &mut body)?;
        }
        Ok(Answer { status, body })
    }

    fn read(&mut self, size: usize, out: &mut Vec<u8>) -> Result<()> {
        let read = (&mut self.stream).take(size as u64).read_to_end(out)?;
        ensure!(read == size, "the connection ended");
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection ended");
        }
        Ok(line.trim_end().to_owned())
    }
}

fn connect(port: u16) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).with_context(|| format!("failed to connect to port {port}"))?;
    stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(SILENCE_MAX))).context("failed to set up a connection")?;
    Ok(BufReader::with_capacity(64 << 10, stream))
}
