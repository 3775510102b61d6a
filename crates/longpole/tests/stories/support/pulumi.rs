//! The real Pulumi, with a state of its own: no account, no network. The programs it deploys: fixtures/pulumi.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::collector::{Identity, spans};
use super::{Sandbox, clean, json, longpole, skip};

/// Resources of the deployment, its stack not counted.
pub(crate) const RESOURCES: usize = 21;

/// The folder of the real Pulumi, or a noted skip.
pub(crate) fn pulumi() -> Option<PathBuf> {
    let there = std::env::var_os("LONGPOLE_PULUMI").map(PathBuf::from);
    if there.is_none() {
        skip("deploy with Pulumi", "no Pulumi here; `cargo xtask test` builds one where Go is");
    }
    there
}

/// A stack that nothing was deployed to yet: a program, a state, and a home of Pulumi's of its own.
pub(crate) struct Stack {
    dir: PathBuf,
    bin: PathBuf,
}

impl Stack {
    pub(crate) fn new(sandbox: &Sandbox, name: &str, pulumi: &Path, database_millis: i64) -> Stack {
        let stack = Stack::of(sandbox, name, pulumi, "deployment");
        stack.succeeds(&["config", "set", "databaseMillis", &database_millis.to_string()]);
        stack
    }

    /// With one of the programs of fixtures/pulumi.
    pub(crate) fn of(sandbox: &Sandbox, name: &str, pulumi: &Path, program: &str) -> Stack {
        let dir = sandbox.path(name);
        for folder in ["project", "home", "state"] {
            std::fs::create_dir_all(dir.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(pulumi.join("plugins"), dir.join("home/plugins")).unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pulumi");
        std::fs::copy(fixtures.join(program).join("Pulumi.yaml"), dir.join("project/Pulumi.yaml")).unwrap();
        let stack = Stack { dir, bin: pulumi.join("bin") };
        stack.succeeds(&["stack", "select", "dev", "--create"]);
        stack
    }

    /// Where the program is, and the store of its recordings.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Prepares a command that is, or starts, Pulumi: no account, no network, nothing of the developer's.
    pub(crate) fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, _) in std::env::vars() {
            if name.starts_with("PULUMI_") {
                command.env_remove(name);
            }
        }
        clean(command);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path))).unwrap();
        command
            .current_dir(self.path("project"))
            .env("PATH", path)
            .env("PULUMI_HOME", self.path("home"))
            .env("PULUMI_BACKEND_URL", format!("file://{}", self.path("state").display()))
            .env("PULUMI_CONFIG_PASSPHRASE", "x")
            .env("PULUMI_SKIP_UPDATE_CHECK", "true")
            .env("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
            .stdin(Stdio::null())
    }

    /// Runs Pulumi without longpole.
    #[track_caller]
    pub(crate) fn succeeds(&self, words: &[&str]) {
        self.succeeds_with(&[], words);
    }

    /// The same, with these variables.
    #[track_caller]
    pub(crate) fn succeeds_with(&self, variables: &[(&str, &str)], words: &[&str]) {
        let mut pulumi = Command::new(self.bin.join("pulumi"));
        let out = self.prepare(&mut pulumi).envs(variables.iter().copied()).args(words).output().unwrap();
        assert!(out.status.success(), "pulumi {words:?}: {}{}", text(&out.stdout), text(&out.stderr));
    }

    /// `longpole run FLAGS -- COMMAND`, to be started.
    pub(crate) fn recorded(&self, flags: &[&str], command: &[&str]) -> Command {
        let mut run = longpole(&self.path("store"));
        self.prepare(&mut run).arg("run").args(flags).arg("--").args(command);
        run
    }

    /// Deploys under longpole, and returns the answer as a person sees it.
    #[track_caller]
    pub(crate) fn deploys(&self, flags: &[&str]) -> String {
        let out = self.recorded(flags, &["pulumi", "up", "--yes", "--non-interactive"]).output().unwrap();
        let (said, answer) = (text(&out.stdout), text(&out.stderr));
        assert!(out.status.success(), "{said}{answer}");
        assert!(said.contains(&format!("{} created", RESOURCES + 1)), "{said}{answer}");
        answer
    }

    /// Imports a file, and returns the answer.
    pub(crate) fn imports(&self, file: &Path) -> Value {
        json(longpole(&self.path("store")).args(["import", "--format", "json"]).arg(file))[0].clone()
    }

    pub(crate) fn asks(&self, words: &[&str]) -> Value {
        json(longpole(&self.path("store")).args(words).args(["--format", "json"]))
    }

    /// The spans of the last recording.
    pub(crate) fn spans(&self) -> BTreeSet<Identity> {
        spans(&self.path("store"))
    }

    /// The spans of a file, as they stand in it: no two are made one, and none is left out.
    pub(crate) fn spans_of_file(&self, file: &Path) -> BTreeSet<Identity> {
        let lines = self.path("converted.json");
        let convert =
            longpole(&self.path("store")).arg("convert").arg(file).args(["--to", "otlp-json", "-o"]).arg(&lines).output().unwrap();
        assert!(convert.status.success(), "{}", text(&convert.stderr));
        let (spans, count) = spans_of_lines(&lines);
        assert_eq!(spans.len(), count, "{} holds an id twice", file.display());
        spans
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The spans of a file of OTLP JSON lines, and how many there are: an id may stand there twice.
pub(crate) fn spans_of_lines(path: &Path) -> (BTreeSet<Identity>, usize) {
    let (mut spans, mut count) = (BTreeSet::new(), 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        for resource in list(&request, "resourceSpans") {
            let attributes = list(&resource["resource"], "attributes");
            let service = attributes.iter().find(|a| a["key"] == "service.name").and_then(|a| a["value"]["stringValue"].as_str());
            for span in list(&resource, "scopeSpans").iter().flat_map(|scope| list(scope, "spans")) {
                let text = |key: &str| span[key].as_str().map(str::to_owned).filter(|text| !text.is_empty());
                let [trace, id, name] = ["traceId", "spanId", "name"].map(|key| text(key).unwrap());
                let service = service.unwrap_or("unknown_service").to_owned();
                spans.insert(Identity { trace, id, parent: text("parentSpanId"), service, name });
                count += 1;
            }
        }
    }
    (spans, count)
}
