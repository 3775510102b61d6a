//! The tables in which a Java virtual machine (HotSpot) describes itself to debuggers.

use std::io::{Read, Seek};

use object::read::{Object as _, ObjectSymbol as _, ReadCache};

use super::dynamic_names::has_dynamic_name;
use crate::hotspot::{HotSpotSymbols, SYMBOLS};

/// Finds the tables in a binary that has all of them: `libjvm.so`.
pub(crate) fn hotspot_symbols<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<HotSpotSymbols> {
    if !has_dynamic_name(file, SYMBOLS[0]) {
        return None;
    }
    let mut found = HotSpotSymbols([0; SYMBOLS.len()]);
    for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        if let Some(at) = SYMBOLS.iter().position(|wanted| *wanted == name) {
            found.0[at] = symbol.address();
        }
    }
    found.0.iter().all(|address| *address != 0).then_some(found)
}
