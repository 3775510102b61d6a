//! Whose code a function is: the program's own, or what lies between it and the machine.
//!
//! ```text
//! _start                            system         what starts the program
//! std::rt::lang_start               language
//!   shop::main                      program        ◄ what people wrote, and can change
//!     tokio::runtime::block_on      library
//!       shop::index_words           program        ◄ the innermost of it: the one to name
//!         hashbrown::insert         library
//!           memcpy                  system
//! ```
//!
//! It is read off names, source files and binaries; [`RULES`] says by which, and why.

use longpole_model::stack::LocationKind;
use longpole_model::{Location, Recording, Runtime};

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeOrigin {
    /// The program's own; also what nothing is known of.
    Program,
    /// A library that somebody else wrote.
    Library,
    /// The language's: its standard library, its runtime.
    Language,
    /// What runs code that is interpreted, call by call.
    Interpreter,
    /// The system's: the C library, the linker.
    System,
    /// The kernel's.
    Kernel,
}

impl CodeOrigin {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            CodeOrigin::Program => "program",
            CodeOrigin::Library => "library",
            CodeOrigin::Language => "language",
            CodeOrigin::Interpreter => "interpreter",
            CodeOrigin::System => "system",
            CodeOrigin::Kernel => "kernel",
        }
    }
}

/// What tells a function.
#[derive(Debug, Clone, Copy)]
enum Mark {
    /// Its name begins so.
    Name(&'static str),
    /// It is called so.
    Called(&'static str),
    /// The path of its source file has this in it.
    Source(&'static str),
    /// The name of its binary begins so.
    Binary(&'static str),
    /// Its binary is called so.
    Executable(&'static str),
    /// The path of its binary has this in it.
    Folder(&'static str),
}

/// Which code a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Machine code of binaries.
    Binaries,
    /// Code that no binary holds: of scripts, or compiled while the program ran.
    Scripts,
    Both,
}

use Mark::{Binary, Called, Executable, Folder, Name, Source};

/// The first rule with a mark of a function says whose it is; without one it is the program's.
const RULES: [(CodeOrigin, Of, &[Mark]); 14] = [
    // Loops and calls of CPython between two functions of a script.
    (
        CodeOrigin::Interpreter,
        Of::Binaries,
        &[
            Name("_PyEval_"),
            Name("PyEval_"),
            Name("_PyFunction_Vectorcall"),
            Name("PyObject_Call"),
            Name("_PyObject_Call"),
            Name("PyObject_Vectorcall"),
            Name("_PyObject_Vectorcall"),
            Name("PyVectorcall_"),
            Name("_PyVectorcall_"),
        ],
    ),
    // Entries of V8 and of the JVM to code that is interpreted, or called from outside.
    (
        CodeOrigin::Interpreter,
        Of::Scripts,
        &[
            Called("Interpreter"),
            Called("call_stub"),
            Name("StubRoutines"),
            Name("Builtins_InterpreterEntryTrampoline"),
            Name("Builtins_JSEntry"),
            Name("Builtins_Call_"),
        ],
    ),
    (
        CodeOrigin::Interpreter,
        Of::Binaries,
        &[
            Name("Builtins_InterpreterEntryTrampoline"),
            Name("Builtins_JSEntry"),
            Name("Builtins_Call_"),
            Name("v8::internal::Execution::"),
            Name("v8::internal::(anonymous namespace)::Invoke"),
            Name("v8::Function::Call"),
            Name("JavaCalls::"),
        ],
    ),
    // The C library, the linker, the kernel's page: how a program waits and starts, not who.
    (
        CodeOrigin::System,
        Of::Binaries,
        &[
            Binary("libc.so"),
            Binary("libc-"),
            Binary("ld-linux"),
            Binary("ld-musl"),
            Binary("libpthread"),
            Binary("libm.so"),
            Binary("libm-"),
            Binary("libdl"),
            Binary("librt"),
            Binary("[vdso]"),
            Binary("musl"),
            Name("pthread_"),
            Name("__"),
            Name("_IO_"),
            Called("_start"),
        ],
    ),
    // Packages of Python and Node.
    (
        CodeOrigin::Library,
        Of::Both,
        &[
            Source("/site-packages/"),
            Source("/dist-packages/"),
            Source("/node_modules/"),
            Folder("/site-packages/"),
            Folder("/dist-packages/"),
            Folder("/node_modules/"),
        ],
    ),
    // Sources of the languages: Rust, Go, Python, Node.
    (
        CodeOrigin::Language,
        Of::Both,
        &[
            Source("/rustc/"),
            Source("/rustlib/"),
            Source("/go/src/runtime/"),
            Source("/usr/local/go/"),
            Source("/lib/go-"),
            Source("/lib/python3"),
            Source("<frozen "),
            Source("node:"),
        ],
    ),
    // Packages of Rust and Go.
    (CodeOrigin::Library, Of::Both, &[Source("/.cargo/registry/"), Source("/.cargo/git/"), Source("/go/pkg/mod/"), Source("/vendor/")]),
    // Rust's and C++'s standard libraries, where no source file is known.
    (
        CodeOrigin::Language,
        Of::Binaries,
        &[
            Name("std::"),
            Name("<std::"),
            Name("core::"),
            Name("<core::"),
            Name("alloc::"),
            Name("<alloc::"),
            Name("rust_begin_"),
            Name("__rust_"),
            Binary("libstdc++"),
            Binary("libgcc_s"),
        ],
    ),
    // Crates that programs run on, where no source file is known.
    (
        CodeOrigin::Library,
        Of::Binaries,
        &[
            Name("tokio::"),
            Name("<tokio::"),
            Name("mio::"),
            Name("<mio::"),
            Name("futures"),
            Name("<futures"),
            Name("parking_lot"),
            Name("rayon"),
            Name("hashbrown::"),
            Name("<hashbrown::"),
            Name("async_io::"),
        ],
    ),
    // Go's runtime and standard library.
    (
        CodeOrigin::Language,
        Of::Binaries,
        &[
            Name("runtime."),
            Name("runtime/"),
            Name("syscall."),
            Name("internal/"),
            Name("os."),
            Name("net."),
            Name("net/"),
            Name("sync."),
            Name("time."),
            Name("io."),
        ],
    ),
    // CPython's own functions.
    (
        CodeOrigin::Language,
        Of::Binaries,
        &[Name("_Py"), Name("Py"), Name("pymain_"), Binary("python3"), Binary("libpython3"), Folder("/lib-dynload/")],
    ),
    // Node's and V8's own.
    (
        CodeOrigin::Language,
        Of::Binaries,
        &[Name("node::"), Name("v8::"), Name("uv_"), Name("uv__"), Name("Builtins_"), Binary("libnode.so"), Executable("node")],
    ),
    // The JVM's own, and Java's classes.
    (
        CodeOrigin::Language,
        Of::Both,
        &[
            Name("java."),
            Name("jdk."),
            Name("sun."),
            Name("javax."),
            Name("com.sun."),
            Name("jvm stub: "),
            Name("Ljava/"),
            Name("Ljdk/"),
            Name("Lsun/"),
            Name("Ljavax/"),
            Called("_new_array_Java"),
            Called("_new_array_nozero_Java"),
            Called("_new_instance_Java"),
            Called("_complete_monitor_locking_Java"),
            Binary("libjvm.so"),
            Binary("libjli.so"),
            Binary("libjava.so"),
        ],
    ),
    // Shared libraries that the distribution installed.
    (
        CodeOrigin::Library,
        Of::Binaries,
        &[Folder("/usr/lib/"), Folder("/lib/x86_64-linux-gnu/"), Folder("/lib/aarch64-linux-gnu/"), Folder("/lib64/")],
    ),
];

/// Languages whose interpreters run a script without frames of its functions, by the names of their binaries. longpole does not read these
/// interpreters' memory.
const SCRIPT_LANGUAGES: [(&str, &[&str]); 6] = [
    ("Perl", &["perl", "libperl"]),
    ("Ruby", &["ruby", "libruby"]),
    ("PHP", &["php", "php-fpm", "libphp"]),
    ("Lua", &["lua", "luajit", "liblua", "libluajit"]),
    ("R", &["R", "libR"]),
    ("Tcl", &["tclsh", "libtcl"]),
];

/// The language whose scripts a binary runs: `Perl` for `perl5.36.0` and `libperl.so.5.36`.
pub(crate) fn script_language(binary: &str) -> Option<&'static str> {
    let is_version =
        |rest: &str| rest.split(".so").next().is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte)));
    let is_of = |name: &&str| binary.strip_prefix(*name).is_some_and(is_version);
    SCRIPT_LANGUAGES.iter().find(|(_, names)| names.iter().any(is_of)).map(|(language, _)| *language)
}

/// Whose code a frame of this location is.
pub(crate) fn whose(recording: &Recording, location: &Location, function: &str, file: &str) -> CodeOrigin {
    let binary = match &location.kind {
        LocationKind::Named { runtime: Runtime::Kernel, .. } => return CodeOrigin::Kernel,
        // The unwinder stopped there.
        LocationKind::Cut { .. } => return CodeOrigin::System,
        LocationKind::Code { mapping, .. } => recording.mapping(*mapping).map_or("", |mapping| mapping.path.as_str()),
        LocationKind::Unmapped { .. } | LocationKind::Named { .. } => "",
    };
    let of = if matches!(location.kind, LocationKind::Named { .. }) { Of::Scripts } else { Of::Binaries };
    by_rules(function, file, binary, of)
}

fn by_rules(function: &str, file: &str, binary: &str, of: Of) -> CodeOrigin {
    let name = binary.rsplit('/').next().unwrap_or(binary);
    if of == Of::Binaries && script_language(name).is_some() {
        return CodeOrigin::Language;
    }
    // A program that lies there is a program; only what it loads is the distribution's.
    let is_shared = name.contains(".so");
    let has = |mark: &Mark| match *mark {
        Name(beginning) => function.starts_with(beginning),
        Source(part) => file.contains(part) && (!part.ends_with(':') || file.starts_with(part)),
        Executable(whole) => name == whole,
        Called(whole) => function == whole,
        Binary(beginning) => name.starts_with(beginning),
        Folder(part) => is_shared && binary.contains(part),
    };
    let rule = RULES.iter().find(|(_, about, marks)| (*about == of || *about == Of::Both) && marks.iter().any(has));
    rule.map_or(CodeOrigin::Program, |(whose, ..)| *whose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_code_a_function_is_is_read_off_its_name_its_source_and_its_binary() {
        let native = |function: &str, file: &str, binary: &str| by_rules(function, file, binary, Of::Binaries).as_str();
        assert_eq!(native("index_words", "/home/me/src/main.rs", "/home/me/target/debug/shop"), "program");
        assert_eq!(native("write<Sip13Rounds>", "/rustc/9fc6b4/library/core/src/hash/mod.rs", "/x/shop"), "language");
        assert_eq!(native("insert<K, V>", "/root/.cargo/registry/src/x/hashbrown-0.15/src/map.rs", "/x/shop"), "library");
        assert_eq!(native("__libc_start_main_impl", "../csu/libc-start.c", "/usr/lib/x86_64-linux-gnu/libc.so.6"), "system");
        assert_eq!(native("libcrypto.so.3+0x12", "", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"), "library");
        assert_eq!(native("sort+0x12", "", "/usr/bin/sort"), "program");
        assert_eq!(native("main.work", "/home/me/work.go", "/home/me/work"), "program");
        assert_eq!(native("runtime.mallocgc", "", "/home/me/work"), "language");
        assert_eq!(native("_PyEval_EvalFrameDefault", "", "/usr/bin/python3.11"), "interpreter");
        assert_eq!(native("python3.11+0x6456ee", "", "/usr/bin/python3.11"), "language");
        assert_eq!(native("node+0x12", "", "/usr/bin/node"), "language");
        assert_eq!(native("Perl_pp_add", "", "/usr/bin/perl"), "language");
        assert_eq!(native("rb_vm_exec", "", "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"), "language");
        assert_eq!(native("noise", "/home/me/perlin.c", "/home/me/perlin"), "program");
        assert_eq!(native("node_of_tree", "", "/home/me/nodes"), "program");
        let script = |function: &str, file: &str| by_rules(function, file, "", Of::Scripts).as_str();
        assert_eq!(script("burn", "/home/me/prog.py"), "program");
        // A method of a script's own class is not Go's.
        assert_eq!(script("time.tick", "/home/me/prog.py"), "program");
        assert_eq!(script("_bootstrap", "/usr/lib/python3.11/threading.py"), "language");
        assert_eq!(script("get", "/home/me/.venv/lib/python3.11/site-packages/requests/api.py"), "library");
        assert_eq!(script("_find_and_load", "<frozen importlib._bootstrap>"), "language");
        assert_eq!(script("executeUserEntryPoint", "node:internal/modules/run_main"), "language");
        assert_eq!(script("Orders.callBank", "Orders.java"), "program");
        assert_eq!(script("java.lang.Thread.sleep", "Thread.java"), "language");
        assert_eq!(script("jvm stub: _new_array_Java", ""), "language");
        assert_eq!(script("StubRoutines (2)", ""), "interpreter");
    }
}
