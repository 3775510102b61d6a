//! Story: somebody's program sends its spans over TLS, to a collector that their own authority vouches for, and that may want to know who
//! calls.
//! Guarantees: over HTTP and over gRPC, with our span processor and with the stock one, spans arrive at who is trusted; who is not
//! trusted gets none, which one line reports, and counts; a file that is not there is named; nothing of it keeps the program from
//! ending.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use crate::support::{clean, role, target};

/// Set where this binary is the program that sends.
const SEND: &str = "LONGPOLE_STORY_SEND";

const SPANS: usize = 10;

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../longpole-server/src/forward/testdata");

const PROCESSORS: [&str; 2] = ["longpole", "batch-span-processor"];

/// A program with some spans, which says in the end what became of them.
#[test]
fn send() {
    let Ok(processor) = std::env::var(SEND) else { return };
    let guard = longpole_sdk::builder().span_processor(processor.parse().unwrap()).init();
    for number in 0..SPANS {
        drop(tracing::info_span!("sent", number));
    }
    let counts = guard.shutdown();
    println!("\ncounts {} {} {}", counts.emitted, counts.exported, counts.lost() + counts.outstanding);
}

/// A collector with a certificate that nobody trusts who was not told to. It may ask for the client's, which is the same.
fn collector(is_grpc: bool, asks: bool) -> String {
    let folder = Path::new(CERTIFICATES);
    let certificates: Vec<_> = CertificateDer::pem_file_iter(folder.join("localhost.cert.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("localhost.key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let builder = if asks {
        let mut roots = RootCertStore::empty();
        roots.add(certificates[0].clone()).unwrap();
        builder.with_client_cert_verifier(WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(certificates, key).unwrap();
    config.alpn_protocols = vec![if is_grpc { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    let config = Arc::new(config);
    let address = target::serving(move |stream| {
        let stream = rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        if is_grpc { target::serve_grpc(stream, 0) } else { target::serve_http(stream, "200 OK") }
    });
    address.replace("127.0.0.1", "localhost")
}

/// How many spans arrived and how many did not, and what was reported.
fn outcome(processor: &str, is_grpc: bool, address: &str, variables: &[(&str, &str)]) -> (usize, usize, String) {
    let arguments = role("send_to_a_trusted_collector::send");
    let mut command = Command::new(&arguments[0]);
    clean(&mut command);
    command.args(&arguments[1..]).env(SEND, processor).stdin(Stdio::null());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("https://{address}"));
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", if is_grpc { "grpc" } else { "http/protobuf" });
    let out = command.envs(variables.iter().copied()).output().unwrap();
    let (text, told) = (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned());
    assert!(out.status.success(), "{text}{told}");
    let counts = text.lines().find_map(|line| line.strip_prefix("counts ")).unwrap_or_else(|| panic!("{text}{told}"));
    let counts: Vec<usize> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    let told: String = told.lines().filter(|line| line.contains("longpole")).map(|line| format!("{line}\n")).collect();
    (counts[1], counts[2], told)
}

fn file(name: &str) -> String {
    format!("{CERTIFICATES}/{name}")
}

#[test]
fn spans_arrive_at_a_trusted_collector() {
    let certificate = file("localhost.cert.pem");
    for is_grpc in [false, true] {
        let address = collector(is_grpc, false);
        for (processor, variable) in PROCESSORS.into_iter().zip(["OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"])
        {
            let outcome = outcome(processor, is_grpc, &address, &[(variable, &certificate)]);
            assert_eq!(outcome, (SPANS, 0, String::new()), "{processor}, grpc {is_grpc}");
        }
    }
}

#[test]
fn a_collector_gets_the_client_certificate() {
    let (certificate, key) = (file("localhost.cert.pem"), file("localhost.key.pem"));
    let trusted = ("OTEL_EXPORTER_OTLP_CERTIFICATE", &certificate[..]);
    let own = [trusted, ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &certificate), ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key)];
    for is_grpc in [false, true] {
        let address = collector(is_grpc, true);
        for processor in PROCESSORS {
            assert_eq!(outcome(processor, is_grpc, &address, &own), (SPANS, 0, String::new()), "{processor}, grpc {is_grpc}");
        }
        let (arrived, lost, told) = outcome("longpole", is_grpc, &address, &[trusted]);
        assert_eq!((arrived, lost), (0, SPANS), "{told}");
    }
}

#[test]
fn an_untrusted_collector_gets_nothing_and_is_reported_once() {
    for is_grpc in [false, true] {
        let address = collector(is_grpc, false);
        for processor in PROCESSORS {
            let (arrived, lost, told) = outcome(processor, is_grpc, &address, &[]);
            assert_eq!((arrived, lost), (0, SPANS), "{processor}, grpc {is_grpc}: {told}");
            let lines: Vec<&str> = told.lines().filter(|line| line.contains("certificate")).collect();
            assert_eq!(lines.len(), 1, "{processor}, grpc {is_grpc}: {told}");
        }
    }
}

#[test]
fn an_unusable_certificate_file_is_named() {
    let address = collector(false, false);
    let certificate = file("localhost.cert.pem");
    for (variables, reason) in [
        (vec![("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such.pem")], "cannot read the certificate /no/such.pem"),
        (vec![("OTEL_EXPORTER_OTLP_CERTIFICATE", "/dev/null")], "/dev/null holds no certificate"),
        (vec![("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &certificate[..])], "a client certificate and a client key belong together"),
    ] {
        let (arrived, lost, told) = outcome("longpole", false, &address, &variables);
        assert_eq!((arrived, lost), (0, SPANS), "{told}");
        assert_eq!(told.matches(reason).count(), 1, "{told}");
    }
}

#[test]
fn a_collector_that_never_answers_delays_nothing() {
    let (address, _comes) = target::silent();
    for is_grpc in [false, true] {
        for processor in PROCESSORS {
            let (arrived, lost, told) = outcome(processor, is_grpc, &address, &[]);
            assert_eq!((arrived, lost), (0, SPANS), "{processor}, grpc {is_grpc}: {told}");
        }
    }
}
