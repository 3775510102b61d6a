//! `deploy`: starts the other programs, and creates each resource as soon as its dependencies exist.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longpole_sdk::SpanExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{Instrument, Span, info_span};

use crate::program::Resource;
use crate::rpc::{Client, Connection, Declaration, ENGINE_VARIABLE, Hello, TOKEN_VARIABLE};
use crate::{Error, Result};

/// Time for a child to start. Not part of any figure: a child that is not up by then never will be.
const CHILD_START_LIMIT: Duration = Duration::from_secs(30);

/// The children, by the names of their programs. A provider's types begin with the part after `provider-`.
const HOST: &str = "deploy-host";
const PROVIDERS: [&str; 2] = ["provider-compute", "provider-cloud"];

/// Progress messages for people.
pub enum Progress<'a> {
    /// The engine has begun to create a resource.
    Creating(&'a Resource),
    /// The resource exists.
    Created(&'a Resource, Duration),
    /// The creation failed, with the reason.
    Failed(&'a str, &'a str),
}

/// The state of a resource, for its dependents.
#[derive(Clone)]
enum Outcome {
    /// The engine is creating it, or it waits for its own dependencies.
    Open,
    /// It exists; with the `traceparent` of its span, which has ended, if there are spans.
    There(Option<String>),
    /// Its creation failed.
    Failed,
}

/// Deploys the program and reports to `progress`; returns the number of resources.
pub async fn deploy(progress: fn(Progress<'_>)) -> Result<usize> {
    let span = info_span!("deploy");
    deploy_in_span(progress).instrument(span).await
}

async fn deploy_in_span(progress: fn(Progress<'_>)) -> Result<usize> {
    let door = Door::open().await?;
    // The providers start while the host evaluates the program.
    let (children, mut host, program, started) = start_children(&door).await?;
    let mut outcomes: HashMap<String, watch::Receiver<Outcome>> = HashMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let declaration = host.reader.read::<Declaration>().await?;
        let resource = match declaration {
            Some(Declaration::Resource(resource)) => resource,
            Some(Declaration::End) => break,
            None => return Err("the language host ended in the middle of the program".into()),
        };
        let client = started.clients.get(resource.provider()).cloned();
        let client = client.ok_or_else(|| format!("{}: there is no provider {}", resource.name, resource.provider()))?;
        let mut depends_on = Vec::new();
        for name in &resource.depends_on {
            let outcome = outcomes.get(name);
            depends_on.push(outcome.cloned().ok_or_else(|| format!("{} depends on {name}, which is not declared before", resource.name))?);
        }
        let (sender, outcome) = watch::channel(Outcome::Open);
        if outcomes.insert(resource.name.clone(), outcome).is_some() {
            return Err(format!("{} is declared twice", resource.name).into());
        }
        let after = started.spans.clone();
        tasks.spawn(
            async move {
                let result = create(&resource, depends_on, after, client, progress).await;
                let is_there = result.is_ok();
                let outcome = match result {
                    Ok(traceparent) => Outcome::There(traceparent),
                    Err(error) => {
                        progress(Progress::Failed(&resource.name, &error.to_string()));
                        Outcome::Failed
                    }
                };
                // A resource without dependents has no receivers.
                let _ = sender.send(outcome);
                is_there
            }
            .in_current_span(),
        );
    }
    drop(program);
    let total = outcomes.len();
    let mut created = 0;
    while let Some(result) = tasks.join_next().await {
        created += usize::from(result?);
    }
    // The children end when their connections do.
    drop((host, started, door));
    let stop = info_span!("stop");
    for outcome in outcomes.values() {
        if let Outcome::There(Some(traceparent)) = &*outcome.borrow() {
            stop.add_link(traceparent)?;
        }
    }
    children.wait().instrument(stop).await?;
    if created < total {
        return Err(format!("{} of {total} resources could not be created", total - created).into());
    }
    Ok(created)
}

/// Waits for the resource's dependencies, then lets a provider create it in a span with links to theirs. The span has
/// ended when this returns its `traceparent`.
async fn create(
    resource: &Resource,
    depends_on: Vec<watch::Receiver<Outcome>>,
    after: Vec<String>,
    client: Client,
    progress: fn(Progress<'_>),
) -> Result<Option<String>> {
    let mut waited_for = Vec::new();
    for (mut outcome, name) in depends_on.into_iter().zip(&resource.depends_on) {
        let outcome = outcome.wait_for(|outcome| !matches!(outcome, Outcome::Open)).await;
        match outcome.as_deref() {
            Ok(Outcome::There(traceparent)) => waited_for.extend(traceparent.clone()),
            _ => return Err(format!("not tried: {name} is not there").into()),
        }
    }
    if resource.depends_on.is_empty() {
        waited_for = after;
    }
    let span = info_span!(
        "create",
        otel.name = format!("create {}", resource.name),
        otel.kind = "client",
        resource.urn = resource.urn(),
        resource.r#type = resource.resource_type,
        resource.name = resource.name,
    );
    for traceparent in &waited_for {
        span.add_link(traceparent)?;
    }
    let traceparent = span.traceparent();
    let start = Instant::now();
    async {
        progress(Progress::Creating(resource));
        client.create(resource.clone()).await.inspect_err(|error| tracing::error!(error = %error, "cannot create {}", resource.name))
    }
    .instrument(span)
    .await?;
    progress(Progress::Created(resource, start.elapsed()));
    Ok(traceparent)
}

/// The providers, ready for requests.
struct Started {
    clients: HashMap<String, Client>,
    /// Spans of their starts, for which resources without dependencies wait.
    spans: Vec<String>,
}

/// Starts all children at once and waits until each has connected. The returned span is that of the
/// program, which lasts until its end.
async fn start_children(door: &Door) -> Result<(Children, Connection, Span, Started)> {
    let program = info_span!("run program");
    let mut starts = vec![(HOST, beside_this_program(HOST)?, program.clone())];
    for name in PROVIDERS {
        starts.push((name, beside_this_program(name)?, info_span!("start", otel.name = format!("start {name}"))));
    }
    let mut children = Children::default();
    let mut spans = HashMap::new();
    for (name, path, span) in starts {
        children.start(name, &path, door, &span)?;
        spans.insert(name, span);
    }
    let mut connections = HashMap::new();
    let mut ended = Vec::new();
    while !spans.is_empty() {
        let (name, connection) = tokio::select! {
            connected = door.next() => connected?,
            failed = children.first_to_end() => return Err(failed),
            () = tokio::time::sleep(CHILD_START_LIMIT) => return Err(format!("no child has come up for {CHILD_START_LIMIT:?}").into()),
        };
        if let Some(span) = spans.remove(name.as_str()) {
            ended.extend(span.traceparent().filter(|_| name != HOST));
            connections.insert(name, connection);
        }
    }
    let host = connections.remove(HOST).ok_or("the language host has not come up")?;
    let clients = connections.into_iter().map(|(name, connection)| {
        let provider = name.trim_start_matches("provider-").to_owned();
        let client = Client::start(&provider, connection);
        (provider, client)
    });
    Ok((children, host, program, Started { clients: clients.collect(), spans: ended }))
}

/// The port where children connect.
struct Door {
    listener: TcpListener,
    address: String,
    /// Proves that a connection is a child's.
    token: String,
}

impl Door {
    async fn open() -> Result<Self> {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.map_err(|error| format!("cannot listen on the loopback interface: {error}"))?;
        let address = listener.local_addr()?.to_string();
        // The keys of std's hasher come from the system's random numbers.
        let word = || RandomState::new().build_hasher().finish();
        Ok(Self { listener, address, token: format!("{:016x}{:016x}", word(), word()) })
    }

    /// Accepts the next child and returns its name. Refuses connections without the right token.
    async fn next(&self) -> Result<(String, Connection)> {
        loop {
            let (stream, _) = self.listener.accept().await.map_err(|error| format!("cannot accept a connection: {error}"))?;
            let mut connection = Connection::new(stream);
            let hello = tokio::time::timeout(CHILD_START_LIMIT, connection.reader.read::<Hello>()).await;
            if let Ok(Ok(Some(Hello { name, token }))) = hello
                && token == self.token
            {
                return Ok((name, connection));
            }
        }
    }
}

/// The running children.
#[derive(Default)]
struct Children {
    /// Each waits for one child and returns its exit status.
    waits: JoinSet<(&'static str, std::io::Result<std::process::ExitStatus>)>,
}

impl Children {
    /// Starts a program, as part of `span`.
    fn start(&mut self, name: &'static str, path: &Path, door: &Door, span: &Span) -> Result<()> {
        let mut child = start(path, door, span).map_err(|error| format!("cannot start {}: {error}", path.display()))?;
        self.waits.spawn_blocking(move || (name, child.wait()));
        Ok(())
    }

    /// Waits for an unexpected end of a child; returns its exit status.
    async fn first_to_end(&mut self) -> Error {
        match self.waits.join_next().await {
            Some(Ok((name, Ok(status)))) => format!("{name} ended before it was needed: {status}").into(),
            Some(Ok((name, Err(error)))) => format!("cannot wait for {name}: {error}").into(),
            Some(Err(error)) => error.into(),
            // No children are left.
            None => std::future::pending().await,
        }
    }

    /// Waits for all children to end.
    async fn wait(mut self) -> Result<()> {
        while let Some(ended) = self.waits.join_next().await {
            let (name, status) = ended?;
            let status = status.map_err(|error| format!("cannot wait for {name}: {error}"))?;
            if !status.success() {
                return Err(format!("{name} failed: {status}").into());
            }
        }
        Ok(())
    }
}

/// Path of another program of the example: in the folder of this one.
fn beside_this_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|error| format!("cannot say where this program lies: {error}"))?;
    let path = own.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION);
    if path.is_file() { Ok(path) } else { Err(format!("{} is missing: build the whole example", path.display()).into()) }
}

fn start(path: &Path, door: &Door, span: &Span) -> std::io::Result<Child> {
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.env(ENGINE_VARIABLE, &door.address).env(TOKEN_VARIABLE, &door.token);
    // The child's own work is part of this span; and it has its own service name.
    command.env_remove("OTEL_SERVICE_NAME");
    if let Some(traceparent) = span.traceparent() {
        command.env("TRACEPARENT", traceparent);
    }
    command.spawn()
}
