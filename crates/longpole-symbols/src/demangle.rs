//! Names for people.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::time::Instant;

use cpp_demangle::{DemangleOptions, ParseOptions};
use longpole_model::Text;

use crate::limits::{DEMANGLE_STEPS_MAX, NAME_BYTES_MAX, STEP_NANOS, clipped};

/// Demangles each name of a binary once. All addresses of a function share the text.
pub(crate) struct Demangler<'s> {
    known: HashMap<Text, Text>,
    steps: &'s Steps,
    leaves_names: bool,
}

/// Steps that are left for the names of a recording. A name that finds none stays as it is in the file.
pub(crate) struct Steps(Cell<u64>);

impl Default for Steps {
    fn default() -> Self {
        Steps(Cell::new(DEMANGLE_STEPS_MAX))
    }
}

impl Steps {
    fn are_spent(&self) -> bool {
        self.0.get() == 0
    }

    fn take(&self, steps: u64) {
        self.0.set(self.0.get().saturating_sub(steps));
    }
}

impl<'s> Demangler<'s> {
    /// One that takes its steps from these.
    pub(crate) fn new(steps: &'s Steps) -> Self {
        Demangler { known: HashMap::new(), steps, leaves_names: false }
    }

    /// Whether it left a name mangled because no steps were left.
    pub(crate) fn leaves_names(&self) -> bool {
        self.leaves_names
    }

    /// The name for people.
    pub(crate) fn name(&mut self, mangled: &Text) -> Text {
        if let Some(known) = self.known.get(mangled) {
            return known.clone();
        }
        self.leaves_names |= self.steps.are_spent() && (mangled.starts_with("_Z") || mangled.starts_with("_R"));
        let name = Text::from(demangle(mangled, self.steps));
        self.known.insert(mangled.clone(), name.clone());
        name
    }
}

/// The name as its programmer wrote it: Rust's without hashes and crate disambiguators, C++'s without parameters and
/// return type, any other as it is.
fn demangle(mangled: &str, steps: &Steps) -> String {
    if mangled.len() > NAME_BYTES_MAX || steps.are_spent() {
        return clipped(mangled, NAME_BYTES_MAX).to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(mangled) {
        let mut out = Bounded(String::new());
        // The alternate form leaves out the hash of legacy names and the disambiguators of v0 names. A name that is too long breaks off.
        let _ = write!(out, "{rust:#}");
        steps.take(rust_steps(mangled.len(), out.0.len()));
        return out.0;
    }
    if mangled.starts_with("_Z") {
        return cpp(mangled, steps).unwrap_or_else(|| mangled.to_owned());
    }
    mangled.to_owned()
}

/// The steps of rustc-demangle, which cannot count them. Each byte of a result can stand for a chain of references and nested paths, of a
/// depth of 500 at most, that print nothing; in an honest name an eighth of its bytes is more than the depth.
fn rust_steps(mangled_bytes: usize, bytes: usize) -> u64 {
    (mangled_bytes.min(500) * bytes / 8) as u64
}

fn cpp(mangled: &str, steps: &Steps) -> Option<String> {
    // GCC marks what it split off or cloned behind a dot, which is no part of the mangling.
    let (name, suffix) = match mangled.split_once('.') {
        Some((name, _)) => mangled.split_at(name.len()),
        None => (mangled, ""),
    };
    let parsing = ParseOptions::default().recursion_limit(RECURSION_MAX);
    let printing = DemangleOptions::new().no_params().no_return_type().recursion_limit(RECURSION_MAX);
    let mut out = Bounded(String::new());
    // The library cannot count its steps.
    let start = Instant::now();
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parsing);
    let written = symbol.map(|symbol| symbol.structured_demangle(&mut out, &printing));
    let took = start.elapsed().as_nanos() / u128::from(STEP_NANOS);
    steps.take(u64::try_from(took).unwrap_or(u64::MAX).saturating_add(out.0.len() as u64));
    written.ok()?.ok()?;
    out.0.push_str(suffix);
    Some(out.0)
}

/// Depth of the C++ grammar, which is parsed by recursion. The library's own default is 96, but it attempts productions anew, twice a level in
/// several places: at 64 the worst name takes less than a second, at 96 minutes. The libraries and browsers of a Debian machine
/// have 275,418 C++ names: 922 are deeper than 64, and 329 deeper than 96.
const RECURSION_MAX: u32 = 64;

/// A text that takes what fits into the limit and then refuses.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = clipped(text, NAME_BYTES_MAX - self.0.len());
        self.0.push_str(fits);
        if fits.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;
    use std::time::{Duration, Instant};

    use super::*;

    fn demangle(mangled: &str) -> String {
        super::demangle(mangled, &Steps::default())
    }

    #[test]
    fn names_read_as_they_were_written() {
        for (mangled, name) in [
            ("main", "main"),
            ("__libc_start_main", "__libc_start_main"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_ZN3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.123", "foo::{{closure}}"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            ("_RNCNvNtCs1234_7mycrate3foo3bar0B5_", "mycrate::foo::bar::{closure#0}"),
            ("_ZN5space3fooEibc", "space::foo"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"),
            ("_ZN5space3fooEi.constprop.0", "space::foo.constprop.0"),
            ("_ZZZ", "_ZZZ"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), name, "{mangled}");
        }
    }

    #[test]
    fn a_name_has_a_limit() {
        // Each step doubles the type: S_ is the pair before, twice.
        let mut bomb = String::from("_Z1f1AIiiE");
        for level in 0..60 {
            let back = if level == 0 {
                "S_".to_owned()
            } else {
                format!("S{}_", char::from_digit((level - 1) % 36, 36).unwrap().to_ascii_uppercase())
            };
            bomb.push_str(&format!("1AI{back}{back}E"));
        }
        assert!(demangle(&bomb).len() <= NAME_BYTES_MAX);
        assert_eq!(demangle(&"x".repeat(2 * NAME_BYTES_MAX)).len(), NAME_BYTES_MAX);
        assert_eq!(demangle(&"\u{e9}".repeat(NAME_BYTES_MAX)).len(), NAME_BYTES_MAX);
    }

    /// The innermost part inside `depth` pairs of the two others.
    fn nested(depth: usize, before: &str, innermost: &str, after: &str) -> String {
        [&before.repeat(depth), innermost, &after.repeat(depth)].concat()
    }

    #[test]
    fn a_name_that_asks_for_a_step_doubled_at_each_level_stays_mangled() {
        let start = Instant::now();
        for name in [
            // Template arguments in a conversion operator, a lambda before template arguments, an operator before template arguments.
            format!("_ZN1Acv{}IEEv", nested(25, "T_I", "T_", "IEE")),
            format!("_Z{}", nested(25, "Ul", "i", "E_IiE")),
            format!("_Z{}v", nested(30, "cv", "i", "IiE")),
            // One that fails at its end.
            format!("_Z1f{}", nested(29, "FvPN1AI", "i", "")),
            format!("_Z1fI{}E", nested(25, "XsrT_I", "i", "E1a")),
        ] {
            demangle(&name);
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        let conversion = format!("_ZN1Acv{}IEEv", nested(25, "T_I", "T_", "IEE"));
        assert_eq!(demangle(&conversion), conversion);
    }

    #[test]
    fn names_stay_mangled_when_the_steps_of_a_recording_are_spent() {
        let steps = Steps(Cell::new(1000));
        let mut demangler = Demangler::new(&steps);
        let names = (0..100).map(|number| demangler.name(&format!("_ZN5space3f{number:02}Ev").into()));
        let names: Vec<Text> = names.collect();
        assert_eq!((names[0].as_str(), names[99].as_str()), ("space::f00", "_ZN5space3f99Ev"));
        assert!(demangler.leaves_names());
        // One that is known keeps its name.
        assert_eq!(demangler.name(&"_ZN5space3f00Ev".into()), "space::f00");
    }

    #[test]
    fn a_name_of_rust_whose_bytes_stand_for_chains_of_nothing_takes_its_steps() {
        // A path of 400 empty parts, which a tuple repeats, which others repeat.
        let path = format!("{}C0{}", "Nv".repeat(400), "0".repeat(400));
        let mut name = format!("_RIC1aT{path}");
        let mut reference = 5;
        for _ in 0..14 {
            let next = name.len() - 2;
            name.push_str(&format!("T{0}{0}E", format!("B{}_", base_62(reference))));
            reference = next;
        }
        name.push_str("EE");
        let steps = Steps::default();
        let start = Instant::now();
        super::demangle(&name, &steps);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!(steps.0.get(), DEMANGLE_STEPS_MAX - 500 * NAME_BYTES_MAX as u64 / 8);
    }

    /// A back reference's number, which is one less.
    fn base_62(number: usize) -> String {
        let digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let numbers = iter::successors(Some(number - 1), |number| (*number >= 62).then_some(number / 62));
        let mut text: Vec<u8> = numbers.map(|number| digits[number % 62]).collect();
        text.reverse();
        String::from_utf8(text).unwrap()
    }

    proptest::proptest! {
        #[test]
        fn no_name_panics(prefix in "(_R|_Z|_ZN|_ZL)?", name in "[ -~]{0,200}") {
            let _ = demangle(&format!("{prefix}{name}"));
        }
    }
}
