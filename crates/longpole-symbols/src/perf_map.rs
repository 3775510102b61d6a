//! Names of code that was compiled while its program ran, as runtimes write them down for `perf`.
//!
//! `/tmp/perf-PID.map` has a line for each piece of code: where it starts and its bytes, both hexadecimal, and its name, which may
//! hold anything but a line feed. Lines are added as code is compiled; a later one wins over an earlier one, because memory is used
//! again. The format has no version and no length; the last line of a program that was killed may break off.
//!
//! ```text
//! 7f5bf0039840 378 JS:~burn /srv/app.js:12:14                                 V8: interpreted (~), compiled (^ + *)
//! 0x00007fc6f8ec7620 0x00000000000003b8 long Hash.block(int)                  HotSpot
//! 7f2a3c4d5000 b py::work:/srv/app.py                                         CPython 3.12, python -X perf
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use longpole_model::long_text::cut;
use longpole_model::stack::Runtime;

/// Most bytes of a name that are read: it may hold the path of a script.
pub(crate) const NAME_BYTES_MAX: usize = 4096;

/// Most bytes of all names of a map that are kept: a large program has some megabytes. Addresses beyond have none.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// Most bytes of a function's or a file's name that are kept: each address that ran has its own, and millions may lie in one line of a
/// map. Signatures of Java can be long; what is longer is cut, and ends with `…`.
const KEPT_BYTES_MAX: usize = 512;

/// Finds the names of addresses. `addresses` are in ascending order; the answer has a name for each that has one, the same one for all
/// addresses of a line.
pub fn names(map: &[u8], addresses: &[u64]) -> Vec<Option<Arc<str>>> {
    let mut found: Vec<Option<&[u8]>> = vec![None; addresses.len()];
    // The last line first: an address keeps the name it gets. Lines may overlap, so that each visits those without a name only.
    let mut unnamed = Unnamed::new(addresses.len());
    for line in map.rsplit(|byte| *byte == b'\n') {
        let Some((range, name)) = entry(line) else { continue };
        let mut at = unnamed.from(addresses.partition_point(|address| *address < range.start));
        while addresses.get(at).is_some_and(|address| *address < range.end) {
            found[at] = Some(name);
            unnamed.remove(at);
            at = unnamed.from(at + 1);
        }
    }
    // By where a line lies.
    let mut known: HashMap<*const u8, Arc<str>> = HashMap::new();
    let mut left = NAMES_BYTES_MAX;
    let mut text = |name: &[u8]| {
        if let Some(known) = known.get(&name.as_ptr()) {
            return Some(Arc::clone(known));
        }
        let text = String::from_utf8_lossy(name);
        left = left.checked_sub(text.len())?;
        let text: Arc<str> = text.into();
        known.insert(name.as_ptr(), Arc::clone(&text));
        Some(text)
    };
    found.into_iter().map(|name| text(name?)).collect()
}

/// Places of addresses without a name.
///
/// ```text
/// places           0  1  2  3  4  5     1, 2 and 4 have a name
/// no later than    0  3  3  3  5  5
/// ```
struct Unnamed(Vec<usize>);

impl Unnamed {
    fn new(length: usize) -> Self {
        Unnamed((0..=length).collect())
    }

    /// The first one from this place on, or the length.
    fn from(&mut self, mut at: usize) -> usize {
        // On the way each place is led to the one after the next, so that long ways are gone once.
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn remove(&mut self, at: usize) {
        self.0[at] = at + 1;
    }
}

/// A name as it is kept.
pub(crate) fn kept(name: &str) -> String {
    cut(name, KEPT_BYTES_MAX).into_owned()
}

/// One line; `None` where it is none.
fn entry(line: &[u8]) -> Option<(Range<u64>, &[u8])> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let start = hex(words.next()?)?;
    let bytes = hex(words.next()?)?;
    let name = words.next()?.trim_ascii();
    let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
    (bytes > 0 && !name.is_empty()).then(|| (start..start.saturating_add(bytes), name))
}

fn hex(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// What a name in a map says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// What runs the code; `None` where the name does not show it.
    pub runtime: Option<Runtime>,
    /// The function.
    pub function: String,
    /// Its file, empty where it is not said.
    pub file: String,
    /// The line where it begins, 0 where it is not said.
    pub line: u32,
}

/// Kinds of code that V8 writes before a function of a script.
const V8_FUNCTIONS: [&str; 5] = ["JS", "LazyCompile", "Function", "Script", "Eval"];

/// Kinds of code of V8 that belong to no script.
const V8_OTHERS: [&str; 8] = ["Builtin", "BytecodeHandler", "Handler", "Stub", "RegExp", "Wasm", "LoadIC", "StoreIC"];

/// Takes a name apart by the habits of who wrote it.
pub fn describe(name: &str) -> Described {
    let plain = |runtime, function: &str| Described { runtime, function: kept(function), file: String::new(), line: 0 };
    if let Some((function, file)) = name.strip_prefix("py::").and_then(|rest| rest.split_once(':')) {
        return Described { runtime: Some(Runtime::Python), function: kept(function), file: kept(file), line: 0 };
    }
    if let Some((kind, rest)) = name.split_once(':') {
        if V8_FUNCTIONS.contains(&kind) {
            return of_script(rest);
        }
        if V8_OTHERS.contains(&kind) {
            return plain(Some(Runtime::Node), name);
        }
    }
    match of_class(name) {
        Some(method) => plain(None, method),
        None => plain(None, name),
    }
}

/// `*burn /srv/app.js:12:14`: how it was compiled, its name, its script, line and column.
fn of_script(text: &str) -> Described {
    let text = text.trim_start_matches(['~', '^', '+', '*', '-', '\'']);
    // A name can hold spaces (`get value`), and so can a path; what a script's name begins with tells them apart.
    let starts = [" /", " file:", " node:", " [", " webpack:"];
    let at = starts.iter().filter_map(|start| text.find(start)).min().or_else(|| text.rfind(' ')).unwrap_or(text.len());
    let (function, place) = (text[..at].trim(), text[at..].trim());
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next(), parts.next(), parts.next());
    let (file, line) = match (file, line.and_then(|line| line.parse().ok())) {
        (Some(file), Some(line)) => (file, line),
        _ => (place, 0),
    };
    Described {
        runtime: Some(Runtime::Node),
        function: if function.is_empty() { "(anonymous)".to_owned() } else { kept(function) },
        file: kept(file.strip_prefix("file://").unwrap_or(file)),
        line,
    }
}

/// `long Hash.block(int)` is `Hash.block`, as people say it.
fn of_class(name: &str) -> Option<&str> {
    let (head, parameters) = name.split_once('(')?;
    let method = head.rsplit(' ').next()?;
    (parameters.ends_with(')') && head.contains(' ') && method.contains('.')).then_some(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_has_the_name_that_was_written_last() {
        let map = b"1000 100 JS:~old /a.js:1:1\n0x0000000000001050 0x10 inner code\nbroken line\n2000 0 nothing\n1000 40 JS:*new /a.js:1:1\n3000 10 cut off";
        let found = names(map, &[0xfff, 0x1000, 0x103f, 0x1040, 0x1055, 0x10ff, 0x1100, 0x2000, 0x300f]);
        let found: Vec<&str> = found.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        assert_eq!(
            found,
            ["-", "JS:*new /a.js:1:1", "JS:*new /a.js:1:1", "JS:~old /a.js:1:1", "inner code", "JS:~old /a.js:1:1", "-", "-", "cut off"]
        );
    }

    #[test]
    fn lines_that_overlap_cost_no_more_than_others() {
        let addresses: Vec<u64> = (0..20_000).collect();
        let map = "0 fffffffffffffff x\n".repeat(100_000);
        let start = std::time::Instant::now();
        let found = names(map.as_bytes(), &addresses);
        assert!(found.iter().all(|name| name.as_deref() == Some("x")));
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[test]
    fn names_beyond_the_limit_are_left_out() {
        let long = "x".repeat(NAME_BYTES_MAX);
        let map: String = (0..20_000).map(|number| format!("{:x} 1 {long}\n", number + 1)).collect();
        let found = names(map.as_bytes(), &(1..=20_000).collect::<Vec<_>>());
        assert_eq!(found.iter().flatten().count(), NAMES_BYTES_MAX / NAME_BYTES_MAX);
    }

    #[test]
    fn a_long_name_is_kept_once_and_cut_where_people_see_it() {
        let long = "é".repeat(1500);
        let map = format!("1000 100 {long}\n1010 1 inner\n2000 10 JS:*{long} /{long}.js:12:14\n");
        let found = names(map.as_bytes(), &[0x1000, 0x1010, 0x1011, 0x2000]);
        let [Some(first), _, Some(third), Some(script)] = &found[..] else { panic!("{found:?}") };
        assert!(Arc::ptr_eq(first, third), "one line, two texts");
        assert_eq!(describe(first).function, format!("{}…", "é".repeat(KEPT_BYTES_MAX / 2)));
        // The script's own name is cut as well, its line is behind what is read.
        let script = describe(script);
        assert_eq!((script.function.len(), script.line), (KEPT_BYTES_MAX + "…".len(), 0));
        let shorter = describe(&format!("JS:*work /{}.js:12:14", "x".repeat(KEPT_BYTES_MAX)));
        assert_eq!((shorter.function.as_str(), shorter.line), ("work", 12));
        assert!(shorter.file.starts_with("/xx") && shorter.file.ends_with("x…"), "{}", shorter.file);
        assert_eq!(describe(&"x".repeat(KEPT_BYTES_MAX)).function, "x".repeat(KEPT_BYTES_MAX));
    }

    /// Names from maps of Node 20, OpenJDK 17 and CPython 3.12.
    #[test]
    fn names_are_taken_apart_by_the_habits_of_their_writers() {
        let of = |name: &str| {
            let Described { runtime, function, file, line } = describe(name);
            (runtime.map(Runtime::as_str).unwrap_or("-"), function, file, line)
        };
        let is = |runtime, function: &str, file: &str, line| (runtime, function.to_owned(), file.to_owned(), line);
        assert_eq!(of("JS:^hashIt /tmp/my app/t.js:2:42"), is("node", "hashIt", "/tmp/my app/t.js", 2));
        assert_eq!(of("JS:*get value file:///srv/t.mjs:7:3"), is("node", "get value", "/srv/t.mjs", 7));
        assert_eq!(of("JS:~ /tmp/t.js:1:1"), is("node", "(anonymous)", "/tmp/t.js", 1));
        assert_eq!(of("LazyCompile:~emit node:events:466:44"), is("node", "emit", "node:events", 466));
        assert_eq!(of("JS:~f [eval]:1:10"), is("node", "f", "[eval]", 1));
        assert_eq!(of("Builtin:ArrayMap"), is("node", "Builtin:ArrayMap", "", 0));
        assert_eq!(of("long T.burn(int)"), is("-", "T.burn", "", 0));
        assert_eq!(
            of("java.lang.Object jdk.internal.misc.Unsafe.getReferenceVolatile(java.lang.Object, long)"),
            is("-", "jdk.internal.misc.Unsafe.getReferenceVolatile", "", 0)
        );
        assert_eq!(of("Interpreter"), is("-", "Interpreter", "", 0));
        assert_eq!(of("py::work:/srv/app.py"), is("python", "work", "/srv/app.py", 0));
        assert_eq!(of("StubRoutines (1)"), is("-", "StubRoutines (1)", "", 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), mut addresses in prop::collection::vec(any::<u64>(), 0..20)) {
            addresses.sort_unstable();
            let found = names(&bytes, &addresses);
            prop_assert_eq!(found.len(), addresses.len());
        }

        #[test]
        fn any_name_is_survived(name in "\\PC{0,40}", kind in 0usize..5) {
            describe(&name);
            describe(&format!("{}:{name}", V8_FUNCTIONS[kind]));
            describe(&format!("py::{name}"));
        }

        #[test]
        fn a_map_that_was_written_is_read(entries in prop::collection::vec((0u64..1 << 40, 1u64..1 << 16, "[a-zA-Z:*~/. ()]{1,20}"), 1..30)) {
            let text: String = entries.iter().map(|(start, bytes, name)| format!("{start:x} {bytes:x} {name}x\n")).collect();
            let mut addresses: Vec<u64> = entries.iter().map(|(start, ..)| *start).collect();
            addresses.sort_unstable();
            let found = names(text.as_bytes(), &addresses);
            for (address, found) in addresses.iter().zip(found) {
                let last = entries.iter().rfind(|(start, bytes, _)| (*start..start + bytes).contains(address)).unwrap();
                let written = format!("{}x", last.2);
                prop_assert_eq!(found.as_deref(), Some(written.trim()));
            }
        }
    }
}
