//! `services`: what a server has spans of.

use anyhow::Result;
use longpole_recording::view::{ServiceView, ServicesView};
use serde_json::Value;

use crate::args::{Format, ServicesArguments};
use crate::input::server::{Server, query_value};
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};

/// Lists services, each with its operations.
pub(crate) fn services(invocation: &Invocation, arguments: &ServicesArguments) -> Result<()> {
    let server = Server::new(&arguments.at.at);
    let names = server.json(&["/api/v3/services".to_owned(), "/api/services".to_owned()])?;
    let mut services = Vec::new();
    for name in texts(names.get("services").or(names.get("data"))) {
        let encoded = query_value(&name);
        let of_service = server.json(&[format!("/api/v3/operations?service={encoded}"), format!("/api/services/{encoded}/operations")])?;
        let mut operations = texts(of_service.get("operations").or(of_service.get("data")));
        operations.sort_unstable();
        operations.dedup();
        services.push(ServiceView { name, operations });
    }
    let view = ServicesView { services };
    match arguments.at.format {
        Format::Json => print_json(&view),
        Format::Text if view.services.is_empty() => print_line("No spans yet. README says how programs send them."),
        Format::Text => print(&render::traces::services(&view, invocation.style())),
    }
}

/// Texts, or the names of objects.
fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|value| value.as_str().or_else(|| value.get("name")?.as_str())).map(str::to_owned).collect()
}
