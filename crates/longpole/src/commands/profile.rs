//! `profile`: the continuous profiles of a server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use longpole_recording::view::{ProfileDiffView, ProfileTypeView, ProfileTypesView, ProfileView};

use super::search::as_option;
use crate::args::{Format, ProfileArguments};
use crate::failure::{Failure, Kind};
use crate::input::server::{Server, query_value};
use crate::invocation::Invocation;
use crate::next_command::at_server;
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};

/// The type of a service's profiles that is shown without `--type`.
const CPU: &str = "process_cpu:cpu";

/// Functions of a tree: of a profile with more, the smallest are one.
const NODES: usize = 2_000;

/// Shows hot functions, calls, or what changed.
pub(crate) fn profile(invocation: &Invocation, arguments: &ProfileArguments) -> Result<()> {
    if let Some(earlier) = arguments.diff.filter(|earlier| *earlier < arguments.since) {
        let (earlier, since) = (as_option(earlier), as_option(arguments.since));
        let hint = format!("use --since {earlier} --diff {earlier}, or a longer --diff");
        return Err(Failure::new(Kind::Usage, format!("--diff {earlier} is shorter than --since {since}: the two ranges overlap"))
            .hint(hint)
            .into());
    }
    let server = Server::new(&arguments.at.at);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let range = [now.saturating_sub(arguments.since), now];
    let Some(query) = &arguments.query else { return list(invocation, arguments, &server, range) };
    // A query names what the server has at any time: a service that is quiet now is known all the same.
    let types = types_between(&server, [Duration::ZERO, now])?;
    let query = whole_query(query, arguments, &types)?;
    let (text, [start, end]) = (query_value(&query), range.map(|time| time.as_micros()));
    if let Some(earlier) = arguments.diff {
        let before = range.map(|time| time.saturating_sub(earlier));
        let [before_start, before_end] = before.map(|time| time.as_micros());
        let path = format!(
            "/longpole/v1/profiles/diff?query={text}&start={start}&end={end}&beforeStart={before_start}&beforeEnd={before_end}&limit={}",
            arguments.limit
        );
        let view: ProfileDiffView = server.view(&path)?;
        return match arguments.at.format {
            Format::Json => print_json(&view),
            Format::Text if view.after.total == 0 => print_line(nothing(&query, arguments.since)),
            Format::Text if view.before.total == 0 => print_line(render::profile::nothing_before(&view)),
            Format::Text => print(&render::profile::diff(&view, invocation.style())),
        };
    }
    let path = format!("/longpole/v1/profiles?query={text}&start={start}&end={end}&limit={}&nodes={NODES}", limit_of(arguments));
    let mut view: ProfileView = server.view(&path)?;
    if arguments.total {
        view.functions.sort_by_key(|function| std::cmp::Reverse((function.total, function.own)));
        view.truncated += view.functions.len().saturating_sub(arguments.limit);
        view.functions.truncate(arguments.limit);
    }
    match arguments.at.format {
        Format::Json => print_json(&view),
        Format::Text if view.total == 0 => print_line(nothing(&query, arguments.since)),
        Format::Text if arguments.flame => print(&render::profile::calls(&view, invocation.style())),
        Format::Text => print(&render::profile::functions(&view, arguments.total, invocation.style())),
    }
}

/// The types of profiles with a value between two times since 1970.
fn types_between(server: &Server, range: [Duration; 2]) -> Result<ProfileTypesView> {
    let [start, end] = range.map(|time| time.as_micros());
    server.view(&format!("/longpole/v1/profiles/types?start={start}&end={end}"))
}

/// Functions to query. The server sorts them by self time, so for another order all are needed.
fn limit_of(arguments: &ProfileArguments) -> usize {
    if arguments.total { NODES.max(arguments.limit) } else { arguments.limit }
}

fn list(invocation: &Invocation, arguments: &ProfileArguments, server: &Server, range: [Duration; 2]) -> Result<()> {
    let types = &types_between(server, range)?;
    match arguments.at.format {
        Format::Json => print_json(types),
        Format::Text if types.types.is_empty() => print_line(format!(
            "No profiles in the last {}. `longpole agent` sends those of every process of a machine. Services send their own to the server's port pyroscope \
             (usually 4040: Pyroscope's SDKs), or as OpenTelemetry profiles to its port otlp-http (usually 4318).",
            as_option(arguments.since)
        )),
        Format::Text => {
            let by_cpu = services_by_cpu(types, server, range)?;
            print(&render::profile::types(types, &by_cpu, &this_command(arguments), invocation.style()))
        }
    }
}

/// Services whose CPU time a list states: each takes a query.
const SERVICES_MAX: usize = 30;

/// The CPU time of each service, the most first; empty where there are too many.
fn services_by_cpu(types: &ProfileTypesView, server: &Server, [start, end]: [Duration; 2]) -> Result<Vec<(String, i64)>> {
    let cpu = types.types.iter().find(|it| it.profile_type.starts_with(&format!("{CPU}:")) && it.services.len() <= SERVICES_MAX);
    let Some(cpu) = cpu else { return Ok(Vec::new()) };
    let (start, end) = (start.as_micros(), end.as_micros());
    let total = |service: &String| {
        let query = query_value(&format!("{}{}", cpu.profile_type, of_service(service)));
        let path = format!("/longpole/v1/profiles?query={query}&start={start}&end={end}&limit=1&nodes=1");
        server.view(&path).map(|view: ProfileView| (service.clone(), view.total))
    };
    let mut all: Vec<(String, i64)> = cpu.services.iter().map(total).collect::<Result<_>>()?;
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(all)
}

/// `longpole profile`, at the same server.
fn this_command(arguments: &ProfileArguments) -> String {
    at_server("profile", &arguments.at.at)
}

fn nothing(query: &str, since: Duration) -> String {
    format!("No values of {query} in the last {}. Use a longer --since to look further back.", as_option(since))
}

/// The query as the server takes it: a service becomes a selector, and the beginning of a type the whole.
fn whole_query(query: &str, arguments: &ProfileArguments, types: &ProfileTypesView) -> Result<String> {
    let (of_type, selector) = match query.find('{') {
        Some(place) => (query[..place].trim(), query[place..].to_owned()),
        None if query.contains(':') => (query, String::new()),
        None => {
            let sent = || types.types.iter().filter(|it| it.services.iter().any(|service| service == query));
            // Not each service sends CPU time.
            let first = sent().find(|it| it.profile_type.starts_with(&format!("{CPU}:"))).or_else(|| sent().next());
            let first = first.ok_or_else(|| not_found(arguments, format!("the server has no profiles of a service {query}")))?;
            (if arguments.profile_type.is_none() { first.profile_type.as_str() } else { "" }, of_service(query))
        }
    };
    let of_type = match (of_type, &arguments.profile_type) {
        ("", Some(named)) => named.as_str(),
        ("", None) => CPU,
        (of_type, _) => of_type,
    };
    let begins = |it: &&ProfileTypeView| it.profile_type == of_type || it.profile_type.starts_with(&format!("{of_type}:"));
    if of_type.matches(':').count() >= PARTS_OF_A_TYPE - 1 {
        return Ok(format!("{of_type}{selector}"));
    }
    let found = types.types.iter().find(begins).or_else(|| types.types.iter().find(|it| it.sample_type == of_type));
    let found = found.ok_or_else(|| not_found(arguments, format!("the server has no profiles of type {of_type}")))?;
    Ok(format!("{}{selector}", found.profile_type))
}

/// The selector of a service.
pub(super) fn of_service(service: &str) -> String {
    format!("{{service_name=\"{}\"}}", service.replace('\\', "\\\\").replace('"', "\\\""))
}

/// How far back the list goes that a hint names.
const LISTED: Duration = Duration::from_secs(7 * 86_400);

/// Parts of the whole name of a type.
const PARTS_OF_A_TYPE: usize = 5;

fn not_found(arguments: &ProfileArguments, what: String) -> anyhow::Error {
    Failure::new(Kind::NotFound, what)
        .hint(format!("{} --since {} lists types and services", this_command(arguments), as_option(LISTED)))
        .into()
}
