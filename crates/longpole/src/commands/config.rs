//! `config`: the settings that `serve` would start with, as a file that sets them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Result;
use longpole_server::serve::Door;

use super::serve::jaeger_variables::JaegerVariables;
use crate::args::{ALL, ConfigArguments, Origin, Setting, Settings, is_switch, options};
use crate::env_vars;
use crate::invocation::Invocation;
use crate::terminal::screen::print_line;

/// Prints the settings.
pub(crate) fn config(invocation: &Invocation, arguments: &ConfigArguments) -> Result<()> {
    let settings = Settings::read(arguments.config.as_deref())?;
    let origin = |origin: &Origin| if arguments.origin { format!("  # {origin}") } else { String::new() };
    let store = match &settings.store {
        Some(setting) if !invocation.is_store_named() => setting.clone(),
        _ => Setting { option: "store".to_owned(), value: invocation.store()?.display().to_string(), origin: invocation.store_origin() },
    };
    print_line(format!("store = {}{}", quoted(&store.value), origin(&store.origin)))?;
    print_line("")?;
    print_line("[serve]")?;
    for option in options() {
        let name = option.get_long().unwrap_or_default();
        let of_it: Vec<&Setting> = settings.list.iter().filter(|setting| setting.option == name).collect();
        match option.get_action() {
            _ if name == "port" => {}
            clap::ArgAction::Append if of_it.is_empty() => {}
            clap::ArgAction::Append => {
                print_line(format!("{name} = ["))?;
                for setting in of_it {
                    print_line(format!("    {},{}", quoted(&without_password(&setting.value)), origin(&setting.origin)))?;
                }
                print_line("]")?;
            }
            _ => {
                let default = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
                let last = of_it.last().map(|setting| (setting.value.clone(), setting.origin.clone()));
                let Some((value, from)) = last.or_else(|| Some((default?, Origin::Default))) else { continue };
                let value = if is_switch(&option) { value } else { quoted(&value) };
                print_line(format!("{name} = {value}{}", origin(&from)))?;
            }
        }
    }
    let jaeger = JaegerVariables::of(env_vars::all_text())?;
    let of_jaeger: Vec<(&str, String, Origin)> = jaeger
        .ports
        .iter()
        .map(|(door, port, variable)| {
            (door.name(), port.map_or("off".to_owned(), |port| port.to_string()), Origin::Variable(variable.clone()))
        })
        .collect();
    let usual = Door::ALL.map(|door| (door.name(), door.usual_port().to_string()));
    let mut ports: BTreeMap<&str, (&str, &Origin)> = BTreeMap::new();
    ports.extend(usual.iter().map(|(door, port)| (*door, (port.as_str(), &Origin::Default))));
    ports.extend(of_jaeger.iter().map(|(door, port, origin)| (*door, (port.as_str(), origin))));
    for setting in settings.list.iter().filter(|setting| setting.option == "port") {
        if let Some((door, port)) = setting.value.split_once('=') {
            // It sets all of them again.
            if door == ALL {
                ports.clear();
            }
            ports.insert(door, (port, &setting.origin));
        }
    }
    print_line("")?;
    print_line("[serve.port]")?;
    // Those that differ stand behind it.
    let all = ports.remove_entry(ALL);
    for (door, (port, from)) in all.into_iter().chain(ports) {
        let port = if port == "off" { quoted(port) } else { port.to_owned() };
        print_line(format!("{door} = {port}{}", origin(from)))?;
    }
    Ok(())
}

/// A value without the user and password of an address in it: what is printed goes to logs.
fn without_password(value: &str) -> Cow<'_, str> {
    let (Some(begin), Some(end)) = (value.find("://"), value.rfind('@')) else { return Cow::Borrowed(value) };
    if begin < end { Cow::Owned(format!("{}://[redacted]{}", &value[..begin], &value[end..])) } else { Cow::Borrowed(value) }
}

/// A text of TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
