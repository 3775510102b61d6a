//! Addresses to frames.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use longpole_model::Text;
use longpole_model::address::VirtOffset;
use longpole_model::loss::{Loss, LossKind};
use longpole_model::recording::Recording;
use longpole_model::stack::{Frame, LocationKind, Mapping};

use crate::demangle::{Demangler, Steps};
use crate::dwarf::{self, Line, LinesOfAddresses, Slice};
use crate::files::Files;
use crate::limits::{FILE_NAME_BYTES_MAX, clipped};
use crate::load;
use crate::object::{Binary, Symbol, Table};
use crate::reason::Reason;

/// Names addresses of binaries. It opens a file only for the addresses of one call, looks all of one binary up together, and keeps none.
pub struct Symbolizer {
    files: Box<dyn Files>,
    demangling: Steps,
    /// Most bytes of debug information to read of a binary that has a symbol table.
    dwarf_bytes_max: u64,
}

/// Debug information of a binary that takes next to no time to read, in bytes.
const DWARF_BYTES_QUICK: u64 = 16 << 20;

/// The frames of addresses of one binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// For each address its frames, innermost inlined function first; one at least.
    pub frames: Vec<Vec<Frame>>,
    /// What is wrong with the binary as a whole, where something is.
    pub trouble: Option<Reason>,
}

impl Resolved {
    /// What is missing of the binary, where something is.
    pub fn loss(&self, mapping: &Mapping) -> Option<Loss> {
        let reason = self.trouble.as_ref()?;
        Some(Loss::new(LossKind::SymbolsUnreadable, 1, format!("{reason}: {}", mapping.path)))
    }
}

impl Symbolizer {
    /// One that reads these files.
    pub fn new(files: Box<dyn Files>) -> Self {
        Symbolizer { files, demangling: Steps::default(), dwarf_bytes_max: u64::MAX }
    }

    /// One for a reader who resolves a few addresses of the same binaries again and again. Where a binary has a symbol table and much debug
    /// information, it names functions by the table alone: without lines and inlined calls.
    pub fn quick(files: Box<dyn Files>) -> Self {
        Symbolizer { dwarf_bytes_max: DWARF_BYTES_QUICK, ..Symbolizer::new(files) }
    }

    /// Names addresses of a binary, in any order.
    ///
    /// It is made for all addresses of a binary at once: the cost is that of reading the binary, and then little for each.
    /// An address without a name gets one frame that says where its function begins, `libfoo.so+0x12ab`, and why it has no name; where
    /// nothing tells functions apart, it says where the address is.
    pub fn resolve(&self, mapping: &Mapping, addresses: &[VirtOffset]) -> Resolved {
        let mut sorted: Vec<u64> = addresses.iter().map(|address| address.0).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let (names, trouble) = self.look_up(mapping, &sorted);
        let frames = addresses.iter().map(|address| {
            let at = sorted.partition_point(|known| *known < address.0);
            names[at].clone()
        });
        Resolved { frames: frames.collect(), trouble }
    }

    /// Gives every location of a recording its frames. Returns what is missing, one loss for each binary that could not
    /// be read in full, for the caller to keep with the recording.
    pub fn fill(&self, recording: &mut Recording) -> Vec<Loss> {
        fill_by(recording, |mapping, addresses| self.resolve(mapping, addresses))
    }

    /// The frames of sorted, different addresses.
    fn look_up(&self, mapping: &Mapping, addresses: &[u64]) -> (Vec<Vec<Frame>>, Option<Reason>) {
        let files = &*self.files;
        let main_parts = load::open_mapped(files, mapping);
        let main = main_parts.as_ref().map_err(Reason::clone).and_then(|parts| load::parse(parts, &mapping.build_id));
        // Where the binary is gone, its debug file may still be found by the build id that was mapped.
        let build_id = match &main {
            Ok(main) => main.build_id(),
            Err(_) => &mapping.build_id[..],
        };
        let debug_parts = match &main {
            Ok(main) if main.has_dwarf() => None,
            main => load::open_debug_file(files, &mapping.path, main.as_ref().ok(), build_id),
        };
        let debug = debug_parts.as_ref().and_then(|parts| Binary::parse(parts).ok());
        let (main, mut trouble) = match main {
            Ok(main) => (Some(main), None),
            Err(_) if debug.is_some() => (None, None),
            Err(reason) => (None, Some(reason)),
        };

        let mut found = LinesOfAddresses { lines: vec![Vec::new(); addresses.len()], trouble: None };
        let with_dwarf = || [main.as_ref(), debug.as_ref()].into_iter().flatten().find(|binary| binary.has_dwarf());
        let takes_long = |binary: &&Binary<'_>| binary.dwarf_bytes() > self.dwarf_bytes_max && binary.has_functions(Table::Full);
        if let Some(binary) = with_dwarf().filter(|binary| !takes_long(binary)) {
            let code_start = main.as_ref().unwrap_or(binary).code_start();
            let debug_path = if debug.is_some() { load::debug_path(build_id) } else { None };
            let debug_path = debug_path.unwrap_or_else(|| Path::new(&mapping.path).to_owned());
            let supplement_parts = load::open_supplement(files, &debug_path, binary);
            let supplement = supplement_parts.as_ref().and_then(|parts| Binary::parse(parts).ok());
            found = look_up_dwarf(binary, supplement.as_ref(), code_start, addresses);
        }

        let mut symbols: Vec<Option<Symbol>> = vec![None; addresses.len()];
        let tables = [(&debug, Table::Full), (&main, Table::Full), (&main, Table::Dynamic)];
        for (binary, table) in tables {
            if let Some(binary) = binary {
                binary.name_all(table, addresses, &mut symbols);
            }
        }
        if let Some(main) = &main {
            main.name_linkage_table(addresses, &mut symbols);
            if trouble.is_none() && found.trouble.is_none() && found.lines.iter().all(Vec::is_empty) && lacks_symbols(&tables, &symbols) {
                trouble = Some(Reason::Stripped);
            }
        }
        let trouble = trouble.or(found.trouble);

        let unnamed = trouble.as_ref().unwrap_or(&Reason::NoSymbol);
        let file_name = Path::new(&mapping.path).file_name().map_or(Cow::Borrowed("[unknown]"), |name| name.to_string_lossy());
        let lacks_name = found.lines.iter().zip(&symbols).any(|(lines, symbol)| lines.is_empty() && symbol.is_none());
        let mut demangler = Demangler::new(&self.demangling);
        let starts = main.filter(|_| lacks_name).map(|main| main.function_starts(addresses)).unwrap_or_default();
        let frames = found.lines.into_iter().zip(symbols).zip(addresses).enumerate().map(|(at, ((lines, symbol), address))| {
            let place = || {
                format!(
                    "{}+{}",
                    clipped(&file_name, FILE_NAME_BYTES_MAX),
                    VirtOffset(starts.get(at).copied().flatten().unwrap_or(*address))
                )
            };
            frames_of(lines, symbol, &mut demangler, place, unnamed)
        });
        let mut frames: Vec<Vec<Frame>> = frames.collect();
        complete_files(&mut frames);
        let trouble = trouble.or_else(|| demangler.leaves_names().then_some(Reason::NamesTooLaborious));
        (frames, trouble)
    }
}

/// Whether most of these addresses have no symbol because their binary is stripped: it still names what it exports, and what it calls of others.
fn lacks_symbols(tables: &[(&Option<Binary<'_>>, Table)], symbols: &[Option<Symbol>]) -> bool {
    let named = symbols.iter().flatten().count();
    let has = |binary: &Option<Binary<'_>>, table| binary.as_ref().is_some_and(|binary| binary.has_functions(table));
    let has_symbols = tables.iter().any(|(binary, table)| (named == 0 || *table == Table::Full) && has(binary, *table));
    named < symbols.len().div_ceil(2) && !has_symbols
}

/// Gives every location of a recording its frames, those of one binary at a time.
pub(crate) fn fill_by(recording: &mut Recording, mut resolve: impl FnMut(&Mapping, &[VirtOffset]) -> Resolved) -> Vec<Loss> {
    let mut wanted: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, location) in recording.locations.iter_mut().enumerate() {
        match &location.kind {
            LocationKind::Code { mapping, .. } => wanted.entry(mapping.0).or_default().push(at),
            LocationKind::Named { .. } => {}
            LocationKind::Unmapped { address } => location.frames = vec![nameless(format!("[unmapped {address}]"), &Reason::Unmapped)],
            LocationKind::Cut { reason } => {
                location.frames =
                    vec![Frame { function: format!("[{reason}]").into(), file: Text::new(), line: 0, reason: Some(reason.clone()) }];
            }
        }
    }
    let mut losses = Vec::new();
    // Where time runs out, it is for those that matter least.
    let mut wanted: Vec<(u32, Vec<usize>)> = wanted.into_iter().collect();
    wanted.sort_by_key(|(_, locations)| Reverse(locations.len()));
    for (mapping, locations) in wanted {
        let unknown = Mapping { id: longpole_model::stack::MappingId(mapping), path: String::new(), build_id: Vec::new() };
        let mapping = recording.mappings.get(mapping as usize).unwrap_or(&unknown);
        let addresses: Vec<VirtOffset> = locations
            .iter()
            .map(|at| match recording.locations[*at].kind {
                LocationKind::Code { address, .. } => address,
                _ => VirtOffset(0),
            })
            .collect();
        let resolved = resolve(mapping, &addresses);
        let trouble = resolved.loss(mapping);
        for (at, frames) in locations.into_iter().zip(resolved.frames) {
            recording.locations[at].frames = frames;
        }
        if let Some(loss) = trouble {
            loss.merge_into(&mut losses);
        }
    }
    losses
}

fn look_up_dwarf(binary: &Binary<'_>, supplement: Option<&Binary<'_>>, code_start: u64, addresses: &[u64]) -> LinesOfAddresses {
    let (main, supplement) = match (sections(binary), supplement.map(sections).transpose()) {
        (Ok(main), Ok(supplement)) => (main, supplement),
        _ => return LinesOfAddresses { lines: vec![Vec::new(); addresses.len()], trouble: Some(Reason::MalformedDwarf) },
    };
    let dwarf = main.borrow_with_sup(supplement.as_ref(), |section| Slice::new(section, binary.endian()));
    dwarf::look_up(&dwarf, code_start, addresses)
}

fn sections<'d>(binary: &Binary<'d>) -> Result<gimli::DwarfSections<Cow<'d, [u8]>>, Reason> {
    gimli::DwarfSections::load(|id| if is_needed(id) { binary.section(id.name()) } else { Ok(Cow::Borrowed(&[][..])) })
}

/// The sections with names, lines and inlined calls. The others, about variables and types, are not even read.
fn is_needed(section: gimli::SectionId) -> bool {
    use gimli::SectionId::{
        DebugAbbrev, DebugAddr, DebugAranges, DebugInfo, DebugLine, DebugLineStr, DebugRanges, DebugRngLists, DebugStr, DebugStrOffsets,
    };
    matches!(
        section,
        DebugAbbrev
            | DebugAddr
            | DebugAranges
            | DebugInfo
            | DebugLine
            | DebugLineStr
            | DebugRanges
            | DebugRngLists
            | DebugStr
            | DebugStrOffsets
    )
}

/// Puts together what DWARF and the symbol table know of an address. The outermost function is the one that both speak
/// of: DWARF may know only its bare name, `new`, where the symbol table has `alloc::vec::Vec<T>::new`.
fn frames_of(
    lines: Vec<Line>,
    symbol: Option<Symbol>,
    demangler: &mut Demangler<'_>,
    place: impl Fn() -> String,
    unnamed: &Reason,
) -> Vec<Frame> {
    if lines.is_empty() {
        return vec![match symbol {
            Some(symbol) => Frame { function: demangler.name(&symbol.name), file: Text::new(), line: 0, reason: None },
            None => nameless(place(), unnamed),
        }];
    }
    let outermost = lines.len() - 1;
    let frames = lines.into_iter().enumerate().map(|(i, line)| {
        let symbol = symbol.as_ref().filter(|_| i == outermost);
        let function = match (line.name, symbol) {
            (Some(name), _) if name.linkage => Some(demangler.name(&name.text)),
            (Some(name), Some(symbol)) if !name.bare_is_whole => Some(demangler.name(&symbol.name)),
            (Some(name), _) => Some(name.text),
            (None, symbol) => symbol.map(|symbol| demangler.name(&symbol.name)),
        };
        match function {
            Some(function) => Frame { function, file: line.file, line: line.line, reason: None },
            None => Frame { file: line.file, line: line.line, ..nameless(place(), &Reason::NoSymbol) },
        }
    });
    frames.collect()
}

/// Where no line is known of an address, its function's file is that of the function's other addresses, if these agree: else one
/// function would be two.
fn complete_files(frames: &mut [Vec<Frame>]) {
    let all = || frames.iter().flatten();
    let lack: HashSet<&str> = all().filter(|frame| frame.file.is_empty()).map(|frame| frame.function.as_str()).collect();
    let mut files: HashMap<Text, Option<Text>> = HashMap::new();
    for frame in all().filter(|frame| !frame.file.is_empty() && lack.contains(frame.function.as_str())) {
        let known = files.entry(frame.function.clone()).or_insert_with(|| Some(frame.file.clone()));
        if known.as_ref().is_some_and(|file| *file != frame.file) {
            *known = None;
        }
    }
    for frame in frames.iter_mut().flatten().filter(|frame| frame.file.is_empty()) {
        if let Some(Some(file)) = files.get(&frame.function) {
            frame.file.clone_from(file);
        }
    }
}

fn nameless(function: String, reason: &Reason) -> Frame {
    Frame { function: function.into(), file: Text::new(), line: 0, reason: Some(reason.to_string()) }
}

#[cfg(test)]
mod tests {
    use longpole_model::stack::MappingId;
    use object::{Object as _, ObjectSymbol as _};

    use super::*;
    use crate::files::HostFiles;

    #[inline(never)]
    fn named_by_the_table(number: u64) -> u64 {
        std::hint::black_box(number) + 1
    }

    #[test]
    fn much_debug_information_is_not_read_quickly() {
        assert_eq!(named_by_the_table(1), 2);
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let symbol = file.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("named_by_the_table")));
        let symbol = symbol.expect("programs of tests have symbols");
        let build_id = file.build_id().unwrap().unwrap_or_default().to_vec();
        let mapping = Mapping { id: MappingId(0), path: path.to_str().unwrap().to_owned(), build_id };
        let named = |symbolizer: Symbolizer| {
            let resolved = symbolizer.resolve(&mapping, &[VirtOffset(symbol.address())]);
            assert_eq!(resolved.trouble, None);
            let frame = resolved.frames[0].last().unwrap().clone();
            (frame.function.ends_with("tests::named_by_the_table"), frame.line > 0)
        };
        let all = || Symbolizer::new(Box::new(HostFiles));
        assert_eq!(named(all()), (true, true));
        assert_eq!(named(Symbolizer { dwarf_bytes_max: 0, ..all() }), (true, false));
    }

    #[test]
    fn an_address_without_a_line_is_of_its_functions_file_where_that_is_one() {
        let frame = |function: &str, file: &str, line| Frame { function: function.into(), file: file.into(), line, reason: None };
        let mut frames = vec![
            vec![frame("compress", "", 0)],
            vec![frame("index", "slice.rs", 7), frame("compress", "bundle.rs", 9), frame("drop", "a.rs", 1)],
            vec![frame("compress", "bundle.rs", 10), frame("drop", "b.rs", 2)],
            vec![frame("drop", "", 0), frame("main", "", 0)],
        ];
        complete_files(&mut frames);
        assert_eq!(frames[0], [frame("compress", "bundle.rs", 0)]);
        assert_eq!(frames[3], [frame("drop", "", 0), frame("main", "", 0)]);
    }
}
