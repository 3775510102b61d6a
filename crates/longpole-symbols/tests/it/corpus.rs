//! Everything that fuzzing once found interesting, without a fuzzer.

use std::path::Path;

use crate::oracle;

#[test]
fn elf_dwarf() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/elf_dwarf");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        oracle::elf_dwarf(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}
