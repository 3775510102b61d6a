//! The two pictures of the README, from a real run of the example: the answer in the terminal (SVG), the page (PNG).

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::{run, run_in};
use crate::paths::{root, target_dir};
use crate::{need, web};

/// Where longpole keeps its recordings.
const STORE: &str = "LONGPOLE_STORE";

/// Records the example and writes `docs/pictures/terminal.svg` and `docs/pictures/page.png`.
pub(crate) fn pictures() -> Result<()> {
    web::build()?;
    // The build of the demo: a newcomer sees the same.
    run("cargo", &["build", "--profile", "demo", "--no-default-features", "-p", "longpole", "-p", "deploy-example"])?;
    let (longpole, deploy) = (target_dir().join("demo/longpole"), target_dir().join("demo/deploy"));
    let store = target_dir().join("pictures-store");
    if store.exists() {
        std::fs::remove_dir_all(&store).context("failed to empty the pictures' store")?;
    }
    let pictures = root().join("docs/pictures");
    std::fs::create_dir_all(&pictures).context("failed to make docs/pictures")?;
    // A reader would type the bare name, so the folder of the build goes on the path.
    let path = format!("{}:{}", target_dir().join("demo").display(), std::env::var("PATH").unwrap_or_default());
    let recorded = Command::new(&longpole)
        .args(["--color", "always", "run", "--", "deploy"])
        .env("PATH", &path)
        // An option would be part of each command that the answer suggests.
        .env(STORE, &store)
        .output()
        .with_context(|| format!("failed to start {}", longpole.display()))?;
    anyhow::ensure!(recorded.status.success(), "{} under longpole ended with {}", deploy.display(), recorded.status);
    let text = String::from_utf8_lossy(&recorded.stderr);
    let answer = text.find("\u{1b}[1mlongpole").map_or(text.as_ref(), |at| &text[at..]);
    std::fs::write(pictures.join("terminal.svg"), terminal_svg("longpole run -- deploy", answer))
        .context("failed to write the terminal picture")?;
    page(&longpole, &store, &pictures)
}

fn page(longpole: &Path, store: &Path, pictures: &Path) -> Result<()> {
    let chromium = need::chromium().map_err(anyhow::Error::msg)?;
    let mut open = Command::new(longpole)
        .args(["open", "last", "--no-browser"])
        .env(STORE, store)
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start longpole open")?;
    let mut url = None;
    for line in BufReader::new(open.stdout.take().context("longpole open has no output")?).lines() {
        let line = line.context("failed to read what longpole open prints")?;
        if let Some(at) = line.find("http://") {
            url = Some(line[at..].split_whitespace().next().unwrap_or_default().to_owned());
            break;
        }
    }
    let shots = target_dir().join("pictures");
    let done = match &url {
        None => bail!("longpole open printed no address"),
        Some(url) => run_in(
            &root().join("web"),
            "node",
            &["stories/find-the-long-pole.mjs", url, &shots.to_string_lossy()],
            &[("LONGPOLE_CHROMIUM", &chromium.to_string_lossy())],
        ),
    };
    open.kill().ok();
    open.wait().ok();
    done?;
    std::fs::copy(shots.join("frame-light-1440x900.png"), pictures.join("page.png")).context("failed to copy the picture of the page")?;
    Ok(())
}

/// A terminal's text as SVG: keeps bold, faint, cyan and yellow of SGR, and drops other styles.
fn terminal_svg(command: &str, text: &str) -> String {
    let (char_width, line_height) = (8.4, 18.0);
    let lines: Vec<&str> = text.lines().collect();
    let width = 102.0 * char_width + 32.0;
    let height = (lines.len() as f64 + 1.0) * line_height + 40.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    let prompt = format!("<tspan fill=\"#8b949e\">$ </tspan>{}", escape(command));
    for (index, line) in std::iter::once(prompt).chain(lines.iter().map(|line| spans(line))).enumerate() {
        let y = 28.0 + index as f64 * line_height;
        writeln!(out, "<text x=\"16\" y=\"{y:.0}\" fill=\"#d5dae1\" xml:space=\"preserve\">{line}</text>")
            .expect("a string takes any text");
    }
    out.push_str("</svg>\n");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn spans(line: &str) -> String {
    let mut out = String::new();
    let mut open = false;
    for (index, part) in line.split('\u{1b}').enumerate() {
        let text = match part.strip_prefix('[').and_then(|rest| rest.split_once('m')) {
            Some((code, text)) if index > 0 => {
                if std::mem::take(&mut open) {
                    out.push_str("</tspan>");
                }
                let style = match code {
                    "1" => "font-weight=\"bold\" fill=\"#ffffff\"",
                    "2" => "fill=\"#8b949e\"",
                    "33" => "fill=\"#e3b341\"",
                    "36" => "fill=\"#56d4dd\"",
                    _ => "",
                };
                if !style.is_empty() {
                    write!(out, "<tspan {style}>").expect("a string takes any text");
                    open = true;
                }
                text
            }
            _ => part,
        };
        out.push_str(&escape(text));
    }
    if open {
        out.push_str("</tspan>");
    }
    out
}
