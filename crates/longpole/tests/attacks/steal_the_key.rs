//! Line 6: another user reads the key of the page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::another_user;
use crate::send_spans_of_others::{as_third_user, home_of, makes_namespaces};
use crate::support::{PlainUser, Sandbox, longpole};

/// `longpole open` that starts a browser, which writes down its arguments and does nothing.
struct Opened {
    process: Child,
    /// What was printed, up to the address and with it.
    printed: String,
    /// What the browser was started with.
    argument: String,
}

impl Opened {
    fn new(sandbox: &Sandbox) -> Self {
        let (store, bin, seen) = (sandbox.path("store"), sandbox.path("browser"), sandbox.path("seen"));
        assert!(longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]).status().unwrap().success());
        std::fs::create_dir_all(&bin).unwrap();
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >'{0}.part' && mv '{0}.part' '{0}'\n", seen.display());
        std::fs::write(bin.join("xdg-open"), script).unwrap();
        std::fs::set_permissions(bin.join("xdg-open"), PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut process =
            longpole(&store).args(["open", "last"]).env("PATH", path).env("DISPLAY", ":7").stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut printed).unwrap();
        while !seen.exists() {
            assert_eq!(process.try_wait().unwrap(), None, "the page is there");
            std::thread::yield_now();
        }
        let argument = std::fs::read_to_string(seen).unwrap();
        Opened { process, printed, argument }
    }

    /// `http://127.0.0.1:PORT/PATH?QUERY` of the browser's argument, in parts: the address to connect to, and what to ask it for.
    fn parts(&self) -> (&str, &str) {
        let rest = self.argument.trim().strip_prefix("http://").expect("an address of the page");
        rest.split_at(rest.find('/').unwrap())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Asks the page for an address, with more headers, and gives its answer.
fn get(address: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\n{headers}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let line = answer.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {answer}"));
    line.trim_start_matches(": ")
}

#[test]
fn the_url_of_the_browser_works_once() {
    let sandbox = Sandbox::new();
    let opened = Opened::new(&sandbox);
    let token = opened.printed.split_once("token=").expect("the address of the page").1.split_whitespace().next().unwrap();
    assert_eq!(token.len(), 32);
    assert!(!opened.argument.contains(token), "every user of this machine could read it: {}", opened.argument);

    // The browser gets in, with an address that holds nothing secret and stays in its history.
    let (address, path) = opened.parts();
    let first = get(address, path, "");
    assert_eq!(status(&first), "303", "{first}");
    assert_eq!(header(&first, "location"), "/r/r1");
    let cookie = header(&first, "set-cookie").split(';').next().unwrap();
    assert!(status(&get(address, "/r/r1", &format!("Cookie: {cookie}\r\n"))) == "200");
    // It reloads the tab with the old address; nobody else can use that.
    assert_eq!(status(&get(address, path, &format!("Cookie: {cookie}\r\n"))), "303");
    let second = get(address, path, "");
    assert_eq!(status(&second), "401", "{second}");
    assert!(second.contains("works once") && !second.contains("set-cookie"), "{second}");
    // What was printed holds as long as the page.
    assert_eq!(status(&get(address, &format!("/r/r1?token={token}"), "")), "200");
    // The key is kept nowhere, and the token where only its user can read it.
    let key = path.split_once("once=").unwrap().1;
    let files_with = |secret: &str| {
        let found = Command::new("grep").arg("-rlaF").arg(secret).arg(sandbox.path("store")).output().unwrap();
        String::from_utf8_lossy(&found.stdout).trim_end().to_owned()
    };
    assert_eq!(files_with(key), "");
    let kept = files_with(token);
    assert!(kept.ends_with("/cache/page-token") && !kept.contains('\n'), "{kept}");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(kept).unwrap().permissions()) & 0o777, 0o600);
}

#[test]
fn another_user_cannot_use_the_url_of_the_browser() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "another_user_cannot_use_the_url_of_the_browser") else { return };
    let opened = Opened::new(&sandbox);
    let (address, path) = opened.parts();
    // Faster than the browser.
    let script = format!(
        "exec 3<>/dev/tcp/{}; printf 'GET {path} HTTP/1.1\\r\\nHost: {address}\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3",
        address.replace(':', "/")
    );
    let stolen = user.command(Path::new("bash")).args(["-c", &script]).output().unwrap();
    let stolen = String::from_utf8_lossy(&stolen.stdout);
    assert!(stolen.starts_with("HTTP/1.1 403 ") && stolen.contains("forbidden_user"), "{stolen}");
    assert!(!stolen.contains("set-cookie"), "{stolen}");
    assert_eq!(status(&get(address, path, "")), "303", "the browser can still use it");
    drop(opened);
}

/// What another user gets from the page for this request, by a shell that is as fast as any browser.
fn asked_by(user: &PlainUser, address: &str, path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\\r\\nHost: {address}\\r\\n{headers}Connection: close\\r\\n\\r\\n");
    let script = format!("exec 3<>/dev/tcp/{}; printf '{request}' >&3; cat <&3", address.replace(':', "/"));
    let answer = user.command(Path::new("bash")).args(["-c", &script]).output().unwrap();
    String::from_utf8_lossy(&answer.stdout).into_owned()
}

/// The token in what was printed.
fn token(opened: &Opened) -> &str {
    opened.printed.split_once("token=").expect("the address of the page").1.split_whitespace().next().unwrap()
}

#[test]
fn another_user_cannot_use_a_leaked_cookie() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "another_user_cannot_use_a_leaked_cookie") else { return };
    let opened = Opened::new(&sandbox);
    let (address, _) = opened.parts();
    let (port, token) = (address.rsplit(':').next().unwrap(), token(&opened));
    // Browsers send the cookie to every port of 127.0.0.1: the server of another user needs only to be visited.
    let cookie = format!("Cookie: longpole_{port}={token}");
    for (path, headers) in [
        ("/api/recordings", format!("{cookie}\\r\\n")),
        ("/r/r1?once=x", format!("{cookie}\\r\\n")),
        (&format!("/api/recordings?token={token}"), String::new()),
    ] {
        let stolen = asked_by(&user, address, path, &headers);
        assert!(stolen.starts_with("HTTP/1.1 403 ") && stolen.contains("forbidden_user"), "{stolen}");
        assert!(!stolen.contains("set-cookie") && !stolen.contains("recordings\":"), "{stolen}");
    }
    assert_eq!(status(&get(address, "/api/recordings", &format!("{cookie}\r\n"))), "200", "our own browser is served");
}

#[test]
fn root_may_forward_the_page_to_a_user() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "root_may_forward_the_page_to_a_user") else { return };
    let home = sandbox.path("home");
    std::fs::create_dir(&home).unwrap();
    assert!(Command::new("chown").arg("65534:65534").arg(&home).status().unwrap().success());
    let store = home.join("store");
    assert!(user.with_store(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]).status().unwrap().success());
    let mut process = user.with_store(&store).args(["open", "--no-browser", "last"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut printed).unwrap();
    let opened = Opened { process, argument: printed.split_whitespace().last().unwrap().to_owned(), printed };
    let (address, path) = opened.parts();
    // sshd makes connections as root or as the user.
    assert_eq!(status(&get(address, path, "")), "200");
    assert!(asked_by(&user, address, path, "").starts_with("HTTP/1.1 200 "));
}

#[test]
fn another_user_cannot_stop_the_page() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "another_user_cannot_stop_the_page") else { return };
    let opened = Opened::new(&sandbox);
    let (address, _) = opened.parts();
    let pid = opened.process.id();
    let threads = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap().trim().parse::<u32>().unwrap()
    };
    let path = format!("/api/recordings?token={}", token(&opened));
    assert_eq!(status(&get(address, &path, "")), "200");
    let before = threads();
    // 200 connections with 100 requests each, held open until standard input ends.
    let script = format!(
        "r=; for i in {{1..100}}; do r+='GET /?once=x HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'; done; trap '' PIPE
         for i in {{1..200}}; do {{ exec {{fd}}<>/dev/tcp/{}; printf \"$r\" >&$fd; }} 2>/dev/null; done; echo held; read",
        address.replace(':', "/")
    );
    let mut flood = user.command(Path::new("bash")).args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut held = String::new();
    BufReader::new(flood.stdout.take().unwrap()).read_line(&mut held).unwrap();
    let during = threads();
    let answer = get(address, &path, "");
    drop(flood.stdin.take());
    flood.wait().unwrap();
    assert_eq!((held.as_str(), status(&answer)), ("held\n", "200"));
    assert!(during < before + 20, "{before} threads, then {during}");
}

#[test]
fn the_one_time_key_redirects_to_no_other_host() {
    let sandbox = Sandbox::new();
    let opened = Opened::new(&sandbox);
    let (address, _) = opened.parts();
    let cookie = format!("Cookie: longpole_{}={}\r\n", address.rsplit(':').next().unwrap(), token(&opened));
    let answer = get(address, "//evil.example/x?once=1", &cookie);
    assert_eq!((status(&answer), header(&answer, "location")), ("303", "/evil.example/x"));
}

fn catches_sigterm(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (15 - 1) != 0)
}

#[test]
fn the_page_warns_if_it_cannot_distinguish_users() {
    let sandbox = Sandbox::new();
    let story = "the_page_warns_if_it_cannot_distinguish_users";
    let Some(user) = another_user(&sandbox, story) else { return };
    if !makes_namespaces(&user, story) {
        return;
    }
    let home = home_of(&sandbox);
    let store = home.join("store");
    let inside = |store: &Path| {
        let mut command = user.command(Path::new("unshare"));
        command.arg("-U").arg(user.longpole()).arg("--store").arg(store);
        command
    };
    assert!(inside(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]).status().unwrap().success());
    for (command, warns) in [(inside(&store), true), (user.with_store(&store), false)] {
        let mut command = command;
        let open = command.args(["open", "--no-browser", "last"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = open.spawn().unwrap();
        let mut printed = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut printed).unwrap();
        assert!(printed.contains("token="), "{printed}");
        // It warns before it waits for its end, and catches this signal since then.
        while !catches_sigterm(process.id()) {
            assert_eq!(process.try_wait().unwrap(), None, "the page is there");
            std::thread::yield_now();
        }
        assert!(Command::new("kill").arg(process.id().to_string()).status().unwrap().success());
        let out = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(said.contains("the kernel does not report who owns a connection"), warns, "{said}");
    }

    // A store of somebody else who has our number there: what stands in it decides what is opened and removed.
    let theirs = sandbox.path("theirs");
    let make = ["run", "--no-profile", "--summary", "none", "--", "true"];
    assert!(as_third_user(&user.longpole()).arg("--store").arg(&theirs).args(make).current_dir("/").status().unwrap().success());
    assert!(Command::new("chmod").args(["-R", "go+rX"]).arg(&theirs).status().unwrap().success());
    let out = inside(&theirs).args(["show", "last"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("a user who is not mapped in this user namespace"), "{said}");
}
