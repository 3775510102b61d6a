//! Story: after the run, a person opens the page, selects the first pole, reads its hot function, clicks it and sees its spans.
//! Guarantees: all of that works in a real browser, without a request to anywhere else and without an error on the console; who has
//! not the address that `open` printed is told nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Sandbox, example, longpole, skip};

/// `longpole open` on a store, until it is dropped.
struct Page {
    process: Child,
    url: String,
}

impl Page {
    fn open(store: &Path) -> Page {
        let mut process = longpole(store).args(["open", "last", "--no-browser"]).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(process.stdout.take().unwrap()).lines().next().expect("`open` prints its address").unwrap();
        let url =
            line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).unwrap_or_else(|| panic!("no address in {line:?}"));
        Page { url: url.to_owned(), process }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn the_pole_its_function_and_its_spans_in_a_real_browser() {
    let Some(chromium) = std::env::var_os("LONGPOLE_CHROMIUM") else {
        skip("the page in a real browser", "no LONGPOLE_CHROMIUM; `cargo xtask test` finds or installs one");
        return;
    };
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--summary", "none", "--"]).arg(example("deploy")).stdout(Stdio::null()).status().unwrap();
    assert!(run.success());
    let page = Page::open(&store);
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let told = Command::new("node")
        .arg("stories/find-the-long-pole.mjs")
        .arg(&page.url)
        .arg(sandbox.path("pictures"))
        .current_dir(web)
        .env("LONGPOLE_CHROMIUM", chromium)
        .output()
        .unwrap();
    assert!(told.status.success(), "{}{}", String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
}

#[test]
fn the_page_answers_only_to_its_own_address() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    assert!(longpole(&store).args(["run", "--summary", "none", "--", "true"]).status().unwrap().success());
    let page = Page::open(&store);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let (address, token) = page.url.split_once("?token=").expect("the address carries a token");
    let origin = address.split("/r/").next().expect("a split has a first part");
    let api = format!("{origin}/api/recordings");
    assert_eq!(agent.get(&api).call().unwrap().status(), 401);
    assert_eq!(agent.get(format!("{api}?token=0{}", &token[1..])).call().unwrap().status(), if token.starts_with('0') { 200 } else { 401 });
    assert_eq!(agent.get(format!("{api}?token={token}")).call().unwrap().status(), 200);
    assert_eq!(agent.get(format!("{api}?token={token}")).header("host", "evil.example").call().unwrap().status(), 403);
}
