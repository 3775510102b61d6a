//! The engine. Run it directly, or as `longpole run -- deploy`.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use deploy_example::engine::{Progress, deploy};
use deploy_example::{block_on, expected};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => longpole_sdk::run_service("deploy", || block_on("deploy", run())),
        ["--expected"] => block_on("deploy", async {
            say(serde_json::to_string_pretty(&expected::poles())?);
            Ok(())
        }),
        _ => block_on("deploy", async { Err("usage: deploy [--expected]".into()) }),
    }
}

async fn run() -> deploy_example::Result<()> {
    let start = Instant::now();
    let created = deploy(|progress| match progress {
        Progress::Creating(resource) => say(format_args!("+ {:<14} {}", resource.name, resource.resource_type)),
        Progress::Created(resource, took) => say(format_args!("  {:<14} created in {:.2} s", resource.name, took.as_secs_f64())),
        Progress::Failed(name, why) => say(format_args!("! {name:<14} {why}")),
    })
    .await?;
    say(format_args!("{created} resources created in {:.2} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// Prints a line; ignores a closed output, so that the deployment goes on.
fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
