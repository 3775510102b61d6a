//! A client of HTTP, with and without TLS.

use bytes::Bytes;
use http::HeaderValue;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::target::ForwardTls;
use super::tls;

/// How longpole names itself to servers.
pub(crate) const AGENT: HeaderValue = HeaderValue::from_static(concat!("longpole/", env!("CARGO_PKG_VERSION")));

pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client for `https` if it must, of HTTP/2 if it is for gRPC.
pub(crate) async fn new(https: bool, grpc: bool, settings: ForwardTls) -> Result<HttpClient, String> {
    let config = if https {
        // Certificates are files: not on the thread that answers the command.
        tokio::task::spawn_blocking(move || tls::client_config(&settings)).await.map_err(|error| error.to_string())??
    } else {
        no_tls()?
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    let connector = if grpc { connector.enable_http2().wrap_connector(tcp) } else { connector.enable_http1().wrap_connector(tcp) };
    Ok(Client::builder(TokioExecutor::new()).http2_only(grpc).build(connector))
}

/// A configuration for plain `http`, which never uses it: trusts nobody.
fn no_tls() -> Result<rustls::ClientConfig, String> {
    Ok(rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up tls: {error}"))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}
