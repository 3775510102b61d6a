//! The kind of a program in a deployment: a plug-in of Pulumi, a provider, a language host, a build tool.

use longpole_model::Process;

use crate::tree::forest::base_name;

/// Whether the process serves Pulumi's calls: its life says nothing, its calls do.
pub(crate) fn is_plugin(program: &str) -> bool {
    ["pulumi-resource", "pulumi-language", "pulumi-analyzer", "pulumi-converter", "pulumi-tool"].iter().any(|p| program.starts_with(p))
}

/// Whether the process is a provider.
pub(crate) fn is_provider(program: &str) -> bool {
    program.starts_with("pulumi-resource")
}

/// Whether the process is a language host.
pub(crate) fn is_language_host(program: &str) -> bool {
    program.starts_with("pulumi-language")
}

/// Programs that turn a Pulumi program into something that runs, or fetch what it needs.
const BUILD_TOOLS: [&str; 26] = [
    "go", "compile", "link", "asm", "cgo", "gcc", "g++", "cc", "cc1", "collect2", "as", "ld", "clang", "tsc", "esbuild", "swc", "npm",
    "yarn", "pnpm", "bun", "pip", "uv", "javac", "csc", "cargo", "rustc",
];

/// Whether the process compiles: by its own name, or as a script that an interpreter runs (`node …/tsc`, `dotnet build`).
pub(crate) fn is_build_tool(process: &Process) -> bool {
    let listed = |word: &str| BUILD_TOOLS.contains(&word.strip_suffix(".js").unwrap_or(word));
    let script = process.arguments.iter().skip(1).find(|a| !a.starts_with('-')).map(|a| base_name(a));
    listed(&process.name)
        || listed(base_name(&process.executable))
        || script.is_some_and(|word| listed(word) || word == "build" || word == "publish")
}
