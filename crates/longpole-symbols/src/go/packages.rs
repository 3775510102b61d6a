//! Whose code lies where in a Go binary, by the packages that its functions name.

/// Whose function it is, as far as a choice between goroutines needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Whose {
    /// The standard library, except for what follows: it waits on behalf of its caller.
    Plain,
    /// What waits for others outside: the network, files, databases; and the packages of other modules.
    Outside,
    /// The function in which a server waits to be called.
    Accepts,
    /// The function below which each goroutine runs.
    Root,
    /// The program itself.
    Program,
}

/// Where functions of one owner begin: up to the next such place.
pub(crate) type Part = (u64, Whose);

/// Where the functions of each owner lie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packages {
    /// By address.
    parts: Vec<Part>,
}

/// First elements of the paths of the standard library.
const STANDARD: [&str; 54] = [
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
    "weak",
    "_cgo",
    "_rt0_amd64",
    "arena",
    "builtin",
];

/// Packages of the standard library that wait for others outside.
const OUTSIDE: [&str; 5] = ["net", "os", "internal/poll", "crypto/tls", "database/sql"];

/// Modules that are not part of the program and wait for its own goroutines.
const HELPERS: [&str; 2] = ["golang.org/x/sync", "github.com/sourcegraph/conc"];

impl Whose {
    /// By the name of a function and the path of the main module; without one, all that is not of the standard library is the program's.
    ///
    /// ```text
    /// github.com/me/shop/internal/bank.(*Client).Call[go.shape.int]
    /// └──────────── package ─────────┘
    /// ```
    pub(crate) fn of(name: &str, module: Option<&str>) -> Whose {
        match name {
            "runtime.goexit" | "runtime.goexit.abi0" => return Whose::Root,
            "internal/poll.(*FD).Accept" => return Whose::Accepts,
            _ => {}
        }
        let name = name.split('[').next().unwrap_or(name);
        let folder = name.rfind('/').map_or(0, |at| at + 1);
        let Some(end) = name[folder..].find('.').map(|at| folder + at) else { return Whose::Plain };
        let package = &name[..end];
        let is_in = |path: &str| package.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let first = package.split('/').next().unwrap_or(package);
        if package == "main" || module.is_some_and(is_in) {
            Whose::Program
        } else if STANDARD.contains(&first) || name.starts_with("type:") || name.starts_with("go:") {
            if OUTSIDE.iter().any(|path| is_in(path)) || package.starts_with("vendor/golang.org/x/net") {
                Whose::Outside
            } else {
                Whose::Plain
            }
        } else if module.is_none() {
            Whose::Program
        } else if HELPERS.iter().any(|path| is_in(path)) {
            Whose::Plain
        } else {
            Whose::Outside
        }
    }
}

impl Packages {
    /// The parts of functions that stand in any order.
    pub(crate) fn new(mut parts: Vec<Part>) -> Packages {
        parts.sort_unstable();
        parts.dedup_by_key(|(_, whose)| *whose);
        parts.shrink_to_fit();
        Packages { parts }
    }

    /// Whose function holds an address that the file states.
    pub fn at(&self, stated: u64) -> Whose {
        let after = self.parts.partition_point(|(start, _)| *start <= stated);
        after.checked_sub(1).and_then(|at| self.parts.get(at)).map_or(Whose::Plain, |(_, whose)| *whose)
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(self.parts.as_slice()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_belongs_to_the_owner_of_its_package() {
        let of = |name| Whose::of(name, Some("example.org/shop"));
        assert_eq!(of("main.callBank"), Whose::Program);
        assert_eq!(of("example.org/shop/bank.(*Client).Call[go.shape.int/x.y]"), Whose::Program);
        assert_eq!(of("example.org/shopping.Buy"), Whose::Outside);
        assert_eq!(of("github.com/lib/pq.(*conn).Query"), Whose::Outside);
        assert_eq!(of("golang.org/x/sync/errgroup.(*Group).Wait"), Whose::Plain);
        assert_eq!([of("net/http.(*persistConn).roundTrip"), of("os/exec.(*Cmd).Wait")], [Whose::Outside; 2]);
        assert_eq!(
            [of("time.Sleep"), of("runtime.gopark"), of("testing.(*T).Run"), of("memeqbody"), of("type:.eq.main.T")],
            [Whose::Plain; 5]
        );
        assert_eq!([of("runtime.goexit.abi0"), of("internal/poll.(*FD).Accept")], [Whose::Root, Whose::Accepts]);
        assert_eq!(Whose::of("lib.waitForBroker", Some("lib")), Whose::Program);
        assert_eq!(Whose::of("lib.waitForBroker", None), Whose::Program);
    }

    #[test]
    fn functions_of_one_owner_side_by_side_are_one_part() {
        let packages =
            Packages::new(vec![(300, Whose::Program), (100, Whose::Plain), (200, Whose::Plain), (400, Whose::Program), (500, Whose::Root)]);
        assert_eq!(packages.parts.len(), 3);
        let owners = [99, 100, 299, 300, 499, 500].map(|address| packages.at(address));
        assert_eq!(owners, [Whose::Plain, Whose::Plain, Whose::Plain, Whose::Program, Whose::Program, Whose::Root]);
        assert_eq!(Packages::default().at(7), Whose::Plain);
    }
}
