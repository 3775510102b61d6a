//! The kernel's list of its functions, `/proc/kallsyms`, and a copy of it that is good until the next boot.
//!
//! The kernel takes some 50 ms of a CPU to spell the list, which is more than all else that a short recording takes. So what was read
//! is kept in a folder of the user's, and read from there, in a few milliseconds, as long as the machine runs and has the same modules.
//! What comes and goes meanwhile (BPF programs, trampolines) is not kept: who meets an address that the copy does not know reads the list.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use longpole_symbols::kernel::KernelSymbols;

/// Where a kernel tells its symbols.
pub(crate) const LIST: &str = "/proc/kallsyms";

/// Most bytes of the list: that of a kernel with every driver loaded has 15 MB.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// What the names of copies begin with; behind it stand the boot and the modules.
const PREFIX: &str = "kernel-functions-";

/// Where the list is to be had.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kallsyms {
    /// Where copies lie.
    folder: Option<PathBuf>,
}

impl Kallsyms {
    pub(crate) fn new(folder: Option<PathBuf>) -> Kallsyms {
        Kallsyms { folder }
    }

    /// The copy, if there is one of this boot and these modules.
    pub(crate) fn copy(&self) -> Option<KernelSymbols> {
        KernelSymbols::from_bytes(&bytes_of(&self.path()?)?)
    }

    /// Reads the list and keeps a copy. A copy that cannot be made is none: it would only have saved time.
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
            // Name, size, how often it is used, by whom, its state, its address.
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

/// Writes the copy for its user alone, and takes away those of earlier boots.
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
    fn a_copy_is_its_users_alone_and_takes_the_place_of_older_ones() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("longpole-kernel-list-{}", std::process::id()));
        let list = Kallsyms::new(Some(folder.join("cache")));
        assert_eq!(list.copy(), None);
        let symbols = KernelSymbols::parse(b"ffffffff81000000 T start\nffffffff81000100 t do_read\n");
        let path = list.path().unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let older = path.with_file_name(format!("{PREFIX}of-another-boot"));
        fs::write(&older, "old").unwrap();
        keep(&path, &symbols).unwrap();
        assert_eq!(list.copy(), Some(symbols));
        assert!(!older.exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "damaged").unwrap();
        assert_eq!(list.copy(), None);
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(Kallsyms::default().copy(), None);
    }
}
