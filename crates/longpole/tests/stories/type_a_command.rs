//! Story: somebody types a command as they are used to, or mistypes it.
//! Guarantees: what is mistyped is an error with its name and never runs as something else; what other tools take works here too; the answer
//! fits the terminal, and says there what its marks mean.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::served::Served;
use crate::support::terminal::on_a_terminal;
use crate::support::{Sandbox, longpole};

/// Status of a usage error.
const USAGE: Option<i32> = Some(2);

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn a_mistyped_option_is_refused_and_nothing_runs() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for words in
        [&["run", "--no-profle", "--", "touch", "ran"][..], &["run", "-F99", "-x", "touch", "ran"], &["exec", "--nme", "touch", "ran"]]
    {
        let out = longpole(&store).args(words).current_dir(sandbox.path("")).output().unwrap();
        let wrong = words.iter().rfind(|word| word.starts_with('-') && **word != "--").unwrap();
        assert_eq!(out.status.code(), USAGE, "{words:?}: {}", said(&out));
        assert!(said(&out).contains(&format!("unexpected argument '{wrong}'")), "{}", said(&out));
    }
    assert!(!sandbox.path("ran").exists() && !store.exists());
    // Options of the command are the command's.
    let out = longpole(&store).args(["run", "--summary", "none", "sh", "-c", "exit $#", "sh", "--no-profle", "-x"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(store.exists());
}

#[test]
fn variables_stand_on_either_side_of_the_dashes() {
    let sandbox = Sandbox::new();
    for words in [&["A=1", "--"][..], &["--", "A=1"], &["A=1"], &["--", "A=1", "--"]] {
        let mut run = longpole(&sandbox.path("store"));
        let out = run.args(["run", "--summary", "none"]).args(words).args(["sh", "-c", "exit 4$A"]).output().unwrap();
        assert_eq!(out.status.code(), Some(41), "{words:?}: {}", said(&out));
    }
}

#[test]
fn settings_of_a_server_come_from_a_file_variables_and_options() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("serve.toml");
    std::fs::write(&file, "[serve]\nkeep = '2d'\nkeep-bytes = '1GB'\n\n[serve.port]\nall = 0\nzipkin = 'off'\nadmin = 1\n").unwrap();
    let config = |words: &[&str]| {
        let mut config = longpole(&sandbox.path("store"));
        config.env("LONGPOLE_SERVE_KEEP", "3d").env("LONGPOLE_SERVE_PORT", "appdash=off").args(words).arg("--config").arg(&file);
        config
    };
    let out = config(&["config", "--origin"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("no {begin}: {text}"));
    let name = file.display();
    assert_eq!(line("keep ="), "keep = \"3d\"  # LONGPOLE_SERVE_KEEP");
    assert_eq!(line("keep-bytes ="), format!("keep-bytes = \"1GB\"  # {name}:3"));
    assert_eq!(line("segment-every ="), "segment-every = \"10m\"  # default");
    assert_eq!(line("appdash ="), "appdash = \"off\"  # LONGPOLE_SERVE_PORT");
    assert_eq!(line("zipkin ="), format!("zipkin = \"off\"  # {name}:7"));
    // `all` stands first, although `admin` comes before it in the alphabet.
    assert!(text.find("\nall = 0").unwrap() < text.find("\nadmin = 1").unwrap(), "{text}");
    // Ports that nobody sets are the usual ones, unless `all` is set.
    let mut config_alone = longpole(&sandbox.path("store"));
    let alone = config_alone.env("XDG_CONFIG_HOME", sandbox.path("none")).args(["config", "--origin"]).output().unwrap();
    let alone = String::from_utf8(alone.stdout).unwrap();
    assert!(alone.contains("\npage = 16686  # default\n") && !text.contains("\npage ="), "{alone}{text}");
    // What it prints is such a file.
    let again = sandbox.path("again.toml");
    std::fs::write(&again, config(&["config"]).output().unwrap().stdout).unwrap();
    let out = longpole(&sandbox.path("store")).args(["config", "--config"]).arg(&again).output().unwrap();
    assert_eq!(std::fs::read(&again).unwrap(), out.stdout);
    // Options win: `--port all=0` of every story opens what the file and the variable close.
    let served = Served::start_with(
        &sandbox.path("store"),
        &["--config", file.to_str().unwrap()],
        &[("LONGPOLE_SERVE_PORT", Path::new("appdash=off"))],
    );
    assert!(served.port("zipkin") > 0 && served.port("appdash") > 0);
    served.stop();
    // Neither a pipe nor what the kernel makes up is waited for, and nobody else decides what is set.
    for odd in ["/dev/zero", "/proc/kmsg"] {
        let out = longpole(&sandbox.path("store")).args(["config", "--config", odd]).output().unwrap();
        assert!(!out.status.success() && said(&out).contains(odd), "{}", said(&out));
    }
    std::fs::set_permissions(&again, std::fs::Permissions::from_mode(0o666)).unwrap();
    let out = longpole(&sandbox.path("store")).args(["config", "--config"]).arg(&again).output().unwrap();
    assert!(!out.status.success() && said(&out).contains("other users can write to it"), "{}", said(&out));
    // A setting that does not exist stops the server.
    std::fs::write(&file, "[serve]\nkep = '2d'\n").unwrap();
    let out = config(&["serve"]).output().unwrap();
    assert_eq!(out.status.code(), USAGE);
    assert!(said(&out).contains(&format!("{name}:2: no setting of serve is called kep")), "{}", said(&out));
}

#[test]
fn attach_takes_the_process_as_a_word() {
    let sandbox = Sandbox::new();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let out = longpole(&sandbox.path("store")).args(["attach", &pid, "-d", "0.2"]).output().unwrap();
    let neither = longpole(&sandbox.path("store")).args(["attach", "-d", "0.2"]).output().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(out.status.success(), "{}", said(&out));
    assert!(String::from_utf8_lossy(&out.stdout).contains(&format!("process {pid}")), "{out:?}");
    assert_eq!(neither.status.code(), USAGE, "{}", said(&neither));
}

#[test]
fn diff_wants_two_recordings() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for _ in 0..2 {
        assert!(longpole(&store).args(["run", "--summary", "none", "true"]).status().unwrap().success());
    }
    let out = longpole(&store).args(["diff", "r1"]).output().unwrap();
    assert_eq!(out.status.code(), USAGE, "{}", said(&out));
    assert!(said(&out).contains("<AFTER>"), "{}", said(&out));
    assert!(longpole(&store).args(["diff", "r1", "last"]).output().unwrap().status.success());
}

#[test]
fn the_answer_fits_the_terminal_and_explains_its_marks() {
    let sandbox = Sandbox::new();
    let mut run = longpole(&sandbox.path("store"));
    run.args(["run", "--color", "never", "--", "sh", "-c", "sleep 0.2; sh -c 'sleep 0.3' with a long list of arguments"]);
    let seen = String::from_utf8(on_a_terminal(run, Some(80))).unwrap();
    // A command to copy stays whole.
    let is_text = |line: &&str| !line.contains(" --store ");
    let too_long: Vec<&str> = seen.lines().filter(is_text).filter(|line| line.chars().count() > 80).collect();
    assert!(seen.contains("LONG POLES") && too_long.is_empty(), "{too_long:?}\n{seen}");
    let legend = "◇ dependencies are inferred";
    assert!(seen.contains(legend) && seen.contains("saves: how much sooner"), "{seen}");
    // A file stays as short as it can be.
    let out = longpole(&sandbox.path("store")).arg("show").output().unwrap();
    assert!(!String::from_utf8_lossy(&out.stdout).contains(legend));
}
