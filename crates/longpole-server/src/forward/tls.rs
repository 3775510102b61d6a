//! Whom an `https` endpoint is trusted by.

use std::path::Path;

use hyper_rustls::ConfigBuilderExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::target::ForwardTls;

/// Where Linux distributions keep the certificates that the system trusts, in one file: Debian and Alpine, Fedora, SUSE,
/// and what all others link to.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The client's side of TLS. Trusted is what the user named; else what the system trusts, as the SDKs do; else Mozilla's
/// list as of our build. Reads files and parses a few hundred certificates: some milliseconds.
pub(super) fn client_config(tls: &ForwardTls) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up tls: {error}"))?;
    let roots = match &tls.certificate {
        Some(pem) => Some(named_roots(pem)?),
        None => system_roots(),
    };
    let builder = match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder.with_webpki_roots(),
    };
    match (&tls.client_certificate, &tls.client_key) {
        (Some(certificate), Some(key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| format!("cannot read the client certificate: {error}"))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("cannot read the client key: {error}"))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| format!("cannot use the client certificate: {error}"))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err("a client certificate and a client key belong together, and one is missing".to_owned()),
    }
}

fn named_roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("cannot read the endpoint's certificate: {error}"))?;
        roots.add(certificate).map_err(|error| format!("cannot trust the endpoint's certificate: {error}"))?;
    }
    if roots.is_empty() { Err("the endpoint's certificate file holds no certificate".to_owned()) } else { Ok(roots) }
}

fn system_roots() -> Option<RootCertStore> {
    let bundle = SYSTEM_BUNDLES.into_iter().map(Path::new).find(|path| path.is_file())?;
    let mut roots = RootCertStore::empty();
    // Bundles hold a few certificates that are too old for webpki; they are passed over.
    roots.add_parsable_certificates(CertificateDer::pem_file_iter(bundle).ok()?.flatten());
    (!roots.is_empty()).then_some(roots)
}
