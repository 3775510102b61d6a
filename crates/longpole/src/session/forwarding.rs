//! Where copies of the spans go: the user's own endpoints, and those in Pulumi's variables.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longpole_capture::launch::otel_environment;
use longpole_server::forward::{ForwardProtocol, ForwardTarget, ForwardTls};
use longpole_server::limits::FORWARD_TIMEOUT;
use longpole_server::receive::Signal;
use longpole_store::outside;

use crate::{args, env_vars};

/// Largest certificate file. The bundle of all authorities that systems trust has some 250 kB.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The user's own endpoints as forward targets, and errors for files that could not be read.
pub(crate) fn forward_targets(user: Option<&otel_environment::UserEndpoint>) -> (Vec<ForwardTarget>, Vec<String>) {
    let (mut targets, mut unreadable) = (Vec::new(), Vec::new());
    let Some(user) = user else { return (targets, unreadable) };
    for (signal, endpoint) in [(Signal::Traces, &user.traces), (Signal::Metrics, &user.metrics), (Signal::Logs, &user.logs)] {
        let Some(endpoint) = endpoint else { continue };
        let mut pem = |path: &Option<PathBuf>| pem(path.as_deref(), &mut unreadable);
        let tls = ForwardTls {
            certificate: pem(&endpoint.certificate),
            client_certificate: pem(&endpoint.client_certificate),
            client_key: pem(&endpoint.client_key),
        };
        let (protocol, url) = match endpoint.protocol {
            Some(otel_environment::Protocol::Grpc) => (ForwardProtocol::Grpc, &endpoint.grpc_url),
            Some(otel_environment::Protocol::HttpProtobuf | otel_environment::Protocol::HttpJson) => {
                (ForwardProtocol::Http, &endpoint.http_url)
            }
            None => (ForwardProtocol::AsReceived, &endpoint.http_url),
        };
        targets.push(ForwardTarget {
            signal,
            url: url.clone(),
            protocol,
            headers: endpoint.headers.clone(),
            timeout: endpoint.timeout_millis.map_or(FORWARD_TIMEOUT, Duration::from_millis),
            tls,
        });
    }
    (targets, unreadable)
}

fn pem(path: Option<&Path>, unreadable: &mut Vec<String>) -> Option<Vec<u8>> {
    let path = path?;
    // The environment may name a pipe or a device, which must not delay the command.
    let read = outside::read(path, PEM_BYTES_MAX);
    read.map_err(|error| unreadable.push(format!("failed to read {}: {error}", path.display()))).ok()
}

/// Gives typed targets the certificates of the environment, because a URL has no place for them. Returns errors for files that could not
/// be read.
pub(crate) fn trust_by_environment(targets: &mut [ForwardTarget]) -> Vec<String> {
    let mut unreadable = Vec::new();
    if !targets.iter().any(|target| target.url.starts_with("https:")) {
        return unreadable;
    }
    let mut of = |setting: &str| pem(env_vars::exporter_file(setting).as_deref(), &mut unreadable);
    let tls = ForwardTls { certificate: of("CERTIFICATE"), client_certificate: of("CLIENT_CERTIFICATE"), client_key: of("CLIENT_KEY") };
    targets.iter_mut().filter(|target| target.url.starts_with("https:")).for_each(|target| target.tls = tls.clone());
    unreadable
}

/// Targets in Pulumi's own variables, and errors for those that are no target. Pulumi would run without tracing then.
pub(crate) fn pulumi_targets(user: &otel_environment::PulumiTargets) -> (Vec<ForwardTarget>, Vec<String>) {
    let (mut targets, mut unknown) = (Vec::new(), Vec::new());
    let parsed = [
        ("PULUMI_OPTION_OTEL_TRACES", user.otel_traces.as_deref().map(args::otel_traces_target)),
        ("PULUMI_OPTION_TRACING", user.tracing.as_deref().map(args::tracing_target)),
    ];
    for (name, target) in parsed {
        match target {
            Some(Ok(target)) => targets.push(target),
            Some(Err(error)) => unknown.push(format!("forwarding nothing to the target in {name}: {error}")),
            None => {}
        }
    }
    (targets, unknown)
}

/// Where this environment sends spans, if anywhere.
pub(crate) fn spans_target(environment: &[(OsString, OsString)]) -> Option<ForwardTarget> {
    // The rules for the environment of a run find the user's endpoint; what they would set for a run is not needed here.
    let injection = otel_environment::environment(&unrecorded_request(environment));
    let silenced = injection.notes.iter().any(|note| matches!(note.code, "sdk_disabled" | "exporter_not_otlp" | "sampled_out"));
    if silenced {
        return None;
    }
    forward_targets(injection.forward.as_ref()).0.into_iter().find(|target| target.signal == Signal::Traces)
}

/// Reads what an environment says, without a run.
pub(crate) fn unrecorded_request(environment: &[(OsString, OsString)]) -> otel_environment::Request<'_> {
    otel_environment::Request {
        env: environment,
        argv: &[],
        endpoint: "http://127.0.0.1:1",
        appdash: "tcp://127.0.0.1:1",
        traceparent: "",
        run_id: "",
        journals: None,
        mode: otel_environment::Mode::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn there_is_a_target_where_the_environment_names_one_and_nothing_silences_it() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert!(spans_target(&environment(&[])).is_none());
        assert_eq!(spans_target(&environment(&[endpoint])).unwrap().url, "http://127.0.0.1:4318/v1/traces");
        for silencer in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_TRACES_SAMPLER", "always_off")] {
            assert!(spans_target(&environment(&[endpoint, silencer])).is_none(), "{silencer:?}");
        }
    }
}
