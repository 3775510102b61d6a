//! TLS to a collector: whom it trusts, over HTTP and over gRPC.
//!
//! Trusted is what the user named, else what the system trusts. Nothing else is: a collector that nobody vouches for gets no spans.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector, Transport, TransportAdapter,
};

use crate::config::TlsFiles;

/// Where a system keeps the certificates that it trusts, in one file: Debian and Alpine, Fedora, SUSE, and what all others, macOS among
/// them, have.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The client's side, to be agreed on this protocol. Reads files, some milliseconds.
fn client_config(files: &TlsFiles, protocol: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?;
    let builder = builder.with_root_certificates(roots(files)?);
    let mut config = match (&files.client_certificate, &files.client_key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| format!("cannot read the client key {key}: {error}"))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| format!("cannot use the client certificate: {error}"))?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => return Err("a client certificate and a client key belong together, and one is missing".to_owned()),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

fn roots(files: &TlsFiles) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &files.certificate {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| format!("cannot trust the certificate {path}: {error}"))?;
        }
        return Ok(roots);
    }
    let bundle = SYSTEM_BUNDLES.into_iter().find(|path| Path::new(path).is_file());
    let bundle = bundle.ok_or("found no system certificates; name a certificate file in OTEL_EXPORTER_OTLP_CERTIFICATE")?;
    // Bundles hold a few certificates that are too old; they are passed over.
    let found = CertificateDer::pem_file_iter(bundle).map_err(|error| format!("cannot read {bundle}: {error}"))?;
    roots.add_parsable_certificates(found.flatten());
    if roots.is_empty() { Err(format!("{bundle} holds no certificate")) } else { Ok(roots) }
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("cannot read the certificate {path}: {error}");
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if found.is_empty() { Err(format!("{path} holds no certificate")) } else { Ok(found) }
}

/// A host without the brackets that an address of IPv6 has in an endpoint.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The name that the certificate of a host must be for.
fn name_of(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(bare(host).to_owned()).map_err(|_| format!("{host} is not a name that a certificate can have"))
}

/// A client of HTTP that speaks TLS where an address begins with `https`.
pub(super) fn http_agent(config: ureq::config::Config, files: &TlsFiles) -> Result<ureq::Agent, String> {
    let connector = ().chain(TcpConnector::default()).chain(Secure(client_config(files, b"http/1.1")?));
    Ok(ureq::Agent::with_parts(config, connector, DefaultResolver::default()))
}

/// Puts TLS on top of a connection.
#[derive(Debug)]
struct Secure(Arc<ClientConfig>);

impl<Plain: Transport> Connector<Plain> for Secure {
    type Out = Either<Plain, Secured<Plain>>;

    fn connect(&self, details: &ConnectionDetails<'_>, plain: Option<Plain>) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(plain) = plain else { return Ok(None) };
        if !details.needs_tls() {
            return Ok(Some(Either::A(plain)));
        }
        let name = name_of(details.uri.host().unwrap_or_default()).map_err(|why| ureq::Error::Other(why.into()))?;
        let connection = ClientConnection::new(Arc::clone(&self.0), name).map_err(|error| ureq::Error::Other(error.into()))?;
        let mut stream = StreamOwned::new(connection, TransportAdapter::new(plain, Arc::clone(&details.current_time)));
        // The other side must agree in the time that there is for a connection.
        stream.sock.set_timeout(details.timeout);
        stream.conn.complete_io(&mut stream.sock)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Secured { stream, buffers })))
    }
}

/// A connection with TLS on top.
struct Secured<Plain: Transport> {
    stream: StreamOwned<ClientConnection, TransportAdapter<Plain>>,
    buffers: LazyBuffers,
}

impl<Plain: Transport> std::fmt::Debug for Secured<Plain> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secured").field(&self.stream.sock.inner()).finish()
    }
}

impl<Plain: Transport> Transport for Secured<Plain> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        std::io::Write::write_all(&mut self.stream, &self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let count = std::io::Read::read(&mut self.stream, self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

#[cfg(feature = "grpc-tls")]
pub(super) use self::dial::Dial;

#[cfg(feature = "grpc-tls")]
mod dial {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper_util::rt::TokioIo;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tonic::codegen::Service;
    use tonic::transport::Uri;

    use super::{TlsFiles, client_config, name_of};

    /// Makes connections of HTTP/2 with TLS on top.
    #[derive(Clone)]
    pub(in crate::transport) struct Dial {
        connector: TlsConnector,
        /// Where an address names none.
        port: u16,
    }

    impl Dial {
        pub(in crate::transport) fn new(files: &TlsFiles, port: u16) -> Result<Self, String> {
            Ok(Dial { connector: client_config(files, b"h2")?.into(), port })
        }
    }

    impl Service<Uri> for Dial {
        type Response = TokioIo<TlsStream<TcpStream>>;
        type Error = io::Error;
        type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, uri: Uri) -> Self::Future {
            let Dial { connector, port } = self.clone();
            Box::pin(async move {
                let host = uri.host().unwrap_or_default();
                let name = name_of(host).map_err(io::Error::other)?;
                let bare = super::bare(host);
                let plain = TcpStream::connect((bare, uri.port_u16().unwrap_or(port))).await?;
                plain.set_nodelay(true)?;
                Ok(TokioIo::new(connector.connect(name, plain).await?))
            })
        }
    }
}
