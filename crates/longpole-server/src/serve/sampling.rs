//! How services are to sample their traces, for the `jaeger_remote` samplers of OpenTelemetry and the clients of Jaeger: each trace, unless a file
//! in Jaeger's format says otherwise.
//!
//! `GET /sampling?service=NAME`, at any path. At `/` itself the type is a number, as the oldest clients read it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, Uri};
use longpole_wire::jaeger_query::SamplingStrategy;
use serde::Deserialize;
use serde_json::{Value, json};

use super::jaeger::json_header;
use crate::query_parameters::Parameters;

/// The strategies of all services.
#[derive(Debug, Clone)]
pub struct Strategies(Arc<StrategiesByService>);

#[derive(Debug)]
struct StrategiesByService {
    default: SamplingStrategy,
    of_service: HashMap<String, SamplingStrategy>,
}

/// Why a file of strategies cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategiesError {
    /// It is not what Jaeger reads.
    #[error("not a file of sampling strategies as Jaeger reads it: {0}")]
    Format(String),
    /// A number makes no sense.
    #[error("strategy of {0}: {1}")]
    Value(String, String),
}

impl Default for Strategies {
    fn default() -> Self {
        Strategies(Arc::new(StrategiesByService { default: SamplingStrategy::Probability(1.0), of_service: HashMap::new() }))
    }
}

/// The file, as Jaeger's documentation has it.
#[derive(Debug, Deserialize)]
struct StrategiesFile {
    #[serde(default)]
    service_strategies: Vec<ServiceStrategy>,
    default_strategy: Option<StrategyInFile>,
}

#[derive(Debug, Deserialize)]
struct ServiceStrategy {
    service: String,
    #[serde(flatten)]
    strategy: StrategyInFile,
}

#[derive(Debug, Deserialize)]
struct StrategyInFile {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    param: f64,
    #[serde(default)]
    operation_strategies: Vec<OperationStrategy>,
}

#[derive(Debug, Deserialize)]
struct OperationStrategy {
    operation: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    param: f64,
}

impl Strategies {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`StrategiesError`] if it is another file, or a number in it makes no sense.
    pub fn parse(text: &str) -> Result<Strategies, StrategiesError> {
        let file: StrategiesFile = serde_json::from_str(text).map_err(|error| StrategiesError::Format(error.to_string()))?;
        let default = match file.default_strategy {
            Some(strategy) => strategy_of("all other services", &strategy)?,
            None => SamplingStrategy::Probability(1.0),
        };
        let mut of_service = HashMap::new();
        for ServiceStrategy { service, strategy } in file.service_strategies {
            let strategy = strategy_of(&service, &strategy)?;
            of_service.insert(service, strategy);
        }
        Ok(Strategies(Arc::new(StrategiesByService { default, of_service })))
    }

    /// The strategy of a service.
    pub(super) fn of(&self, service: &str) -> SamplingStrategy {
        self.0.of_service.get(service).unwrap_or(&self.0.default).clone()
    }
}

fn strategy_of(service: &str, strategy: &StrategyInFile) -> Result<SamplingStrategy, StrategiesError> {
    let wrong = |reason: String| StrategiesError::Value(service.to_owned(), reason);
    let probability = |kind: &str, rate: f64| match kind {
        "probabilistic" | "" if (0.0..=1.0).contains(&rate) => Ok(rate),
        "probabilistic" | "" => Err(wrong(format!("{rate} is not a probability between 0 and 1"))),
        kind => Err(wrong(format!("type {kind:?}: expected probabilistic or ratelimiting"))),
    };
    match (strategy.kind.as_str(), strategy.operation_strategies.as_slice()) {
        ("ratelimiting", []) => {
            if !(strategy.param >= 0.0 && strategy.param <= f64::from(i32::MAX)) {
                return Err(wrong(format!("{} traces a second: expected a whole number", strategy.param)));
            }
            Ok(SamplingStrategy::PerSecond(strategy.param as u32))
        }
        (kind, []) => Ok(SamplingStrategy::Probability(probability(kind, strategy.param)?)),
        (kind, operations) => {
            let of_operation =
                |operation: &OperationStrategy| Ok((operation.operation.clone(), probability(&operation.kind, operation.param)?));
            let operations = operations.iter().map(of_operation).collect::<Result<_, _>>()?;
            Ok(SamplingStrategy::ByOperation(probability(kind, strategy.param)?, operations))
        }
    }
}

pub(super) fn routes(strategies: Strategies) -> Router {
    Router::new().fallback(get(strategy)).with_state(strategies)
}

async fn strategy(State(strategies): State<Strategies>, uri: Uri, RawQuery(query): RawQuery) -> Response {
    let refuse = |reason: String| (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response();
    let parameters = match Parameters::of(query.as_deref()) {
        Ok(parameters) => parameters,
        Err(reason) => return refuse(reason),
    };
    let [service] = parameters.all("service") else { return refuse("'service' parameter must be provided once".to_owned()) };
    let answer = json_of(&strategies.of(service), uri.path() == "/");
    (json_header(), answer.to_string()).into_response()
}

fn json_of(strategy: &SamplingStrategy, by_number: bool) -> Value {
    let kind = |name: &str, number: u8| if by_number { json!(number) } else { json!(name) };
    match strategy {
        SamplingStrategy::Probability(rate) => {
            json!({ "strategyType": kind("PROBABILISTIC", 0), "probabilisticSampling": { "samplingRate": rate } })
        }
        SamplingStrategy::PerSecond(traces) => {
            json!({ "strategyType": kind("RATE_LIMITING", 1), "rateLimitingSampling": { "maxTracesPerSecond": traces } })
        }
        SamplingStrategy::ByOperation(rate, operations) => {
            let operations: Vec<Value> = operations
                .iter()
                .map(|(operation, rate)| json!({ "operation": operation, "probabilisticSampling": { "samplingRate": rate } }))
                .collect();
            json!({
                "strategyType": kind("PROBABILISTIC", 0),
                "probabilisticSampling": { "samplingRate": rate },
                "operationSampling": {
                    "defaultSamplingProbability": rate,
                    "defaultLowerBoundTracesPerSecond": 0,
                    "perOperationStrategies": operations,
                },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
        "service_strategies": [
            { "service": "cart", "type": "probabilistic", "param": 0.8, "operation_strategies": [
                { "operation": "GET /health", "type": "probabilistic", "param": 0 } ] },
            { "service": "search", "type": "ratelimiting", "param": 5 }
        ],
        "default_strategy": { "type": "probabilistic", "param": 0.5 }
    }"#;

    #[test]
    fn a_file_of_jaeger_says_what_each_service_does() {
        let strategies = Strategies::parse(FILE).unwrap();
        assert_eq!(strategies.of("cart"), SamplingStrategy::ByOperation(0.8, vec![("GET /health".to_owned(), 0.0)]));
        assert_eq!(strategies.of("search"), SamplingStrategy::PerSecond(5));
        assert_eq!(strategies.of("another"), SamplingStrategy::Probability(0.5));
        assert_eq!(Strategies::default().of("any"), SamplingStrategy::Probability(1.0));
    }

    #[test]
    fn what_is_no_strategy_is_named() {
        for (text, reason) in [
            ("[]", "not a file of sampling strategies"),
            (r#"{"default_strategy":{"type":"probabilistic","param":2}}"#, "2 is not a probability"),
            (r#"{"default_strategy":{"type":"const","param":1}}"#, "type \"const\""),
            (r#"{"service_strategies":[{"service":"cart","type":"ratelimiting","param":-1}]}"#, "strategy of cart: -1 traces"),
        ] {
            let error = Strategies::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
