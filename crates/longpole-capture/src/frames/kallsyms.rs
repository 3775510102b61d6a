//! The kernel's list of its functions, `/proc/kallsyms` (proc_kallsyms(5)), and a copy of it that is valid until the next boot.
//!
//! The kernel takes about 50 ms of CPU time to write the list, more than all the rest of a short recording. So a copy is kept in a folder
//! of the user and searched there, which reads a few dozen pages, as long as the machine runs and has the same modules. The copy lacks functions
//! that came later (BPF programs, trampolines): an address that is not in the copy causes the list to be read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use longpole_symbols::kernel::{KernelSymbols, KernelSymbolsCopy};

/// Where the kernel lists its symbols.
pub(crate) const LIST: &str = "/proc/kallsyms";

/// Most bytes of the list: with every driver loaded it has 15 MB.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Prefix of the names of copies; the boot and the modules follow.
const PREFIX: &str = "kernel-functions-";

/// A copy of the list in its file.
pub(crate) type Copy = KernelSymbolsCopy<Box<dyn FnMut(u64, &mut [u8]) -> io::Result<usize> + Send>>;

/// The list, and where its copies are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kallsyms {
    /// The folder of the copies.
    folder: Option<PathBuf>,
}

impl Kallsyms {
    pub(crate) fn new(folder: Option<PathBuf>) -> Kallsyms {
        Kallsyms { folder }
    }

    /// The copy for this boot and these modules, if there is one.
    pub(crate) fn copy(&self) -> Option<Copy> {
        let file = File::open(self.path()?).ok()?;
        let bytes = file.metadata().ok()?.len();
        KernelSymbolsCopy::open(Box::new(move |offset, into: &mut [u8]| file.read_at(into, offset)), bytes)
    }

    /// Reads the list and keeps a copy, if it can: a copy only saves time.
    pub(crate) fn read(&self) -> Option<KernelSymbols> {
        let symbols = KernelSymbols::parse(&bytes_of(Path::new(LIST))?);
        if let Some(path) = self.path().filter(|_| !symbols.is_empty()) {
            keep(&path, &symbols).ok();
        }
        Some(symbols)
    }

    fn path(&self) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        // Without modules there is no such file.
        let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
        let mut hash = DefaultHasher::new();
        for module in modules.lines() {
            // Name, size, use count, users, state, address.
            let words: Vec<&str> = module.split_whitespace().collect();
            [0, 1, 5].map(|place| words.get(place)).hash(&mut hash);
        }
        Some(folder.join(format!("{PREFIX}{}-{:016x}", boot.trim(), hash.finish())))
    }
}

fn bytes_of(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LIST_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Writes the copy, readable by this user only, and removes those of earlier boots.
fn keep(path: &Path, symbols: &KernelSymbols) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            fs::remove_file(entry.path()).ok();
        }
    }
    let unfinished = folder.join(format!(".{PREFIX}{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).and_then(|mut file| {
        file.write_all(&symbols.to_bytes())?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        fs::remove_file(&unfinished).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_readable_by_its_user_only_and_replaces_older_ones() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("longpole-kernel-list-{}", std::process::id()));
        let list = Kallsyms::new(Some(folder.join("cache")));
        assert!(list.copy().is_none());
        let symbols = KernelSymbols::parse(b"ffffffff81000000 T start\nffffffff81000100 t do_read\n");
        let path = list.path().unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let older = path.with_file_name(format!("{PREFIX}of-another-boot"));
        fs::write(&older, "old").unwrap();
        keep(&path, &symbols).unwrap();
        assert_eq!(list.copy().unwrap().name(0xffff_ffff_8100_0104).as_deref(), Some("do_read"));
        assert!(!older.exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "damaged").unwrap();
        assert!(list.copy().is_none());
        fs::remove_dir_all(folder).unwrap();
        assert!(Kallsyms::default().copy().is_none());
    }
}
