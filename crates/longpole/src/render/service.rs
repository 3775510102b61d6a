//! The service of an operation, as far as it says something.

use longpole_analysis::tree::forest::{PROCESS_SERVICE, RUN_SERVICE};

/// OpenTelemetry's name for the service of a span that names none.
const NO_SERVICE: &str = "unknown_service";

/// The service, or nothing if the word only stands for one.
pub(crate) fn named_service(service: &str) -> &str {
    if [RUN_SERVICE, PROCESS_SERVICE, NO_SERVICE].contains(&service) { "" } else { service }
}

/// The service behind two spaces, or nothing.
pub(crate) fn service_column(service: &str) -> String {
    match named_service(service) {
        "" => String::new(),
        named => format!("  {named}"),
    }
}
