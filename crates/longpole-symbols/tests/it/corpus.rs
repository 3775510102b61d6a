//! Everything that fuzzing once found interesting, without a fuzzer.

use std::path::Path;

use crate::{oracle, oracle_jitdump, oracle_kernel, oracle_perf_map, oracle_python};

fn corpus(name: &str, oracle: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        oracle(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}

#[test]
fn elf_dwarf() {
    corpus("elf_dwarf", oracle::elf_dwarf);
}

#[test]
fn jitdump() {
    corpus("jitdump", oracle_jitdump::jitdump);
}

#[test]
fn kernel_symbols() {
    corpus("kernel_symbols", oracle_kernel::kernel_symbols);
}

#[test]
fn perf_map() {
    corpus("perf_map", oracle_perf_map::perf_map);
}

#[test]
fn python_memory() {
    corpus("python_memory", oracle_python::python_memory);
}
