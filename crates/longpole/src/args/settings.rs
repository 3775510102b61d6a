//! Settings of `serve` from a file and from variables. They stand in front of the options of the command line, so that the last one wins.
//!
//! ```toml
//! store = "/var/lib/longpole"
//!
//! [serve]
//! keep = "7d"
//! allow-origin = ["https://shop.example"]
//!
//! [serve.port]
//! zipkin = 9412
//! appdash = "off"
//! ```

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, Args, Command};
use longpole_store::outside::{self, Links};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::serve::{ALL, ServeArguments};
use crate::env_vars;

/// What variables of settings begin with.
const PREFIX: &str = "LONGPOLE_SERVE_";

/// The option that is a table in a file.
const PORT: &str = "port";

/// The option that names the file.
const CONFIG: &str = "config";

/// Files of settings are short; a larger one is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bits of a mode: its group or everybody may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    /// A file, and the line there.
    File(PathBuf, usize),
    Variable(String),
    /// An option of the command line.
    Option(&'static str),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Option(name) => f.write_str(name),
        }
    }
}

/// An option of `serve`, and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its name, without dashes.
    pub(crate) option: String,
    /// For a switch `true` or `false`.
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// Settings of one invocation, by precedence: those of the file first.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The file; `None` without one.
    pub(crate) file: Option<PathBuf>,
    /// The store that the file names.
    pub(crate) store: Option<Setting>,
    pub(crate) list: Vec<Setting>,
}

impl Settings {
    /// Reads the file, which is the named one or the user's own, and the variables.
    pub(crate) fn read(named: Option<&Path>) -> Result<Settings> {
        let path = named.map(Path::to_owned).or_else(|| env_vars::config_file().filter(|path| path.exists()));
        let mut settings = Settings { file: path.clone(), ..Settings::default() };
        if let Some(path) = path {
            let text = text_of_file(&path).with_context(|| format!("failed to read {}", path.display()))?;
            settings.read_file(&path, &text)?;
        }
        settings.read_variables(env_vars::all_text())?;
        Ok(settings)
    }

    fn read_file(&mut self, path: &Path, text: &str) -> Result<()> {
        let table = DeTable::parse(text).with_context(|| path.display().to_string())?;
        let origin_of = origin_of(path, text);
        for (key, value) in table.get_ref() {
            let origin = origin_of(key);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("store", DeValue::String(store)) => {
                    self.store = Some(Setting { option: "store".to_owned(), value: store.to_string(), origin });
                }
                ("store", _) => bail!("{origin}: store: expected the path of a directory"),
                ("serve", DeValue::Table(serve)) => self.read_table(serve, &origin_of)?,
                ("serve", _) => bail!("{origin}: expected a table: [serve]"),
                (other, _) => bail!("{origin}: no setting is called {other}: expected store or [serve]"),
            }
        }
        Ok(())
    }

    fn read_table(&mut self, table: &DeTable<'_>, origin: &impl Fn(&Spanned<Cow<'_, str>>) -> Origin) -> Result<()> {
        for (key, value) in table {
            let (name, origin_of_key) = (key.get_ref().as_ref(), origin(key));
            let option = option_named(name).with_context(|| origin_of_key.to_string())?;
            match value.get_ref() {
                DeValue::Table(ports) if name == PORT => {
                    // `all` stands before those that differ; the table has its keys in the order of the alphabet.
                    let (all, others): (Vec<_>, Vec<_>) = ports.iter().partition(|(door, _)| door.get_ref() == ALL);
                    for (door, port) in all.into_iter().chain(others) {
                        let origin = origin(door);
                        let Some(port) = text_of(port.get_ref()) else { bail!("{origin}: expected a number, or \"off\"") };
                        self.add(&option, format!("{}={port}", door.get_ref()), origin)?;
                    }
                }
                DeValue::Array(values) if matches!(option.get_action(), ArgAction::Append) && name != PORT => {
                    for value in values {
                        let Some(value) = text_of(value.get_ref()) else { bail!("{origin_of_key}: {name}: expected a list of texts") };
                        self.add(&option, value, origin_of_key.clone())?;
                    }
                }
                value => {
                    let value = text_of(value).filter(|_| name != PORT);
                    let Some(value) = value else { bail!("{origin_of_key}: {name}: expected {}", expected(&option)) };
                    self.add(&option, value, origin_of_key)?;
                }
            }
        }
        Ok(())
    }

    fn read_variables(&mut self, variables: impl Iterator<Item = (String, String)>) -> Result<()> {
        let mut variables: Vec<(String, String)> =
            variables.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty()).collect();
        variables.sort();
        for (variable, value) in variables {
            let name = variable[PREFIX.len()..].to_lowercase().replace('_', "-");
            let option = option_named(&name).with_context(|| variable.clone())?;
            let origin = Origin::Variable(variable);
            if matches!(option.get_action(), ArgAction::Append) {
                value.split(',').try_for_each(|value| self.add(&option, value.trim().to_owned(), origin.clone()))?;
            } else {
                self.add(&option, value, origin)?;
            }
        }
        Ok(())
    }

    /// Adds a setting if its option takes that value.
    fn add(&mut self, option: &Arg, value: String, origin: Origin) -> Result<()> {
        let name = option.get_long().unwrap_or_default().to_owned();
        let setting = Setting { option: name, value, origin };
        if is_switch(option) && !matches!(setting.value.as_str(), "true" | "false") {
            bail!("{}: {}: expected {}", setting.origin, setting.option, expected(option));
        }
        let words = ["serve".to_owned()].into_iter().chain(setting.word());
        // What else is missing tells the whole command line.
        if let Err(error) = serve_options().try_get_matches_from(words)
            && error.kind() != clap::error::ErrorKind::MissingRequiredArgument
        {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            bail!("{}: {reason}", setting.origin);
        }
        self.list.push(setting);
        Ok(())
    }

    /// The command line with these settings in front of the options of `serve`, whose name stands at this place.
    pub(super) fn in_front_of(&self, words: &[OsString], place: usize, has_store: bool) -> Vec<OsString> {
        let store = self.store.iter().filter(|_| !has_store).filter_map(Setting::word);
        let file = self.file.iter().map(|file| {
            let mut word = OsString::from(format!("--{CONFIG}="));
            word.push(file);
            word
        });
        let settings = store.chain(self.list.iter().filter_map(Setting::word)).map(OsString::from).chain(file);
        words[..=place].iter().cloned().chain(settings).chain(words[place + 1..].iter().cloned()).collect()
    }
}

impl Setting {
    /// The option as a word of the command line; `None` for a switch that is off.
    fn word(&self) -> Option<String> {
        let is_switch = option_named(&self.option).is_ok_and(|option| is_switch(&option));
        match (is_switch, self.value.as_str()) {
            (true, "true") => Some(format!("--{}", self.option)),
            (true, _) => None,
            (false, value) => Some(format!("--{}={value}", self.option)),
        }
    }
}

/// The text of a file whose words nobody but this user and root decides.
fn text_of_file(path: &Path) -> io::Result<String> {
    let file = outside::open(path, Links::Followed)?;
    let about = file.metadata()?;
    let is_of_root = about.uid() == 0 && about.mode() & WRITABLE_BY_OTHERS == 0;
    if !is_of_root && !outside::is_only_ours(&file)? {
        return Err(io::Error::other("other users can write to it, and so decide what is set"));
    }
    String::from_utf8(outside::read_opened(file, FILE_BYTES_MAX)?).map_err(io::Error::other)
}

fn serve_options() -> Command {
    ServeArguments::augment_args(Command::new("serve"))
}

/// The options of `serve` that a file may set, in the order of the help.
pub(crate) fn options() -> Vec<Arg> {
    let command = serve_options();
    command.get_arguments().filter(|option| option.get_long().is_some_and(|name| name != CONFIG)).cloned().collect()
}

fn option_named(name: &str) -> Result<Arg> {
    let options = options();
    if let Some(option) = options.iter().find(|option| option.get_long() == Some(name)) {
        return Ok(option.clone());
    }
    let names: Vec<&str> = options.iter().filter_map(Arg::get_long).collect();
    bail!("no setting of serve is called {name}: expected {}", names.join(", "))
}

/// Whether an option takes no value.
pub(crate) fn is_switch(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue)
}

/// The shape of an option in a file.
fn expected(option: &Arg) -> &'static str {
    match option.get_action() {
        _ if option.get_long() == Some(PORT) => "a table: [serve.port]",
        ArgAction::SetTrue => "true or false",
        ArgAction::Append => "a text or a list of texts",
        _ => "a text or a number",
    }
}

fn origin_of(path: &Path, text: &str) -> impl Fn(&Spanned<Cow<'_, str>>) -> Origin {
    move |key| Origin::File(path.to_owned(), text[..key.span().start.min(text.len())].matches('\n').count() + 1)
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(is_on) => Some(is_on.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each setting as `option=value (line or variable)`, or the error.
    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut settings = Settings::default();
        let read = settings.read_file(Path::new("c.toml"), text);
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        read.and_then(|()| settings.read_variables(variables)).map_err(|error| format!("{error:#}"))?;
        let all = settings.store.iter().chain(&settings.list);
        Ok(all.map(|setting| format!("{}={} ({})", setting.option, setting.value, setting.origin)).collect())
    }

    #[test]
    fn settings_of_a_file_stand_before_those_of_variables() {
        let text = "store = '/srv'\n[serve]\nkeep = '2d'\ninsecure = true\nlisten = '0.0.0.0'\nallow-origin = ['https://a.example', 'https://b.example']\n\n[serve.port]\nzipkin = 9412\nappdash = 'off'\n";
        let all = read(text, &[("LONGPOLE_SERVE_KEEP", "3d"), ("LONGPOLE_SERVE_PORT", "page=8080, zipkin=off"), ("LONGPOLE_STORE", "/x")]);
        assert_eq!(
            all.unwrap(),
            [
                "store=/srv (c.toml:1)",
                "allow-origin=https://a.example (c.toml:6)",
                "allow-origin=https://b.example (c.toml:6)",
                "insecure=true (c.toml:4)",
                "keep=2d (c.toml:3)",
                "listen=0.0.0.0 (c.toml:5)",
                "port=appdash=off (c.toml:10)",
                "port=zipkin=9412 (c.toml:9)",
                "keep=3d (LONGPOLE_SERVE_KEEP)",
                "port=page=8080 (LONGPOLE_SERVE_PORT)",
                "port=zipkin=off (LONGPOLE_SERVE_PORT)",
            ]
        );
    }

    #[test]
    fn all_ports_are_set_before_those_that_differ() {
        let all = read("[serve.port]\nadmin = 1\nall = 0\n", &[]).unwrap();
        assert_eq!(all, ["port=all=0 (c.toml:3)", "port=admin=1 (c.toml:2)"]);
    }

    #[test]
    fn an_error_names_its_line_and_what_was_expected() {
        for (text, begin) in [
            ("[serve]\nkep = '2d'\n", "c.toml:2: no setting of serve is called kep: expected listen, insecure, token-file, keep"),
            ("\n[server]\n", "c.toml:2: no setting is called server: expected store or [serve]"),
            ("[serve]\nkeep = 'long'\n", "c.toml:2: invalid value 'long' for '--keep <TIME>': "),
            ("[serve]\nport = 80\n", "c.toml:2: port: expected a table: [serve.port]"),
            ("[serve.port]\nzipkim = 80\n", "c.toml:2: invalid value 'zipkim=80' for '--port <NAME=PORT>': no port is called zipkim"),
            ("[serve]\ninsecure = 'yes'\n", "c.toml:2: insecure: expected true or false"),
            ("[serve]\nkeep = [1]\n", "c.toml:2: keep: expected a text or a number"),
            ("[serve\n", "c.toml: TOML parse error at line 1"),
            ("store = 5\n", "c.toml:1: store: expected the path of a directory"),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.starts_with(begin), "{text}: {error}");
        }
        let error = read("", &[("LONGPOLE_SERVE_KEPP", "1")]).unwrap_err();
        assert!(error.starts_with("LONGPOLE_SERVE_KEPP: no setting of serve is called kepp"), "{error}");
    }
}
