//! Which service a process belongs to.

use longpole_model::Text;
use longpole_wire::redact::Redactor;

/// Programs that run another program's text: the script is what a reader calls the process.
const INTERPRETERS: [&str; 12] = ["bash", "dash", "deno", "java", "node", "perl", "php", "python", "ruby", "sh", "uwsgi", "zsh"];

/// Characters of a name: a process can name itself by any text.
const NAME_CHARS_MAX: usize = 200;

/// What the kernel appends to the path of a deleted file.
const DELETED: &str = " (deleted)";

/// The path of a script is no longer.
const SCRIPT_BYTES_MAX: usize = 1_024;

/// A process whose start nobody saw.
const UNKNOWN: &str = "unknown";

/// The service of code that runs for no process: threads of the kernel.
const KERNEL: &str = "kernel";

/// The service, program and container of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessIdentity {
    /// Its service: as it says itself, or its program.
    pub service: Text,
    /// Its program: the executable, or the script that an interpreter runs.
    pub program: Text,
    /// The container that it runs in, by the first digits of its id.
    pub container: Option<Text>,
}

impl ProcessIdentity {
    /// With what a recorder has seen of the process, its program and its service, where the process says nothing itself; without credentials.
    pub(super) fn or_of(mut self, seen: Option<(Text, Option<Text>)>, redactor: &mut Redactor) -> ProcessIdentity {
        let (program, service) = seen.unwrap_or_default();
        if self.program.is_empty() {
            self.program = if program.is_empty() { UNKNOWN.into() } else { program };
        }
        if self.service.is_empty() {
            self.service = service.unwrap_or_else(|| self.program.clone());
        }
        for name in [&mut self.service, &mut self.program] {
            *name = clipped(name);
            // Whoever sets a variable may set it to a secret, by mistake.
            redactor.text(name);
        }
        self
    }
}

/// A name of no more than [`NAME_CHARS_MAX`].
pub(super) fn clipped(name: &str) -> Text {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => Text::from(format!("{}…", &name[..end]).as_str()),
        None => Text::from(name),
    }
}

/// `python3 /srv/app.py --port 80` is `app.py`, `/usr/bin/redis-server` is `redis-server`.
pub(super) fn program_of(name: &str, executable: &str, arguments: &[String], may_be_kernels: bool) -> Text {
    let executable = base_name(executable.strip_suffix(DELETED).unwrap_or(executable));
    if executable.is_empty() {
        // A thread of the kernel has a name, and neither a file nor arguments.
        return clipped(if may_be_kernels && arguments.is_empty() { KERNEL } else { name });
    }
    let stem = executable.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let script = if INTERPRETERS.contains(&stem) { script_of(stem, arguments) } else { None };
    clipped(script.map_or(executable, base_name))
}

/// The script among the arguments: the first that is no option, or what `-m`, `-jar` names. Text of a program is none, and may hold secrets.
fn script_of<'a>(interpreter: &str, arguments: &'a [String]) -> Option<&'a str> {
    let mut rest = arguments.iter().skip(1).map(String::as_str);
    while let Some(argument) = rest.next() {
        let found = match argument {
            "-m" | "-jar" => rest.next()?,
            "-cp" | "-classpath" | "--class-path" | "--require" | "--import" | "-W" | "-X" => {
                rest.next();
                continue;
            }
            // `-c`, `-lc`, `-we`, `-r`, `--eval`: the next one is a program's text, or who knows what.
            option if option.starts_with('-') && option.ends_with(['c', 'e', 'E', 'r', 'p', 'n', 'l', 'I']) => return None,
            option if option.starts_with('-') => continue,
            // Java names a class: its last part says more than its package.
            class if interpreter == "java" => class.rsplit('.').next()?,
            script => script,
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '@' | '$');
        return Some(found).filter(|found| found.chars().all(is_name) && found.len() <= SCRIPT_BYTES_MAX);
    }
    None
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(executable: &str, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        program_of("x", executable, &arguments, false).to_string()
    }

    #[test]
    fn an_interpreter_is_the_script_that_it_runs() {
        assert_eq!(of("/usr/bin/redis-server", &["redis-server", "*:6379"]), "redis-server");
        assert_eq!(of("/usr/bin/python3.12", &["python3", "-u", "/srv/cart/app.py", "--port", "80"]), "app.py");
        assert_eq!(of("/usr/bin/python3.12", &["python3", "-m", "gunicorn", "app:app"]), "gunicorn");
        assert_eq!(of("/usr/bin/python3.12", &["python3", "-c", "import this"]), "python3.12");
        assert_eq!(of("/usr/bin/node", &["node", "--require", "./otel.js", "server.js"]), "server.js");
        assert_eq!(of("/opt/jdk/bin/java", &["java", "-Xmx1g", "-cp", "a.jar", "com.shop.Cart"]), "Cart");
        assert_eq!(of("/opt/jdk/bin/java", &["java", "-jar", "/srv/cart.jar"]), "cart.jar");
        assert_eq!(of("/bin/bash", &["-bash"]), "bash");
        assert_eq!(of("/srv/cart (deleted)", &["cart"]), "cart");
    }

    #[test]
    fn the_text_of_a_program_is_no_name() {
        for (interpreter, arguments) in [
            ("bash", &["-lc", "T=ghp_0123456789 make"][..]),
            ("sh", &["-ec", "ghp_0123456789"]),
            ("perl", &["-we", "my $pw=\"s3cr3t\""]),
            ("node", &["--eval", "1"]),
            ("node", &["-p", "token"]),
            ("php", &["-r", "secret"]),
            ("ruby", &["-I", "lib", "x.rb"]),
            ("python3", &["a b"]),
        ] {
            let arguments: Vec<&str> = [interpreter].iter().chain(arguments).copied().collect();
            assert_eq!(of(&format!("/usr/bin/{interpreter}"), &arguments), interpreter, "{arguments:?}");
        }
    }

    #[test]
    fn what_a_process_says_of_itself_is_its_service() {
        let seen = || Some((Text::from("cart"), Some(Text::from("shop"))));
        let identity = ProcessIdentity::default().or_of(seen(), &mut Redactor::default());
        assert_eq!((identity.service.as_str(), identity.program.as_str()), ("shop", "cart"));
        let said =
            ProcessIdentity { service: "by-environment".into(), ..ProcessIdentity::default() }.or_of(seen(), &mut Redactor::default());
        assert_eq!(said.service, "by-environment");
        let long = ProcessIdentity { service: "ü".repeat(100_000).as_str().into(), ..ProcessIdentity::default() }
            .or_of(None, &mut Redactor::default());
        assert_eq!(long.service.chars().count(), NAME_CHARS_MAX + 1);
        assert_eq!(ProcessIdentity::default().or_of(None, &mut Redactor::default()).service, "unknown");
        assert_eq!(program_of("rcu_preempt", "", &[], true), "kernel");
        assert_eq!(program_of("make", "", &[], false), "make", "it ended before anybody could read more");
    }
}
