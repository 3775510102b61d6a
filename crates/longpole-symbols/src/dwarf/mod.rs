//! Lines and inlined calls, from DWARF 2 to 5.
//!
//! The addresses of a binary are looked up together: a unit that holds none of them is never opened, and one that does is
//! walked over once. Nothing outlives the look-up, so everything borrows from the sections.
//!
//! ```text
//! unit                                  covers the address        .debug_aranges, or its own ranges
//!   subprogram         hash_block       covers it                 → link 0
//!     inlined_subroutine  mix           covers it, called at :12  → link 1
//!       inlined_subroutine  rotate      covers it, called at :40  → link 2
//! line program                          row at the address: :7
//!
//! frames, innermost first: rotate :7, mix :40, hash_block :12
//! ```
//!
//! The bytes may be anyone's. Trees are walked without recursion, and every step is paid from an account that is filled
//! by the size of the sections, because references allow a small file to describe an endless amount of work.

mod preflight;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, Reader, Section, UnitRef};
use longpole_model::Text;

use crate::limits::{
    CLAIMS_MAX, INLINE_DEPTH_MAX, NAME_BYTES_MAX, NAME_HOPS_MAX, OPEN_UNITS_MAX, PATH_BYTES_MAX, WORK_PER_ADDRESS, WORK_PER_BYTE, clipped,
};
use crate::reason::Reason;

pub(crate) type Slice<'d> = gimli::EndianSlice<'d, gimli::RunTimeEndian>;
type Unit<'d> = gimli::Unit<Slice<'d>>;
type Value<'d> = AttributeValue<Slice<'d>>;

/// One line of one address, as DWARF has it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The function.
    pub(crate) name: Option<Name>,
    /// Source file, empty where unknown; the same text for all lines of a file.
    pub(crate) file: Text,
    /// Source line, 0 where unknown.
    pub(crate) line: u32,
}

/// A function's name.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    /// The name; the same text for all lines of a function.
    pub(crate) text: Text,
    /// Whether it is the linker's name, mangled but whole; else the bare name in the source, without what it is in.
    pub(crate) linkage: bool,
    /// Whether a bare name in this language is all there is, as in C.
    pub(crate) bare_is_whole: bool,
}

/// What was found.
pub(crate) struct LinesOfAddresses {
    /// For each address its lines, innermost first; none where DWARF does not know the address.
    pub(crate) lines: Vec<Vec<Line>>,
    /// What was wrong on the way, if anything.
    pub(crate) trouble: Option<Reason>,
}

/// Why a unit was given up.
enum Stop {
    /// It contradicts itself; others may be good.
    Malformed,
    /// The account is empty.
    Laborious,
}

impl From<gimli::Error> for Stop {
    fn from(_: gimli::Error) -> Self {
        Stop::Malformed
    }
}

/// Steps that are left.
struct Account(Cell<u64>);

impl Account {
    fn pay(&self, steps: usize) -> Result<(), Stop> {
        let left = self.0.get().checked_sub(steps as u64).ok_or(Stop::Laborious)?;
        self.0.set(left);
        Ok(())
    }
}

/// Looks up addresses, which are sorted and different. Nothing below `code_start` is code: the linker moves there what
/// it discards, and leaves its description behind.
pub(crate) fn look_up(dwarf: &gimli::Dwarf<Slice<'_>>, code_start: u64, addresses: &[u64]) -> LinesOfAddresses {
    let bytes = [
        dwarf.debug_info.reader().len(),
        dwarf.debug_line.reader().len(),
        dwarf.debug_abbrev.reader().len(),
        dwarf.debug_aranges.reader().len(),
        dwarf.ranges.debug_ranges().reader().len(),
        dwarf.ranges.debug_rnglists().reader().len(),
        dwarf.debug_str.reader().len(),
    ];
    let steps = bytes.iter().map(|bytes| *bytes as u64 * WORK_PER_BYTE).sum::<u64>() + addresses.len() as u64 * WORK_PER_ADDRESS;
    let account = Account(Cell::new(steps));
    let mut found = LinesOfAddresses { lines: vec![Vec::new(); addresses.len()], trouble: None };
    match fill(dwarf, &account, code_start, addresses, &mut found) {
        Ok(()) => {}
        Err(Stop::Malformed) => found.trouble = Some(Reason::MalformedDwarf),
        Err(Stop::Laborious) => found.trouble = Some(Reason::DwarfTooLaborious),
    }
    found
}

fn fill(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    account: &Account,
    code_start: u64,
    addresses: &[u64],
    found: &mut LinesOfAddresses,
) -> Result<(), Stop> {
    let (debug, broken) = Debug::new(dwarf, account)?;
    if broken {
        found.trouble = Some(Reason::MalformedDwarf);
    }
    let claims = debug.claims(code_start, addresses, found)?;
    for claims in claims.chunk_by(|a, b| a.unit == b.unit) {
        // Another unit may have claimed some of them too, and described them.
        let wanted: Vec<usize> = claims.iter().map(|claim| claim.address).filter(|at| found.lines[*at].is_empty()).collect();
        if wanted.is_empty() {
            continue;
        }
        let unit_addresses: Vec<u64> = wanted.iter().map(|at| addresses[*at]).collect();
        match debug.describe(claims[0].unit, code_start, &unit_addresses) {
            Ok(lines) => {
                for (at, lines) in wanted.into_iter().zip(lines) {
                    found.lines[at] = lines;
                }
            }
            Err(Stop::Malformed) => found.trouble = Some(Reason::MalformedDwarf),
            Err(Stop::Laborious) => return Err(Stop::Laborious),
        }
    }
    Ok(())
}

/// A unit says that it holds an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    unit: usize,
    address: usize,
}

/// One file's DWARF, its units in order of their offsets.
struct Debug<'a, 'd> {
    dwarf: &'a gimli::Dwarf<Slice<'d>>,
    headers: Vec<gimli::UnitHeader<Slice<'d>>>,
    account: &'a Account,
    /// Shared by the units that name the same table.
    abbreviations: RefCell<HashMap<usize, Arc<gimli::Abbreviations>>>,
    opened: RefCell<HashMap<usize, Rc<Root<'d>>>>,
    /// Names found before, by unit and entry: the same function is inlined in many places.
    names: RefCell<HashMap<(usize, usize), Option<Name>>>,
    /// What several debug files share, for references into it.
    supplement: Option<Box<Debug<'a, 'd>>>,
}

/// A unit with what its first entry says.
struct Root<'d> {
    unit: Unit<'d>,
    line_program: Option<gimli::DebugLineOffset>,
    extent: Extent<'d>,
    language: Option<gimli::DwLang>,
}

/// The attributes that say which addresses an entry covers.
#[derive(Clone, Copy, Default)]
struct Extent<'d> {
    low: Option<Value<'d>>,
    high: Option<Value<'d>>,
    ranges: Option<Value<'d>>,
}

impl<'d> Extent<'d> {
    /// Remembers the attribute if it is one of these.
    fn take(&mut self, attribute: &gimli::Attribute<Slice<'d>>) -> bool {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = Some(attribute.value()),
            gimli::DW_AT_high_pc => self.high = Some(attribute.value()),
            gimli::DW_AT_ranges => self.ranges = Some(attribute.value()),
            _ => return false,
        }
        true
    }
}

/// A function or an inlined call that covers an address.
#[derive(Clone, Copy)]
struct Link {
    /// Its entry.
    entry: gimli::UnitOffset,
    /// Which visit of the walk found it.
    visit: usize,
    /// Where it was inlined into the link before.
    call_file: u64,
    call_line: u32,
}

impl<'a, 'd> Debug<'a, 'd> {
    /// Finds the units; also says whether the list breaks off.
    fn new(dwarf: &'a gimli::Dwarf<Slice<'d>>, account: &'a Account) -> Result<(Self, bool), Stop> {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        let broken = loop {
            account.pay(1)?;
            match units.next() {
                Ok(Some(header)) => headers.push(header),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        let supplement = match dwarf.sup() {
            Some(sup) => Some(Box::new(Debug::new(sup, account)?.0)),
            None => None,
        };
        let debug = Debug {
            dwarf,
            headers,
            account,
            abbreviations: RefCell::default(),
            opened: RefCell::default(),
            names: RefCell::default(),
            supplement,
        };
        Ok((debug, broken))
    }

    /// The unit that holds this offset of `.debug_info`, and the offset inside it.
    fn unit_at(&self, offset: gimli::DebugInfoOffset) -> Option<(usize, gimli::UnitOffset)> {
        let after = self.headers.partition_point(|header| header.debug_info_offset().is_some_and(|start| start.0 <= offset.0));
        let unit = after.checked_sub(1)?;
        Some((unit, offset.to_unit_offset(&self.headers[unit])?))
    }

    /// Which units hold which addresses: by `.debug_aranges` where a unit is in it, else by its first entry.
    fn claims(&self, code_start: u64, addresses: &[u64], found: &mut LinesOfAddresses) -> Result<Vec<Claim>, Stop> {
        let mut claims = Vec::new();
        let mut claimed = vec![0; addresses.len()];
        let mut listed = vec![false; self.headers.len()];
        let mut claim = |unit: usize, range: gimli::Range| {
            for address in inside(addresses, code_start, range) {
                self.account.pay(1)?;
                if claimed[address] < CLAIMS_MAX {
                    claimed[address] += 1;
                    claims.push(Claim { unit, address });
                }
            }
            Ok::<(), Stop>(())
        };
        let mut tables = self.dwarf.debug_aranges.headers();
        loop {
            self.account.pay(1)?;
            // A broken table is no loss: its units say themselves what they cover.
            let Ok(Some(table)) = tables.next() else { break };
            let Some((unit, _)) = self.unit_at(table.debug_info_offset()) else { continue };
            if self.headers[unit].debug_info_offset() != Some(table.debug_info_offset()) {
                continue;
            }
            let mut entries = table.entries();
            listed[unit] = loop {
                self.account.pay(1)?;
                match entries.next() {
                    Ok(Some(entry)) => claim(unit, entry.range())?,
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
        }
        for unit in (0..self.headers.len()).filter(|unit| !listed[*unit]) {
            let ranges = self.read_root(self.headers[unit]).and_then(|root| {
                let mut ranges = Vec::new();
                self.ranges(root.unit.unit_ref(self.dwarf), &root.extent, &mut ranges)?;
                Ok(ranges)
            });
            match ranges {
                Ok(ranges) => ranges.into_iter().try_for_each(|range| claim(unit, range))?,
                Err(Stop::Malformed) => found.trouble = Some(Reason::MalformedDwarf),
                Err(Stop::Laborious) => return Err(Stop::Laborious),
            }
        }
        claims.sort_unstable();
        claims.dedup();
        Ok(claims)
    }

    /// A unit's first entry.
    fn open(&self, unit: usize) -> Result<Rc<Root<'d>>, Stop> {
        if let Some(root) = self.opened.borrow().get(&unit) {
            return Ok(Rc::clone(root));
        }
        let root = Rc::new(self.read_root(self.headers[unit])?);
        let mut opened = self.opened.borrow_mut();
        if opened.len() >= OPEN_UNITS_MAX {
            opened.clear();
        }
        opened.insert(unit, Rc::clone(&root));
        Ok(root)
    }

    /// What gimli's own constructor does, except for the line program, whose header is large and is read later, if at all.
    fn read_root(&self, header: gimli::UnitHeader<Slice<'d>>) -> Result<Root<'d>, Stop> {
        let abbreviations = self.abbreviations(&header)?;
        let encoding = header.encoding();
        let mut unit = Unit {
            abbreviations: Arc::clone(&abbreviations),
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(encoding, gimli::DwarfFileType::Main),
            addr_base: gimli::DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, gimli::DwarfFileType::Main),
            rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, gimli::DwarfFileType::Main),
            line_program: None,
            dwo_id: None,
            header,
        };
        let (mut name, mut comp_dir, mut line_program, mut language) = (None, None, None, None);
        let mut extent = Extent::default();
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let abbreviation = entries.read_abbreviation()?.ok_or(Stop::Malformed)?;
        self.account.pay(1 + abbreviation.attributes().len())?;
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            if extent.take(&attribute) {
                continue;
            }
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_name, value) => name = Some(value),
                (gimli::DW_AT_comp_dir, value) => comp_dir = Some(value),
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => line_program = Some(offset),
                (gimli::DW_AT_language, AttributeValue::Language(value)) => language = Some(value),
                (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                (gimli::DW_AT_rnglists_base | gimli::DW_AT_GNU_ranges_base, AttributeValue::DebugRngListsBase(base)) => {
                    unit.rnglists_base = base;
                }
                _ => {}
            }
        }
        unit.name = self.text(&unit, name)?;
        unit.comp_dir = self.text(&unit, comp_dir)?;
        if let Some(low) = extent.low
            && let Some(address) = self.dwarf.attr_address(&unit, low)?
        {
            unit.low_pc = address;
        }
        Ok(Root { unit, line_program, extent, language })
    }

    fn text(&self, unit: &Unit<'d>, value: Option<Value<'d>>) -> Result<Option<Slice<'d>>, Stop> {
        let text = value.and_then(|value| self.dwarf.attr_string(unit, value).ok());
        self.account.pay(text.map_or(0, |text| text.len()))?;
        Ok(text)
    }

    fn abbreviations(&self, header: &gimli::UnitHeader<Slice<'d>>) -> Result<Arc<gimli::Abbreviations>, Stop> {
        let offset = header.debug_abbrev_offset();
        if let Some(known) = self.abbreviations.borrow().get(&offset.0) {
            return Ok(Arc::clone(known));
        }
        // Tables may overlap: a unit for each byte of a long one would have it read a million times.
        self.account.pay(preflight::abbreviations_length(self.dwarf.debug_abbrev.reader(), offset))?;
        let abbreviations = Arc::new(header.abbreviations(&self.dwarf.debug_abbrev)?);
        let mut known = self.abbreviations.borrow_mut();
        if known.len() >= OPEN_UNITS_MAX {
            known.clear();
        }
        known.insert(offset.0, Arc::clone(&abbreviations));
        Ok(abbreviations)
    }

    /// The address ranges of an entry.
    fn ranges(&self, unit: UnitRef<'_, Slice<'d>>, extent: &Extent<'d>, into: &mut Vec<gimli::Range>) -> Result<(), Stop> {
        into.clear();
        if let Some(value) = extent.ranges {
            if let Some(mut ranges) = unit.attr_ranges(value)? {
                // Entry by entry: a list may be long and hold no range at all.
                while let Some(entry) = ranges.next_raw()? {
                    self.account.pay(1)?;
                    into.extend(ranges.convert_raw(entry)?);
                }
            }
            return Ok(());
        }
        let (Some(low), Some(high)) = (extent.low, extent.high) else { return Ok(()) };
        let Some(begin) = unit.attr_address(low)? else { return Ok(()) };
        let end = match unit.attr_address(high)? {
            Some(end) => Some(end),
            None => high.udata_value().and_then(|size| begin.checked_add(size)),
        };
        if let Some(end) = end {
            into.push(gimli::Range { begin, end });
        }
        Ok(())
    }

    /// The lines of addresses that one unit claims.
    fn describe(&self, unit: usize, code_start: u64, addresses: &[u64]) -> Result<Vec<Vec<Line>>, Stop> {
        let root = self.open(unit)?;
        let unit_ref = root.unit.unit_ref(self.dwarf);
        let program = self.line_program(&root)?;
        let rows = match &program {
            Some(program) => self.rows(program.clone(), code_start, addresses)?,
            None => vec![None; addresses.len()],
        };
        let chains = self.chains(unit_ref, code_start, addresses)?;
        let mut paths = Paths { debug: self, unit: unit_ref, program: program.as_ref(), known: HashMap::new() };
        let mut all = Vec::with_capacity(addresses.len());
        for (chain, row) in chains.into_iter().zip(rows) {
            let (mut file, mut line) = match row {
                Some((file, line)) => (paths.path(file)?, line),
                None => (Text::new(), 0),
            };
            let mut lines = Vec::with_capacity(chain.len().max(1));
            for link in chain.iter().rev() {
                let name = self.name(unit, link.entry, NAME_HOPS_MAX)?;
                lines.push(Line { name, file, line });
                (file, line) = (paths.path(link.call_file)?, link.call_line);
            }
            if chain.is_empty() && row.is_some() {
                lines.push(Line { name: None, file, line });
            }
            all.push(lines);
        }
        Ok(all)
    }

    fn line_program(&self, root: &Root<'d>) -> Result<Option<gimli::IncompleteLineProgram<Slice<'d>>>, Stop> {
        let Some(offset) = root.line_program else { return Ok(None) };
        self.account.pay(preflight::check(self.dwarf.debug_line.reader(), offset).ok_or(Stop::Malformed)?)?;
        let unit = &root.unit;
        Ok(Some(self.dwarf.debug_line.program(offset, unit.header.address_size(), unit.comp_dir, unit.name)?))
    }

    /// File and line of each address, by running the line program once.
    fn rows(
        &self,
        program: gimli::IncompleteLineProgram<Slice<'d>>,
        code_start: u64,
        addresses: &[u64],
    ) -> Result<Vec<Option<(u64, u32)>>, Stop> {
        let mut found = vec![None; addresses.len()];
        self.account.pay(program.header().raw_program_buf().len())?;
        let mut rows = program.rows();
        // The row before in the current sequence, and the first address that is not behind it.
        let mut before: Option<(u64, u64, u32)> = None;
        let mut next = 0;
        while let Some((_, row)) = rows.next_row()? {
            self.account.pay(1)?;
            let address = row.address();
            match before {
                None => next = addresses.partition_point(|wanted| *wanted < address),
                Some((start, file, line)) if start >= code_start => {
                    while next < addresses.len() && addresses[next] < address {
                        // Code that no line is the source of, as where two are merged, keeps the file of whatever stands before it.
                        found[next] = (line > 0).then_some((file, line));
                        next += 1;
                    }
                }
                Some(_) => {}
            }
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            before = (!row.end_sequence()).then_some((address, row.file_index(), line));
        }
        Ok(found)
    }

    /// For each address the functions around it, outermost first, by one walk over the unit's tree.
    fn chains(&self, unit: UnitRef<'_, Slice<'d>>, code_start: u64, addresses: &[u64]) -> Result<Vec<Vec<Link>>, Stop> {
        let mut chains: Vec<Vec<Link>> = vec![Vec::new(); addresses.len()];
        // Functions and inlined calls that the walk is inside of: their depth and visit.
        let mut open: Vec<(isize, usize)> = Vec::new();
        let mut ranges = Vec::new();
        let mut visits = 0;
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (entry, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else {
                self.account.pay(1)?;
                continue;
            };
            self.account.pay(1 + abbreviation.attributes().len())?;
            while open.pop_if(|(opened, _)| *opened >= depth).is_some() {}
            let inlined = match abbreviation.tag() {
                gimli::DW_TAG_subprogram => false,
                gimli::DW_TAG_inlined_subroutine => true,
                _ => {
                    entries.skip_attributes(abbreviation.attributes())?;
                    continue;
                }
            };
            let mut extent = Extent::default();
            let (mut call_file, mut call_line) = (0, 0);
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                if extent.take(&attribute) {
                    continue;
                }
                match (attribute.name(), attribute.value()) {
                    (gimli::DW_AT_call_file, AttributeValue::FileIndex(index)) => call_file = index,
                    (gimli::DW_AT_call_file, value) => call_file = value.udata_value().unwrap_or(0),
                    (gimli::DW_AT_call_line, value) => {
                        call_line = value.udata_value().and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
                    }
                    _ => {}
                }
            }
            visits += 1;
            let around = open.last().map(|(_, visit)| *visit);
            open.push((depth, visits));
            self.ranges(unit, &extent, &mut ranges)?;
            for range in &ranges {
                for at in inside(addresses, code_start, *range) {
                    self.account.pay(1)?;
                    let chain = &mut chains[at];
                    // An inlined call belongs to the entry around it. Whatever else claims the address came second.
                    let fits = if inlined { chain.last().map(|link| link.visit) == around && around.is_some() } else { chain.is_empty() };
                    if fits && chain.len() < INLINE_DEPTH_MAX {
                        chain.push(Link { entry, visit: visits, call_file, call_line });
                    }
                }
            }
        }
        Ok(chains)
    }

    /// The name of an entry: its own, or that of the entry it is an instance or the definition of.
    fn name(&self, unit: usize, entry: gimli::UnitOffset, hops: u32) -> Result<Option<Name>, Stop> {
        if let Some(known) = self.names.borrow().get(&(unit, entry.0)) {
            return Ok(known.clone());
        }
        let name = self.read_name(unit, entry, hops)?;
        self.names.borrow_mut().insert((unit, entry.0), name.clone());
        Ok(name)
    }

    fn read_name(&self, unit: usize, entry: gimli::UnitOffset, hops: u32) -> Result<Option<Name>, Stop> {
        let root = self.open(unit)?;
        let mut entries = root.unit.entries_raw(Some(entry))?;
        let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
        self.account.pay(1 + abbreviation.attributes().len())?;
        let (mut linkage, mut bare, mut origin) = (None, None, None);
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => linkage = Some(attribute.value()),
                gimli::DW_AT_name => bare = Some(attribute.value()),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => origin = Some(attribute.value()),
                _ => {}
            }
        }
        // References may lead into the middle of a long text, again and again.
        self.account.pay(entries.next_offset().0 - entry.0)?;
        if let Some(name) = self.as_name(&root, linkage, true)? {
            return Ok(Some(name));
        }
        let bare = self.as_name(&root, bare, false)?;
        let origin = match origin {
            Some(origin) if hops > 0 => self.follow(unit, origin, hops - 1)?,
            _ => None,
        };
        Ok(match (origin, bare) {
            (Some(origin), Some(bare)) => Some(if origin.linkage { origin } else { bare }),
            (origin, bare) => origin.or(bare),
        })
    }

    fn as_name(&self, root: &Root<'d>, value: Option<Value<'d>>, linkage: bool) -> Result<Option<Name>, Stop> {
        let text = self.text(&root.unit, value)?;
        let bare_is_whole = !matches!(root.language, Some(language) if has_namespaces(language));
        let text = text.filter(|text| !text.is_empty()).map(|text| Text::from(clipped(&text.to_string_lossy(), NAME_BYTES_MAX)));
        Ok(text.map(|text| Name { text, linkage, bare_is_whole }))
    }

    fn follow(&self, unit: usize, reference: Value<'d>, hops: u32) -> Result<Option<Name>, Stop> {
        let (debug, target) = match reference {
            AttributeValue::UnitRef(entry) => (self, Some((unit, entry))),
            AttributeValue::DebugInfoRef(offset) => (self, self.unit_at(offset)),
            AttributeValue::DebugInfoRefSup(offset) => match &self.supplement {
                Some(supplement) => (&**supplement, supplement.unit_at(offset)),
                None => (self, None),
            },
            _ => (self, None),
        };
        match target {
            Some((unit, entry)) => debug.name(unit, entry, hops),
            None => Ok(None),
        }
    }
}

/// Languages in which a function's bare name says too little, so that the symbol table's name, where it has one, is
/// better.
fn has_namespaces(language: gimli::DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_Rust
            | gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20
            | gimli::DW_LANG_D
            | gimli::DW_LANG_Swift
    )
}

/// Indexes of the addresses in a range of code.
fn inside(addresses: &[u64], code_start: u64, range: gimli::Range) -> std::ops::Range<usize> {
    if range.begin < code_start {
        return 0..0;
    }
    let start = addresses.partition_point(|address| *address < range.begin);
    let length = addresses[start..].partition_point(|address| *address < range.end);
    start..start + length
}

/// Paths of a unit's source files, by their number.
struct Paths<'p, 'a, 'd> {
    debug: &'p Debug<'a, 'd>,
    unit: UnitRef<'p, Slice<'d>>,
    program: Option<&'p gimli::IncompleteLineProgram<Slice<'d>>>,
    known: HashMap<u64, Text>,
}

impl Paths<'_, '_, '_> {
    /// The path, or an empty one.
    fn path(&mut self, index: u64) -> Result<Text, Stop> {
        if let Some(known) = self.known.get(&index) {
            return Ok(known.clone());
        }
        let mut path = String::new();
        if let Some(header) = self.program.map(|program| program.header())
            && let Some(file) = header.file(index)
        {
            if let Some(base) = self.unit.comp_dir {
                self.join(&mut path, base)?;
            }
            if let Some(directory) = file.directory(header)
                && let Ok(directory) = self.unit.attr_string(directory)
            {
                self.join(&mut path, directory)?;
            }
            if let Ok(name) = self.unit.attr_string(file.path_name()) {
                self.join(&mut path, name)?;
            }
        }
        let path = Text::from(clipped(&path, PATH_BYTES_MAX));
        self.known.insert(index, path.clone());
        Ok(path)
    }

    /// Appends a part of a path; an absolute one starts over.
    fn join(&self, path: &mut String, part: Slice<'_>) -> Result<(), Stop> {
        self.debug.account.pay(part.len())?;
        let part = part.to_string_lossy();
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
            path.push('/');
        }
        path.push_str(clipped(&part, PATH_BYTES_MAX));
        Ok(())
    }
}
