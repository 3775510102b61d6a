//! `services`: what a server has spans of.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use longpole_recording::view::{ServiceView, ServicesView};

use crate::args::{Format, ServicesArguments};
use crate::input::server::Server;
use crate::invocation::Invocation;
use crate::next_command::at_server;
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};
use crate::terminal::stderr::note;

/// Services that are listed: each costs a request.
const SERVICES_MAX: usize = 1_000;

/// How long all of these requests may take; the last one may take longer.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Lists services, each with its operations.
pub(crate) fn services(invocation: &Invocation, arguments: &ServicesArguments) -> Result<()> {
    let server = Server::new(&arguments.at.at);
    let names = server.service_names()?;
    let mut services = Vec::new();
    let truncated = names.len() > SERVICES_MAX;
    if truncated {
        note(format!("the server names {} services; these are the first {SERVICES_MAX}", names.len()));
    }
    let begun = Instant::now();
    for name in names.into_iter().take(SERVICES_MAX) {
        if begun.elapsed() > TIME_MAX {
            bail!("{} of the services took longer than {} s to answer", services.len(), TIME_MAX.as_secs());
        }
        let mut operations = server.operations(&name)?;
        operations.sort_unstable();
        operations.dedup();
        services.push(ServiceView { name, operations });
    }
    let view = ServicesView { services, truncated };
    match arguments.at.format {
        Format::Json => print_json(&view),
        Format::Text if view.services.is_empty() => {
            print_line(format!("No spans yet. {} shows how to send them from each language.", arguments.at.at))
        }
        Format::Text => {
            let poles = format!("{} --poles", at_server("search", &arguments.at.at));
            print(&render::traces::services(&view, &poles, invocation.style()))
        }
    }
}
