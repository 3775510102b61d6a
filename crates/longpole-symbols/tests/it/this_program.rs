//! This very program: Rust, as it is compiled every day.

use longpole_model::address::VirtOffset;
use longpole_model::stack::{Frame, Mapping, MappingId};
use longpole_symbols::{HostFiles, Resolved, Symbolizer};
use object::{Object, ObjectSymbol};

#[inline(always)]
fn deepest(seed: u64) -> u64 {
    std::hint::black_box(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

const DEEPEST_LINE: u32 = line!() - 3;

#[inline(always)]
fn middle(seed: u64) -> u64 {
    deepest(seed) ^ 1
}

const MIDDLE_LINE: u32 = line!() - 3;

#[inline(never)]
pub(crate) fn outermost_of_three(seed: u64) -> u64 {
    middle(seed).rotate_left(7)
}

const OUTERMOST_LINE: u32 = line!() - 3;

/// Every address of the function, resolved.
fn resolve_all() -> Option<Resolved> {
    let path = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("outermost_of_three")))?;
    let addresses: Vec<VirtOffset> = (symbol.address()..symbol.address() + symbol.size()).map(VirtOffset).collect();
    let build_id = file.build_id().unwrap().unwrap_or_default().to_vec();
    let mapping = Mapping { id: MappingId(0), path: path.to_str().unwrap().to_owned(), build_id };
    Some(Symbolizer::new(Box::new(HostFiles)).resolve(&mapping, &addresses))
}

#[test]
fn a_function_of_this_program_is_found_with_what_was_inlined_into_it() {
    assert_ne!(outermost_of_three(1), 0);
    let Some(resolved) = resolve_all() else {
        println!("skipped: this program is stripped");
        return;
    };
    assert_eq!(resolved.trouble, None);
    let is_at = |frame: &Frame, function: &str, line: u32| {
        frame.function.ends_with(function) && frame.file.ends_with("tests/it/this_program.rs") && frame.line == line
    };
    for frames in &resolved.frames {
        let outermost = frames.last().unwrap();
        assert_eq!(outermost.function, "it::this_program::outermost_of_three");
        assert!(outermost.file.ends_with("tests/it/this_program.rs"), "{outermost:?}");
        assert!(frames.iter().all(|frame| frame.reason.is_none()));
    }
    let three = resolved.frames.iter().find(|frames| {
        let [.., deepest, middle, outermost] = &frames[..] else { return false };
        is_at(deepest, "deepest", DEEPEST_LINE)
            && is_at(middle, "middle", MIDDLE_LINE)
            && is_at(outermost, "outermost_of_three", OUTERMOST_LINE)
    });
    assert!(three.is_some(), "{:#?}", resolved.frames);
}
