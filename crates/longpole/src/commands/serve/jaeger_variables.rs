//! The variables by which a container of Jaeger is set up: each is understood, or refused by its name, or named as one without effect.

use std::path::PathBuf;

use anyhow::{Result, bail};
use longpole_server::serve::{Door, Ports};

use crate::terminal::stderr;

/// What they say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JaegerVariables {
    /// Ports and the variables that give them; `None` closes one.
    pub(crate) ports: Vec<(Door, Option<u16>, String)>,
    /// The file of sampling strategies.
    pub(super) strategies: Option<PathBuf>,
    /// Lines about what has no effect here.
    pub(super) notes: Vec<String>,
}

/// Variables that give a port, as `:9411`, `0.0.0.0:9411` or `9411`.
const PORTS: [(&str, Door); 8] = [
    ("COLLECTOR_ZIPKIN_HOST_PORT", Door::Zipkin),
    ("COLLECTOR_OTLP_GRPC_HOST_PORT", Door::OtlpGrpc),
    ("COLLECTOR_OTLP_HTTP_HOST_PORT", Door::OtlpHttp),
    ("COLLECTOR_GRPC_SERVER_HOST_PORT", Door::JaegerGrpc),
    ("COLLECTOR_HTTP_SERVER_HOST_PORT", Door::JaegerThrift),
    ("QUERY_HTTP_SERVER_HOST_PORT", Door::Page),
    ("QUERY_GRPC_SERVER_HOST_PORT", Door::JaegerQuery),
    ("ADMIN_HTTP_HOST_PORT", Door::Admin),
];

/// What Jaeger's other variables begin with.
const PREFIXES: [&str; 9] = ["COLLECTOR_", "QUERY_", "MEMORY_", "BADGER_", "ES_", "CASSANDRA_", "KAFKA_", "SPAN_STORAGE_", "GRPC_STORAGE_"];

impl JaegerVariables {
    /// Reads them from an environment.
    pub(crate) fn of(environment: impl IntoIterator<Item = (String, String)>) -> Result<JaegerVariables> {
        let mut found = JaegerVariables::default();
        let mut variables: Vec<(String, String)> = environment.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        variables.sort();
        for (name, value) in variables {
            if let Some((_, door)) = PORTS.iter().find(|(known, _)| *known == name) {
                let number = value.rsplit(':').next().unwrap_or_default().parse();
                let Ok(number) = number else { bail!("{name}={value}: expected a port such as :{}", door.usual_port()) };
                found.ports.push((*door, Some(number), name));
                continue;
            }
            match name.as_str() {
                "COLLECTOR_OTLP_ENABLED" if value == "false" => {
                    found.ports.extend([Door::OtlpGrpc, Door::OtlpHttp].map(|door| (door, None, name.clone())));
                }
                "COLLECTOR_OTLP_ENABLED" => {}
                "SAMPLING_STRATEGIES_FILE" => found.strategies = Some(PathBuf::from(value)),
                "SAMPLING_CONFIG_TYPE" if value == "file" => {}
                "SAMPLING_CONFIG_TYPE" => bail!("{name}={value}: longpole samples by a file only"),
                "SPAN_STORAGE_TYPE" if matches!(value.as_str(), "memory" | "badger") => {
                    found.notes.push(format!("{name}={value}: longpole keeps spans on disk, in its own store"));
                }
                "SPAN_STORAGE_TYPE" => bail!("{name}={value}: longpole keeps spans in its own store; unset {name}"),
                "MEMORY_MAX_TRACES" | "BADGER_SPAN_STORE_TTL" => {
                    found.notes.push(format!("{name} has no effect: --keep and --keep-bytes say what stays"));
                }
                _ if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) => {
                    found.notes.push(format!("{name} has no effect: longpole knows no such setting of Jaeger"));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Sets the ports that they give. Those of the command line are set after them.
    pub(super) fn set_ports(&self, ports: &mut Ports) {
        self.ports.iter().for_each(|(door, port, _)| ports.set(*door, *port));
    }

    /// Prints the notes.
    pub(super) fn say(&self) {
        self.notes.iter().for_each(stderr::note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<JaegerVariables> {
        JaegerVariables::of(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_container_of_jaeger_is_set_up_the_same_way() {
        let found = of(&[
            ("COLLECTOR_OTLP_ENABLED", "true"),
            ("COLLECTOR_ZIPKIN_HOST_PORT", ":9412"),
            ("COLLECTOR_OTLP_HTTP_HOST_PORT", "0.0.0.0:5318"),
            ("SAMPLING_STRATEGIES_FILE", "/etc/strategies.json"),
            ("PATH", "/bin"),
        ])
        .unwrap();
        let [http, zipkin] = ["COLLECTOR_OTLP_HTTP_HOST_PORT", "COLLECTOR_ZIPKIN_HOST_PORT"].map(str::to_owned);
        assert_eq!(found.ports, [(Door::OtlpHttp, Some(5318), http), (Door::Zipkin, Some(9412), zipkin)]);
        assert_eq!(found.strategies, Some(PathBuf::from("/etc/strategies.json")));
        assert!(found.notes.is_empty());
        let closed = of(&[("COLLECTOR_OTLP_ENABLED", "false")]).unwrap().ports;
        assert_eq!(
            closed.iter().map(|(door, port, _)| (*door, *port)).collect::<Vec<_>>(),
            [(Door::OtlpGrpc, None), (Door::OtlpHttp, None)]
        );
    }

    #[test]
    fn what_longpole_cannot_do_is_refused_or_named() {
        for (name, value) in
            [("SPAN_STORAGE_TYPE", "elasticsearch"), ("COLLECTOR_ZIPKIN_HOST_PORT", "on"), ("SAMPLING_CONFIG_TYPE", "adaptive")]
        {
            let error = of(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}={value}: ")), "{error}");
        }
        let notes = of(&[("ES_SERVER_URLS", "http://es:9200"), ("SPAN_STORAGE_TYPE", "badger")]).unwrap().notes;
        assert!(notes[0].starts_with("ES_SERVER_URLS has no effect") && notes[1].starts_with("SPAN_STORAGE_TYPE=badger"), "{notes:?}");
    }
}
