//! The thread-local variable of OpenTelemetry's thread context (OTEP 4947), and the context record of our own SDK.

use std::io::{Read, Seek};

use longpole_model::ContextRecord;
use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache, ReadRef};
use object::{Architecture, RelocationFlags, RelocationTarget, SectionKind, SymbolIndex, elf};

use super::dynamic_names::has_dynamic_name;

/// The thread-local variable of OTEP 4947.
const THREAD_CONTEXT: &str = "otel_thread_ctx_v1";

/// Where a thread-local variable lies, as far as its binary says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadVariable {
    /// How far from the thread pointer, where the binary is the program itself.
    pub in_program: i64,
    /// Address, as the file states it, of a word that says so while the program runs: where the binary is a library whose storage is
    /// reserved in every thread, and small.
    pub word: Option<u64>,
}

/// Largest initial image of thread-local storage that is looked through.
const THREAD_IMAGE_BYTES_MAX: u64 = 1 << 20;

/// Whether the storage that each thread is given begins with a context record in it, as `docs/formats/span-context.md` asks for.
pub(crate) fn may_publish_context<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> bool {
    let holds = |section: object::Section<'d, '_, R>| {
        let is_large = section.size() > THREAD_IMAGE_BYTES_MAX;
        is_large || section.data().is_ok_and(|image| image.windows(ContextRecord::MAGIC.len()).any(|bytes| bytes == ContextRecord::MAGIC))
    };
    // One without a table of sections does not say.
    file.sections().next().is_none() || file.sections().filter(|section| section.kind() == SectionKind::Tls).any(holds)
}

pub(crate) fn thread_variable<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<ThreadVariable> {
    if !has_dynamic_name(file, THREAD_CONTEXT) {
        return None;
    }
    let symbol = file.dynamic_symbols().find(|symbol| !symbol.is_undefined() && symbol.name() == Ok(THREAD_CONTEXT))?;
    // What the segment of thread-local storage holds: its bytes, then its zeroes.
    let is_of_thread = |kind| matches!(kind, SectionKind::Tls | SectionKind::UninitializedTls);
    let sections = || file.sections().filter(|section| is_of_thread(section.kind()));
    let start = sections().map(|section| section.address()).min()?;
    let end = sections().map(|section| section.address().saturating_add(section.size())).max()?;
    let align = sections().map(|section| section.align()).max()?.max(1);
    let in_segment = symbol.address();
    let in_program = match file.architecture() {
        // Behind the two words that the thread pointer points to.
        Architecture::Aarch64 => 16u64.checked_next_multiple_of(align)?.checked_add(in_segment)?.cast_signed(),
        // Before it.
        _ => in_segment.wrapping_sub((end - start).checked_next_multiple_of(align)?).cast_signed(),
    };
    let is_it = |target, addend: i64| match target {
        RelocationTarget::Symbol(index) => index == symbol.index(),
        // In the binary itself, by its place in the segment.
        _ => addend.cast_unsigned() == in_segment,
    };
    let mut words = file.dynamic_relocations()?.filter_map(|(at, relocation)| {
        let target = match relocation.target() {
            RelocationTarget::Symbol(SymbolIndex(0)) => RelocationTarget::Absolute,
            target => target,
        };
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
        let second = match r_type {
            // A function and its argument, which is the distance where the storage is reserved in every thread.
            elf::R_X86_64_TLSDESC if file.architecture() == Architecture::X86_64 => 8,
            elf::R_AARCH64_TLSDESC if file.architecture() == Architecture::Aarch64 => 8,
            elf::R_X86_64_TPOFF64 if file.architecture() == Architecture::X86_64 => 0,
            elf::R_AARCH64_TLS_TPREL if file.architecture() == Architecture::Aarch64 => 0,
            _ => return None,
        };
        is_it(target, relocation.addend()).then(|| at.wrapping_add(second))
    });
    Some(ThreadVariable { in_program, word: words.next() })
}
