//! Story: somebody puts `longpole run --` before a command that scripts, supervisors and people at a terminal rely on.
//! Guarantees: exit code, death by signal, signals, job control, descriptors and output are those of the command alone; with
//! a summary, its standard error is an exact prefix.
#![expect(unsafe_code, reason = "signals to processes that a story started, and what a careless parent leaves behind")]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::support::program::{self, DESCRIPTORS, ECHO, LISTEN, PATIENCE};
use crate::support::terminal::{self, CTRL_BACKSLASH, CTRL_C, CTRL_Z, Lines, Terminal};
use crate::support::{Sandbox, bounded, clean, is_root, json, longpole, skip};

/// How a command is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Without longpole.
    Alone,
    /// `longpole run --no-profile --summary none`
    Quiet,
    /// `longpole run`
    Default,
}

const WITH_LONGPOLE: [Way; 2] = [Way::Quiet, Way::Default];
const EVERY_WAY: [Way; 3] = [Way::Alone, Way::Quiet, Way::Default];

impl Way {
    fn command(self, sandbox: &Sandbox, argv: &[&str]) -> Command {
        let mut command = match self {
            Way::Alone => Command::new(argv[0]),
            Way::Quiet | Way::Default => longpole(&sandbox.path("store")),
        };
        match self {
            Way::Alone => command.args(&argv[1..]),
            Way::Quiet => command.args(["run", "--no-profile", "--summary", "none", "--"]).args(argv),
            Way::Default => command.args(["run", "--"]).args(argv),
        };
        clean(&mut command);
        command
    }
}

/// Runs the command in every way, each prepared by `prepare`, and compares; the answer is what it did alone.
#[track_caller]
fn the_same(argv: &[&str], prepare: impl Fn(&mut Command)) -> std::process::Output {
    let sandbox = Sandbox::new();
    let run = |way: Way| {
        let mut command = way.command(&sandbox, argv);
        prepare(&mut command);
        command.output().unwrap()
    };
    let alone = run(Way::Alone);
    for way in WITH_LONGPOLE {
        let with = run(way);
        let said = String::from_utf8_lossy(&with.stderr).into_owned();
        assert_eq!(how(with.status), how(alone.status), "{way:?} {argv:?}: {said}");
        assert!(with.stdout == alone.stdout, "{way:?} {argv:?}: standard output differs: {:?}", String::from_utf8_lossy(&with.stdout));
        match way {
            Way::Default => assert!(with.stderr.starts_with(&alone.stderr), "{way:?} {argv:?}: {said}"),
            _ => assert!(with.stderr == alone.stderr, "{way:?} {argv:?}: {said}"),
        }
    }
    alone
}

/// Code and signal; whether there is a core file is not compared, for at most one may exist.
fn how(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), status.signal())
}

#[test]
fn it_exits_with_the_code_of_the_command() {
    for code in ["0", "1", "2", "101", "125", "126", "127", "255"] {
        let alone = the_same(&["sh", "-c", &format!("echo out; echo err >&2; exit {code}")], |_| {});
        assert_eq!(alone.status.code().unwrap().to_string(), code);
    }
}

#[test]
fn it_dies_of_the_signal_that_the_command_died_of() {
    for signal in ["HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "TERM", "USR1", "XCPU", "FPE", "TRAP", "SYS"] {
        let alone = the_same(&["sh", "-c", &format!("echo out; kill -{signal} $$")], |_| {});
        assert!(alone.status.signal().is_some(), "{signal}");
    }
}

#[test]
fn a_shell_sees_the_same_status_and_at_most_one_core_file() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let mut command = way.command(&sandbox, &["sh", "-c", "ulimit -c 1000; kill -SEGV $$"]);
        let status = command.current_dir(sandbox.path("")).stderr(Stdio::null()).status().unwrap();
        assert!(way == Way::Alone || !status.core_dumped(), "{way:?}");
        let inner = way.command(&sandbox, &["sh", "-c", "kill -TERM $$"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\"; echo $?", "sh"]).arg(inner.get_program()).args(inner.get_args()).stderr(Stdio::null());
        assert_eq!(String::from_utf8(shell.output().unwrap().stdout).unwrap(), "143\n", "{way:?}");
    }
}

#[test]
fn a_command_that_cannot_start_has_the_exit_codes_of_env() {
    let sandbox = Sandbox::new();
    let file = |name: &str, text: &str, mode: u32| {
        let path = sandbox.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let not_executable = file("data", "exit 7", 0o644);
    let no_interpreter = file("lost", "#!/nonexistent/interpreter\n", 0o755);
    let below_a_file = format!("{not_executable}/x");
    let directory = sandbox.path("").to_str().unwrap().to_owned();
    for program in
        ["longpole-no-such-command", "./longpole-no-such-command", "", &not_executable, &directory, &no_interpreter, &below_a_file]
    {
        let env = Command::new("env").arg(program).output().unwrap();
        // env itself takes an empty name for nothing to do.
        let expected = if program.is_empty() { Some(127) } else { env.status.code() };
        for way in WITH_LONGPOLE {
            let with = way.command(&sandbox, &[program]).output().unwrap();
            assert_eq!(with.status.code(), expected, "{way:?} {program}");
            let said = String::from_utf8(with.stderr).unwrap();
            assert!(said.starts_with("longpole: ") && said.contains(program), "{way:?} {program}: {said}");
            assert!(with.stdout.is_empty());
        }
    }
    let script = file("script", "echo \"$0 $1\"; exit 7\n", 0o755);
    let run = |way: Way| way.command(&sandbox, &[&script, "a b"]).output().unwrap();
    let env = Command::new("env").args([&script, "a b"]).output().unwrap();
    for way in WITH_LONGPOLE {
        assert_eq!(
            (run(way).status.code(), run(way).stdout),
            (Some(7), env.stdout.clone()),
            "{way:?}: a text without #! goes to the shell"
        );
    }
}

#[test]
fn input_and_output_pass_byte_for_byte() {
    let sandbox = Sandbox::new();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 24) as u8
    })
    .take(8 << 20)
    .collect();
    let path = sandbox.path("bytes");
    std::fs::write(&path, &bytes).unwrap();
    let alone = the_same(&["cat"], |command| {
        command.stdin(std::fs::File::open(&path).unwrap());
    });
    assert!(alone.stdout == bytes);
    the_same(&["sh", "-c", "cat >&2; head -c 100000 \"$0\"", path.to_str().unwrap()], |command| {
        command.stdin(std::fs::File::open(&path).unwrap());
    });
    the_same(&["sh", "-c", "printf '%s|' \"$0\" \"$@\"", "a b", "", "*", "--", "-x", "ü"], |_| {});
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_usual() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let mut child = way.command(&sandbox, &["yes"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(Lines::new(child.stdout.take().unwrap()).next().as_deref(), Some("y"));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGPIPE), "{way:?}");
    }
}

#[test]
fn the_command_inherits_closed_and_extra_descriptors() {
    for closed in [&[][..], &[0], &[1], &[2], &[0, 1], &[0, 1, 2]] {
        let status = the_same(&[&program::me()], |command| {
            program::plays(command, DESCRIPTORS);
            // SAFETY: async-signal-safe calls only. Descriptor 5 stands for one that a caller hands down on purpose.
            unsafe {
                command.pre_exec(move || {
                    for descriptor in closed {
                        libc::close(*descriptor);
                    }
                    let root = libc::open(c"/".as_ptr(), libc::O_RDONLY);
                    if root != 5 {
                        libc::dup2(root, 5);
                        libc::close(root);
                    }
                    Ok(())
                });
            }
        })
        .status;
        let open = (0..3).filter(|descriptor| !closed.contains(descriptor)).map(|descriptor| 1 << descriptor).sum::<i32>();
        assert_eq!(status.code(), Some(open | 1 << 5), "{closed:?}");
    }
}

#[test]
fn the_command_inherits_masks_limits_and_groups() {
    // `grep` and `cat` ask for themselves; a shell would put the mask to its own liking first.
    let state = ["grep", "-E", "^(Sig(Pnd|Blk|Ign|Cgt)|ShdPnd|Umask|NoNewPrivs|Seccomp|CapEff)", "/proc/self/status"];
    let limits = ["cat", "/proc/self/limits"];
    // Process group, session, terminal and its foreground group; the command's name has no space.
    let groups = ["cut", "-d ", "-f5-8", "/proc/self/stat"];
    for question in [&state[..], &limits, &groups, &["nice"], &["pwd"]] {
        the_same(question, |_| {});
    }
    let careless = |command: &mut Command| {
        // SAFETY: async-signal-safe calls only. As under `nohup`, after `&` in a script, in a careless parent.
        unsafe {
            command.pre_exec(|| {
                for signal in
                    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGCHLD, libc::SIGTTOU, libc::SIGXFSZ, libc::SIGUSR2]
                {
                    libc::signal(signal, libc::SIG_IGN);
                }
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR1);
                libc::sigaddset(&mut set, libc::SIGTERM);
                libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
                let files = libc::rlimit { rlim_cur: 200, rlim_max: 300 };
                libc::setrlimit(libc::RLIMIT_NOFILE, &files);
                libc::umask(0o027);
                Ok(())
            });
        }
    };
    the_same(&limits, careless);
    let said = String::from_utf8(the_same(&state, careless).stdout).unwrap();
    assert!(said.contains("SigBlk:\t0000000000004200"), "the story tests nothing: {said}");
}

#[test]
fn nohup_keeps_its_promise() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let inner = way.command(&sandbox, &["sh", "-c", "kill -HUP $$; echo ready; read -r line; exit 4"]);
        let mut nohup = Command::new("nohup");
        nohup.arg(inner.get_program()).args(inner.get_args()).process_group(0);
        let mut child = nohup.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = Lines::new(child.stdout.take().unwrap());
        assert_eq!(lines.expect(), "ready", "{way:?}");
        send(child.id() as i32, libc::SIGHUP);
        send(-(child.id() as i32), libc::SIGHUP);
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(4), "{way:?}");
    }
}

#[test]
fn env_inject_none_leaves_the_environment_unchanged() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| {
        let mut command = if arguments.is_empty() { Command::new("env") } else { longpole(&sandbox.path("store")) };
        if !arguments.is_empty() {
            command.args(["run", "--no-profile", "--summary", "none"]).args(arguments).args(["--", "env"]);
        }
        clean(&mut command);
        command.env("OTEL_TRACES_EXPORTER", "none").env("TRACEPARENT", "kept");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let alone = run(&[]);
    assert_eq!(run(&["--env-inject", "none"]), alone);
    let with = run(&["--env-inject", "auto"]);
    let kept = |line: &&str| !line.starts_with("TRACEPARENT=");
    let missing: Vec<_> = alone.lines().filter(kept).filter(|line| !with.lines().any(|other| other == *line)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(with.contains("\nOTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:"), "{with}");
}

/// `run` writes a summary and copies of spans where nobody looks: in a folder that others can write to, they may have put a link there.
#[test]
fn output_never_follows_links_of_other_users() {
    let sandbox = Sandbox::new();
    let shared = sandbox.path("shared");
    std::fs::create_dir(&shared).unwrap();
    // Without the sticky bit, where the kernel itself does not refuse to follow.
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o777)).unwrap();
    let (precious, link, pipe, plain) = (sandbox.path("precious"), shared.join("link"), shared.join("pipe"), shared.join("plain"));
    std::fs::write(&precious, "kept").unwrap();
    symlink(&precious, &link).unwrap();
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().unwrap().success());
    let run = |path: &Path| {
        let copies = format!("file:{}", path.display());
        [&["--summary", path.to_str().unwrap()][..], &["--otel-traces", &copies], &["--tracing", &copies]].map(|words| {
            let mut command = bounded(&sandbox.path("store"));
            let out = command.args(["run", "--no-profile"]).args(words).args(["--", "sh", "-c", "exit 7"]).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(out.status.code(), Some(7), "{words:?}: {said}");
            said
        })
    };
    let mut expected = vec!["in a directory where other users can replace it"];
    if is_root() {
        expected.insert(0, "of another user (uid 65534)");
        for path in [&link, &pipe] {
            std::os::unix::fs::lchown(path, Some(65_534), Some(65_534)).unwrap();
        }
    }
    for why in expected {
        for (path, what) in [(&link, "a link"), (&pipe, "a pipe or a device")] {
            for said in run(path) {
                assert!(said.contains(&format!("it is {what} {why}")), "{said}");
            }
        }
        if is_root() {
            for path in [&link, &pipe] {
                std::os::unix::fs::lchown(path, Some(0), Some(0)).unwrap();
            }
        }
    }
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    // Existing files are written, and so are targets of our own links in our own directories.
    for path in [&plain, &sandbox.path("own")] {
        if path != &plain {
            symlink(&precious, path).unwrap();
        }
        run(path);
        assert_ne!(std::fs::read(path).unwrap(), b"kept");
    }
}

#[test]
fn longpole_does_not_change_the_stack_size_of_the_command() {
    for bytes in ["1", "32768"] {
        let alone = the_same(&["sh", "-c", "echo $RUST_MIN_STACK; exit 7"], |command| _ = command.env("RUST_MIN_STACK", bytes));
        assert_eq!((alone.status.code(), &alone.stdout[..]), (Some(7), format!("{bytes}\n").as_bytes()));
    }
}

#[test]
fn unreadable_certificates_do_not_stop_the_command() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.path(name).display().to_string();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    std::fs::create_dir(at("folder")).unwrap();
    std::fs::File::create(at("large")).unwrap().set_len(1 << 40).unwrap();
    for path in [at("pipe"), at("folder"), at("large"), "/dev/zero".to_owned()] {
        for words in
            [&["run", "--no-profile", "--otel-traces", "https://127.0.0.1:1", "--"][..], &["run", "--no-profile", "--"], &["exec", "--"]]
        {
            let mut command = bounded(&sandbox.path("store"));
            command.args(words).args(["sh", "-c", "exit 7"]);
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1").env("OTEL_EXPORTER_OTLP_CERTIFICATE", &path);
            let out = command.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(out.status.code(), Some(7), "{path} {words:?}: {said}");
            assert!(words[0] == "exec" || said.contains("failed to read /"), "{path} {words:?}: {said}");
        }
    }
}

/// What a run needs before it can start its command may take long: here a catalog that another process holds.
#[test]
fn it_can_be_stopped_before_the_command_starts() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    assert!(longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]).status().unwrap().success());
    let catalog = std::fs::OpenOptions::new().read(true).write(true).open(store.join("catalog.sqlite")).unwrap();
    // The bytes of SQLite's locks, from PENDING_BYTE.
    let lock = libc::flock { l_type: libc::F_WRLCK as _, l_whence: 0, l_start: 0x4000_0000, l_len: 512, l_pid: 0 };
    // SAFETY: the descriptor is open and the lock is a valid one.
    assert_eq!(unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&catalog), libc::F_SETLK, &lock) }, 0);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let started = sandbox.path("started");
        let mut command = Way::Default.command(&sandbox, &["touch", started.to_str().unwrap()]);
        // SAFETY: async-signal-safe calls only. Whoever runs the stories may ignore it.
        unsafe {
            command.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let status = std::path::PathBuf::from(format!("/proc/{}/status", child.id()));
        let catches_usr1 = |status: &str| {
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (libc::SIGUSR1 - 1) != 0
        };
        while !catches_usr1(&std::fs::read_to_string(&status).unwrap()) {
            assert!(child.try_wait().unwrap().is_none(), "it did not wait for the catalog");
            std::thread::yield_now();
        }
        send(child.id() as i32, signal);
        let out = child.wait_with_output().unwrap();
        // It did not go on to say that nothing is recorded, and to hand the signal on.
        assert_eq!((out.status.signal(), String::from_utf8_lossy(&out.stderr).as_ref()), (Some(signal), ""));
        assert!(!started.exists());
    }
    drop(catalog);
}

/// A program that says which signals it hears.
struct Listener {
    child: Child,
    lines: Lines,
    /// Its own process id.
    pid: i32,
}

impl Listener {
    fn start(way: Way, sandbox: &Sandbox, prepare: impl Fn(&mut Command)) -> Self {
        let me = program::me();
        let mut command = way.command(sandbox, &[&me]);
        program::plays(&mut command, LISTEN);
        // In a group of its own, so that the story can speak to the group.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = Lines::new(child.stdout.take().unwrap());
        let pid = lines.expect().strip_prefix("ready ").unwrap().parse().unwrap();
        Listener { child, lines, pid }
    }

    /// The process that a supervisor knows: longpole, or the program alone.
    fn known(&self) -> i32 {
        self.child.id() as i32
    }

    /// Everything heard until the end, which this requests from the known process.
    fn finish(mut self) -> (Vec<String>, ExitStatus) {
        send(self.known(), libc::SIGUSR2);
        let heard = std::iter::from_fn(|| self.lines.next()).collect();
        let status = self.child.wait().unwrap();
        (heard, status)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // A story that failed leaves nobody behind; after `finish` the child is reaped.
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            send(-self.known(), libc::SIGKILL);
            self.child.wait().ok();
        }
    }
}

#[test]
fn variables_before_the_command_are_set_as_in_a_shell() {
    let sandbox = Sandbox::new();
    let say = |words: &[&str]| {
        let mut command = longpole(&sandbox.path("store"));
        command.args(["record", "--no-profile", "--summary", "none", "--"]).args(words).env("GREETING", "before");
        clean(&mut command);
        let out = command.output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    assert_eq!(
        say(&["GREETING=a=b", "EMPTY=", "sh", "-c", "echo \"$GREETING,${EMPTY-unset},$1\"", "sh", "X=1"]),
        (Some(0), "a=b,,X=1\n".to_owned())
    );
    assert_eq!(say(&["9=1", "sh"]).0, Some(127), "no name of a variable, so the command");
    assert_eq!(say(&["GREETING=1"]).0, Some(127), "the last word is the command");
}

fn send(pid: i32, signal: i32) {
    // SAFETY: to a process, or group, that this story started and has not reaped.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "signal {signal} to {pid}");
}

#[test]
fn a_signal_sent_to_longpole_reaches_the_command_once() {
    let sandbox = Sandbox::new();
    let expected: Vec<&str> = program::SIGNALS.iter().map(|(name, _)| *name).collect();
    for way in EVERY_WAY {
        let mut listener = Listener::start(way, &sandbox, |_| {});
        for (name, signal) in program::SIGNALS {
            if signal != libc::SIGUSR2 {
                send(listener.known(), signal);
                assert_eq!(listener.lines.expect(), name, "{way:?}");
            }
        }
        let queued = libc::sigval { sival_ptr: 4711 as *mut libc::c_void };
        // SAFETY: to a process that this story started and has not reaped.
        unsafe { libc::sigqueue(listener.known(), libc::SIGRTMIN() + 3, queued) };
        assert_eq!(listener.lines.expect(), "RTMIN+3 4711", "{way:?}");
        let (rest, status) = listener.finish();
        assert_eq!((rest, status.code()), (vec![(*expected.last().unwrap()).to_owned()], Some(5)), "{way:?}");
    }
}

#[test]
fn a_signal_sent_to_the_group_reaches_the_command_once() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let mut listener = Listener::start(way, &sandbox, |_| {});
        for (name, signal) in program::SIGNALS {
            if signal != libc::SIGUSR2 {
                // Twice, each waited for: the second is not mistaken for the first.
                for _ in 0..2 {
                    send(-listener.known(), signal);
                    assert_eq!(listener.lines.expect(), name, "{way:?}");
                }
                // Sent to longpole alone behind it: what came before has been dealt with when this is heard.
                send(listener.known(), libc::SIGRTMIN() + 3);
                assert_eq!(listener.lines.expect(), "RTMIN+3", "{way:?}: {name} came more often than it was sent");
            }
        }
        let (rest, status) = listener.finish();
        assert_eq!((rest, status.code()), (vec!["USR2".to_owned()], Some(5)), "{way:?}");
    }
}

#[test]
fn a_group_signal_from_the_command_does_not_come_back() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let mut listener = Listener::start(way, &sandbox, |command| {
            command.env(ECHO, "1");
        });
        send(listener.known(), libc::SIGUSR1);
        assert_eq!((listener.lines.expect(), listener.lines.expect()), ("USR1".to_owned(), "USR1".to_owned()), "{way:?}");
        send(listener.known(), libc::SIGWINCH);
        assert_eq!(listener.lines.expect(), "WINCH", "{way:?}");
        assert_eq!(listener.finish().0, ["USR2"], "{way:?}");
    }
}

#[test]
fn a_timer_set_before_reaches_the_command() {
    the_same(&["sleep", "600"], |command| {
        // SAFETY: async-signal-safe calls only.
        unsafe {
            command.pre_exec(|| {
                let soon = libc::itimerval { it_interval: std::mem::zeroed(), it_value: libc::timeval { tv_sec: 0, tv_usec: 20_000 } };
                libc::setitimer(libc::ITIMER_REAL, &soon, std::ptr::null_mut());
                Ok(())
            });
        }
    });
}

/// Waits until the child stops or ends.
fn wait_stopped(child: &Child) -> i32 {
    let mut status = 0;
    // SAFETY: the child has not been reaped; a stop does not reap it.
    assert_eq!(unsafe { libc::waitpid(child.id() as i32, &mut status, libc::WUNTRACED) }, child.id() as i32);
    assert!(libc::WIFSTOPPED(status), "it ended: {status}");
    libc::WSTOPSIG(status)
}

#[test]
fn it_stops_and_continues_with_the_command() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let mut listener = Listener::start(way, &sandbox, |_| {});
        let (known, pid) = (listener.known(), listener.pid);
        // The command stops; whoever waits for us sees us stopped, and continues us or the group.
        for (stopped, signal) in
            [(pid, libc::SIGSTOP), (known, libc::SIGTSTP), (pid, libc::SIGTSTP), (-known, libc::SIGTSTP), (-known, libc::SIGSTOP)]
        {
            for continued in [known, -known] {
                send(stopped, signal);
                assert_eq!(wait_stopped(&listener.child), signal, "{way:?}: {signal} to {}", if stopped < 0 { "the group" } else { "one" });
                // A group that was stopped is only whole again when it is continued as one.
                send(if signal == libc::SIGSTOP && stopped < 0 { -known } else { continued }, libc::SIGCONT);
                assert_eq!(listener.lines.expect(), "CONT", "{way:?}");
                send(known, libc::SIGRTMIN() + 3);
                assert_eq!(listener.lines.expect(), "RTMIN+3", "{way:?}: it was continued more than once");
            }
        }
        let (rest, status) = listener.finish();
        assert_eq!((rest, status.code()), (vec!["USR2".to_owned()], Some(5)), "{way:?}");
    }
}

#[test]
fn keys_at_the_terminal_reach_the_command_once() {
    let sandbox = Sandbox::new();
    let me = program::me();
    for way in EVERY_WAY {
        let mut terminal = Terminal::start(&way.command(&sandbox, &[&me]), LISTEN, false);
        assert!(terminal.output.expect().starts_with("ready "));
        for (key, name) in [(CTRL_C, "INT"), (CTRL_C, "INT"), (CTRL_BACKSLASH, "QUIT"), (CTRL_C, "INT")] {
            terminal.press(&[key]);
            assert_eq!(terminal.output.expect(), name, "{way:?}");
        }
        // Each stop comes while the one before is still being ended, and must not be lost in that.
        for order in [[b'f'; 1_000].as_slice(), b"c"].concat() {
            terminal.press(&[CTRL_Z]);
            assert_eq!(terminal.report(), format!("stopped {}", libc::SIGTSTP), "{way:?}");
            terminal.order(order);
            assert_eq!(terminal.output.expect(), "CONT", "{way:?}");
        }
        send(terminal.job, libc::SIGUSR2);
        assert_eq!((terminal.output.expect(), terminal.report()), ("USR2".to_owned(), "exited 5".to_owned()), "{way:?}");
        assert_eq!(terminal.output.next(), None, "{way:?}");
    }
}

#[test]
fn ctrl_c_kills_a_command_without_handler_and_longpole() {
    let sandbox = Sandbox::new();
    let me = program::me();
    for way in EVERY_WAY {
        for (key, signal) in [(CTRL_C, libc::SIGINT), (CTRL_BACKSLASH, libc::SIGQUIT)] {
            let mut terminal = Terminal::start(&way.command(&sandbox, &["sh", "-c", "echo ready; exec sleep 600"]), "", false);
            assert_eq!(terminal.output.expect(), "ready");
            terminal.press(&[key]);
            assert_eq!(terminal.report(), format!("killed {signal}"), "{way:?}");
        }
        // Handled by the command, which lives on; the second time it leaves in its own way.
        let mut command = way.command(&sandbox, &[&me]);
        let mut terminal = Terminal::start(command.env(PATIENCE, "2"), LISTEN, false);
        assert!(terminal.output.expect().starts_with("ready "));
        terminal.press(&[CTRL_C]);
        assert_eq!(terminal.output.expect(), "INT", "{way:?}");
        terminal.press(&[CTRL_C]);
        assert_eq!((terminal.output.expect(), terminal.report()), ("INT".to_owned(), "exited 42".to_owned()), "{way:?}");
        assert_eq!(terminal.output.next(), None, "{way:?}");
    }
}

#[test]
fn ctrl_c_after_the_command_skips_the_answer_and_keeps_the_recording() {
    let sandbox = Sandbox::new();
    if !Command::new("bash").arg("-c").arg("true").status().is_ok_and(|status| status.success()) {
        return skip("Ctrl-C while the answer is made", "there is no bash, whose /dev/tcp makes the connection that is waited for");
    }
    let fifo = sandbox.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // A descendant that is in the middle of a request, and never done with it, makes the time after the command long.
    let holder = "exec 3<>/dev/tcp/127.0.0.1/$1; printf 'POST /v1/traces HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: \
                  application/x-protobuf\\r\\nContent-Length: 4000000\\r\\n\\r\\n' >&3; echo held >\"$2\"; while printf x >&3; do :; done";
    let script = format!(
        "setsid bash -c '{}' - \"${{OTEL_EXPORTER_OTLP_ENDPOINT##*:}}\" \"$0\" >/dev/null 2>&1 & read -r held <\"$0\"; echo $$",
        holder.replace('\'', "'\\''")
    );
    let command = Way::Default.command(&sandbox, &["bash", "-c", &script, fifo.to_str().unwrap()]);
    let mut terminal = Terminal::start(&command, "", false);
    let child = terminal.output.expect();
    while Path::new("/proc").join(&child).exists() {
        std::thread::yield_now();
    }
    terminal.press(&[CTRL_C]);
    assert_eq!(terminal.report(), "exited 0", "the command ended well, and nothing changes that");

    let store = sandbox.path("store");
    let state = || json(longpole(&store).args(["ls", "--format", "json"]))["recordings"][0].clone();
    assert!(state()["answer"].is_null(), "the answer was made although it was interrupted: {}", state());
    let shown = json(longpole(&store).args(["show", "last", "--format", "json"]));
    assert_eq!(shown["exit"]["code"], 0, "what was recorded goes on from there: {shown}");
}

#[test]
fn in_the_background_it_stops_when_the_command_reads() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        let mut terminal = Terminal::start(&way.command(&sandbox, &["head", "-n1"]), "", true);
        assert_eq!(terminal.report(), format!("stopped {}", libc::SIGTTIN), "{way:?}");
        terminal.order(b'b');
        assert_eq!(terminal.report(), format!("stopped {}", libc::SIGTTIN), "{way:?}: still in the background");
        terminal.order(b'f');
        terminal.press(b"hello\n");
        assert_eq!((terminal.output.expect(), terminal.report()), ("hello".to_owned(), "exited 0".to_owned()), "{way:?}");
    }
}

#[test]
fn a_terminal_that_goes_away_hangs_up_once() {
    let sandbox = Sandbox::new();
    let me = program::me();
    for way in EVERY_WAY {
        // As the leader of the session: `xterm -e longpole run`, `ssh -t host longpole run`.
        let (master, slave) = terminal::pseudo_terminal();
        let mut command = way.command(&sandbox, &[&me]);
        program::plays(&mut command, LISTEN);
        terminal::lead_session_on(&mut command, &slave);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The command keeps a copy of the terminal for its child's stdin.
        drop((command, slave));
        let mut lines = Lines::new(child.stdout.take().unwrap());
        assert!(lines.expect().starts_with("ready "));
        drop::<OwnedFd>(master);
        let mut heard = [lines.expect(), lines.expect()];
        heard.sort();
        assert_eq!(heard, ["CONT", "HUP"], "{way:?}");
        send(child.id() as i32, libc::SIGUSR2);
        assert_eq!((lines.expect(), lines.next()), ("USR2".to_owned(), None), "{way:?}");
        assert_eq!(child.wait().unwrap().code(), Some(5), "{way:?}");
    }
}

#[test]
fn it_does_not_wait_for_descendants_of_the_command() {
    let sandbox = Sandbox::new();
    for way in EVERY_WAY {
        // The descendant, in a session of its own, says who it is, and lives until its input ends.
        let script =
            "setsid sh -c 'echo $$ >&3; read -r line; echo $line >&3' </dev/stdin >/dev/null 2>&1 & read -r ready < \"$0\"; exit 3";
        let (input, mut hold) = std::io::pipe().unwrap();
        let (said, said_write) = std::io::pipe().unwrap();
        let fifo = sandbox.path("fifo");
        std::fs::remove_file(&fifo).ok();
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // An asynchronous command of a shell without job control reads from /dev/null, so it gets its input as 4.
        let script = script.replace("</dev/stdin", "<&4");
        let (input_number, said_number) = (std::os::fd::AsRawFd::as_raw_fd(&input), std::os::fd::AsRawFd::as_raw_fd(&said_write));
        let mut command = way.command(&sandbox, &["sh", "-c", &script, fifo.to_str().unwrap()]);
        // SAFETY: async-signal-safe calls only.
        unsafe {
            command.pre_exec(move || {
                let (input, said) = (libc::fcntl(input_number, libc::F_DUPFD, 10), libc::fcntl(said_number, libc::F_DUPFD, 10));
                libc::dup2(said, 3);
                libc::dup2(input, 4);
                libc::close(said);
                libc::close(input);
                Ok(())
            });
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        drop((command, input, said_write));
        let mut said = Lines::new(said);
        let descendant: i32 = said.expect().parse().unwrap();
        std::fs::write(&fifo, "go\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{way:?}");
        // It lives, and still can do its work.
        send(descendant, 0);
        hold.write_all(b"alive\n").unwrap();
        assert_eq!((said.expect(), said.next()), ("alive".to_owned(), None), "{way:?}");
    }
}

#[test]
fn as_pid_1_it_forwards_signals_and_reaps_orphans() {
    let sandbox = Sandbox::new();
    let unshare = |way: Way, argv: &[&str]| {
        let inner = way.command(&sandbox, argv);
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"])
            .arg(inner.get_program())
            .args(inner.get_args());
        clean(&mut command);
        command
    };
    if !unshare(Way::Alone, &["true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skip("longpole as PID 1", "unshare cannot make a PID namespace here");
    }
    for way in WITH_LONGPOLE {
        let code = |script: &str| unshare(way, &["sh", "-c", script]).stderr(Stdio::null()).status().unwrap().code();
        assert_eq!(code("exit 7"), Some(7), "{way:?}");
        assert_eq!(code("kill -TERM $$"), Some(128 + libc::SIGTERM), "{way:?}: no signal kills PID 1, so the code says it");
        // `docker stop` sends to PID 1, the command's parent; the command, which has no handler, ends.
        assert_eq!(code("sh -c 'kill -TERM 1'; exec sleep 600"), Some(128 + libc::SIGTERM), "{way:?}");
        // An orphan of a parent that is gone: it is ours now, and must not stay a zombie.
        let orphan = "pid=$(sh -c 'sleep 0 & echo $!'); while [ -e /proc/$pid ]; do :; done; exit 6";
        assert_eq!(code(orphan), Some(6), "{way:?}");
    }
}

#[test]
fn the_summary_follows_the_standard_error_of_the_command() {
    let sandbox = Sandbox::new();
    let mut child = Way::Default.command(&sandbox, &["sh", "-c", "echo first >&2; read -r line; echo last >&2"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = Lines::new(child.stderr.take().unwrap());
    assert_eq!(lines.expect(), "first");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(lines.expect(), "last", "something was printed while the command lived");
    assert_eq!(lines.expect(), "", "a line between what was the command's and what is not");
    let summary = lines.expect();
    assert!(summary.starts_with("longpole "), "{summary}");
    let mut stdout = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    assert!(stdout.is_empty());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(Path::new(&sandbox.path("store")).exists());
}
