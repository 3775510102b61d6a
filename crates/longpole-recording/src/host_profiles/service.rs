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

/// What an option of an interpreter says of the arguments behind it.
enum InterpreterOption {
    /// Nothing.
    Flag,
    /// The next one is its value.
    HasValue,
    /// The next one is the program.
    NamesProgram,
    /// The next one, or what comes from standard input, is the text of a program, and all others are its arguments.
    HasText,
    /// The next one may be anything.
    Unknown,
}

/// Options of an interpreter whose value is the next argument.
fn with_value(interpreter: &str) -> &'static [&'static str] {
    match interpreter {
        "bash" | "dash" | "sh" | "zsh" => &["--init-file", "--rcfile", "-O", "-o"],
        "deno" | "node" => &["--env-file", "--import", "--loader", "--require"],
        "java" => &["--class-path", "--module-path", "-classpath", "-cp"],
        "perl" | "ruby" => &["-I"],
        "php" => &["-d"],
        "python" => &["-W", "-X"],
        _ => &[],
    }
}

/// Long options without a value, or beginnings of such.
const LONG_FLAGS: [&str; 14] = [
    "--abort",
    "--enable-",
    "--experimental-",
    "--expose-",
    "--harmony",
    "--inspect",
    "--interpreted-",
    "--login",
    "--no-",
    "--norc",
    "--perf-",
    "--preserve-",
    "--trace-",
    "--watch",
];

/// Ends of the names of scripts.
const SCRIPT_ENDS: [&str; 14] = [".bash", ".cjs", ".ini", ".jar", ".js", ".mjs", ".php", ".pl", ".py", ".pyz", ".rb", ".sh", ".ts", ".zsh"];

impl InterpreterOption {
    fn of(interpreter: &str, option: &str) -> InterpreterOption {
        use InterpreterOption::{Flag, HasText, HasValue, NamesProgram, Unknown};
        let is_shell = matches!(interpreter, "bash" | "dash" | "sh" | "zsh");
        let letters = option.trim_start_matches('-');
        let all_in = |known: &str| !letters.is_empty() && letters.chars().all(|letter| known.contains(letter));
        match option {
            "-" | "--eval" | "--print" => HasText,
            "-m" if interpreter == "python" || interpreter == "java" => NamesProgram,
            "-jar" | "--module" => NamesProgram,
            // Java has its own values in the same argument.
            _ if interpreter == "java" && (option.starts_with("-X") || option.starts_with("-D") || option.contains([':', '='])) => Flag,
            _ if with_value(interpreter).contains(&option) => HasValue,
            _ if option.starts_with("--") && option.contains('=') => Flag,
            _ if LONG_FLAGS.iter().any(|flag| option.starts_with(flag)) => Flag,
            _ if option.starts_with("--") => Unknown,
            _ if is_shell && letters.contains(['c', 's']) => HasText,
            _ if is_shell && all_in("abefhiklmnpruvxBCEHPT") => Flag,
            _ if interpreter == "python" && letters.contains('c') => HasText,
            _ if interpreter == "python" && all_in("bBdEhiIOPqRsStuvVx") => Flag,
            _ if interpreter == "perl" && all_in("acnlptTuUwWX") => Flag,
            _ if interpreter == "ruby" && all_in("aclnpsSvwW") => Flag,
            // `-e`, `-we`, `-r`, `-lne`: the next one is a program's text, or who knows what.
            _ if letters.contains(['c', 'e', 'E', 'r', 'p', 'n', 'l', 'I']) => HasText,
            _ => Unknown,
        }
    }
}

/// The script among the arguments: the first that is no option, or what `-m`, `-jar` names. The text of a program is none, and what stands behind an
/// option that nobody here knows only if it looks like one: any of them may be secrets.
fn script_of<'a>(interpreter: &str, arguments: &'a [String]) -> Option<&'a str> {
    let mut rest = arguments.iter().skip(1).map(String::as_str);
    let mut is_certain = interpreter != "uwsgi";
    let mut are_options = true;
    while let Some(argument) = rest.next() {
        let found = if are_options && argument == "--" {
            are_options = false;
            continue;
        } else if are_options && argument.starts_with('-') {
            match InterpreterOption::of(interpreter, argument) {
                InterpreterOption::Flag => continue,
                InterpreterOption::HasValue => {
                    rest.next();
                    continue;
                }
                InterpreterOption::NamesProgram => rest.next()?,
                InterpreterOption::HasText => return None,
                InterpreterOption::Unknown => {
                    is_certain = false;
                    continue;
                }
            }
        } else if interpreter == "deno" && argument == "run" {
            continue;
        } else if !is_certain && !SCRIPT_ENDS.iter().any(|end| argument.ends_with(end)) {
            return None;
        } else {
            argument
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '@' | '$');
        let found = Some(found).filter(|found| found.chars().all(is_name) && found.len() <= SCRIPT_BYTES_MAX)?;
        // Java names a class: its last part says more than its package.
        let is_class = interpreter == "java" && !found.ends_with(".jar");
        return if is_class { found.rsplit(['.', '/']).next() } else { Some(found) };
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
        assert_eq!(of("/opt/jdk/bin/java", &["java", "-m", "shop/com.shop.Cart"]), "Cart");
        assert_eq!(of("/bin/bash", &["-bash"]), "bash");
        assert_eq!(of("/bin/bash", &["bash", "-eux", "-o", "pipefail", "/srv/deploy", "prod"]), "deploy");
        assert_eq!(of("/usr/bin/node", &["node", "--enable-source-maps", "--title", "t0k3n", "/srv/server.js"]), "node");
        assert_eq!(of("/usr/bin/node", &["node", "--stack-size=9", "--loud", "server.js"]), "server.js");
        assert_eq!(of("/usr/bin/deno", &["deno", "run", "-A", "main.ts"]), "main.ts");
        assert_eq!(of("/usr/bin/perl", &["perl", "-w", "--", "count.pl"]), "count.pl");
        assert_eq!(of("/usr/bin/ruby", &["ruby", "-I", "lib", "count.rb"]), "count.rb");
        assert_eq!(of("/usr/bin/python3", &["python3", "-I", "app.py", "secret"]), "app.py");
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
            ("python3", &["a b"]),
            ("sh", &["-s", "--", "hunter2-key"]),
            ("bash", &["-es", "hunter2-key"]),
            ("python3", &["-", "swordfish"]),
            ("bash", &["--debugger", "swordfish"]),
            ("uwsgi", &["--http-password", "swordfish"]),
            ("node", &["--title", "swordfish"]),
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
