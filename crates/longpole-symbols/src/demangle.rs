//! Names for people.

use std::collections::HashMap;

use cpp_demangle::{DemangleOptions, DemangleWrite, ParseOptions};
use longpole_model::Text;

use crate::limits::{NAME_BYTES_MAX, clipped};

/// Demangles each name of a binary once. All addresses of a function share the text.
#[derive(Default)]
pub(crate) struct Demangler {
    known: HashMap<Text, Text>,
}

impl Demangler {
    /// The name for people.
    pub(crate) fn name(&mut self, mangled: &Text) -> Text {
        if let Some(known) = self.known.get(mangled) {
            return known.clone();
        }
        let name = Text::from(demangle(mangled));
        self.known.insert(mangled.clone(), name.clone());
        name
    }
}

/// The name as its programmer wrote it: Rust's without hashes and crate disambiguators, C++'s without parameters and
/// return type, any other as it is.
fn demangle(mangled: &str) -> String {
    if mangled.len() > NAME_BYTES_MAX {
        return clipped(mangled, NAME_BYTES_MAX).to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(mangled) {
        // The alternate form leaves out the hash of legacy names and the disambiguators of v0 names. rustc-demangle
        // bounds its own output at a megabyte.
        return clipped(&format!("{rust:#}"), NAME_BYTES_MAX).to_owned();
    }
    if mangled.starts_with("_Z") {
        return cpp(mangled).unwrap_or_else(|| mangled.to_owned());
    }
    mangled.to_owned()
}

fn cpp(mangled: &str) -> Option<String> {
    // GCC marks what it split off or cloned behind a dot, which is no part of the mangling.
    let (name, suffix) = match mangled.split_once('.') {
        Some((name, _)) => mangled.split_at(name.len()),
        None => (mangled, ""),
    };
    let parsing = ParseOptions::default().recursion_limit(RECURSION_MAX);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parsing).ok()?;
    let printing = DemangleOptions::new().no_params().no_return_type().recursion_limit(RECURSION_MAX);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &printing).ok()?;
    out.0.push_str(suffix);
    Some(out.0)
}

/// Depth of the C++ grammar, which is parsed by recursion. The library's own default.
const RECURSION_MAX: u32 = 96;

/// A text that refuses to grow beyond the limit.
struct Bounded(String);

impl DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > NAME_BYTES_MAX {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    proptest::proptest! {
        #[test]
        fn no_name_panics(prefix in "(_R|_Z|_ZN|_ZL)?", name in "[ -~]{0,200}") {
            let _ = demangle(&format!("{prefix}{name}"));
        }
    }
}
