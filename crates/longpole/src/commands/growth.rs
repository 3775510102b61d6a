//! `growth`: what grows in the services of a server.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use longpole_recording::view::ServiceGrowthView;

use super::profile::of_service;
use super::search::as_option;
use crate::args::{Format, GrowthArguments};
use crate::input::server::{Server, query_value};
use crate::invocation::Invocation;
use crate::next_command::at_server;
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};

/// Shows what grows: how fast, since when, and in which function.
pub(crate) fn growth(invocation: &Invocation, arguments: &GrowthArguments) -> Result<()> {
    let server = Server::new(&arguments.at.at);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let [start, end] = [now.saturating_sub(arguments.since), now].map(|time| time.as_micros());
    let of_service = arguments.service.as_deref().map(|service| format!("&query={}", query_value(&of_service(service))));
    let path = format!("/longpole/v1/profiles/growth?start={start}&end={end}{}", of_service.unwrap_or_default());
    let view: ServiceGrowthView = server.view(&path)?;
    let since = as_option(arguments.since);
    match arguments.at.format {
        Format::Json => print_json(&view),
        Format::Text if view.growing.is_empty() => print_line(nothing(&view, arguments, &since)),
        Format::Text => {
            // Where the profiles begin later, there are none before.
            let begins = view.from_unix_nano.parse::<u128>().unwrap_or_default() / 1_000;
            let command = at_server("profile", &arguments.at.at);
            print(&render::growth::growth(&view, &command, &since, begins <= start, invocation.style()))
        }
    }
}

fn nothing(view: &ServiceGrowthView, arguments: &GrowthArguments, since: &str) -> String {
    let whose = arguments.service.as_ref().map_or_else(String::new, |service| format!(" of {service}"));
    match (view.steady, view.too_short) {
        (0, 0) => format!(
            "No profiles{whose} of memory in use, goroutines or other gauges in the last {since}. Pyroscope's SDKs and the heap \
             profiler of longpole-sdk send them, `longpole agent` sends the memory of each process, and `longpole serve --scrape SERVICE=URL` \
             fetches them from Go services."
        ),
        (0, _) => format!(
            "There are too few profiles{whose} to tell: values at 12 times are needed, over 5 minutes or more. Use a longer --since."
        ),
        _ => format!("Nothing{whose} grows: {}", render::growth::others(view)),
    }
}
