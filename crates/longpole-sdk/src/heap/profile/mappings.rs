//! Where files lie in the memory of this process: `/proc/self/maps`.
//!
//! ```text
//!  7f31a4800000-7f31a4955000 r-xp 00026000 fe:00 1313        /usr/lib/x86_64-linux-gnu/libc.so.6
//!  start        end          mode offset   dev   inode       path
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Code of a file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeMapping {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) offset: u64,
    inode: u64,
    pub(super) path: String,
}

/// A mark behind the path of a file that is no longer in its directory.
const DELETED: &str = " (deleted)";

/// All mappings that hold code, in the order of addresses.
pub(super) fn read() -> io::Result<Vec<CodeMapping>> {
    Ok(parse(&std::fs::read_to_string("/proc/self/maps")?))
}

fn parse(text: &str) -> Vec<CodeMapping> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<CodeMapping> {
    let mut rest = text;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    let (mode, offset, _device, inode) = (word(), word(), word(), word());
    let path = rest.trim_start().to_owned();
    let hex = |digits| usize::from_str_radix(digits, 16).ok();
    let mapping =
        CodeMapping { start: hex(start)?, end: hex(end)?, offset: u64::from_str_radix(offset, 16).ok()?, inode: inode.parse().ok()?, path };
    (mode.contains('x') && !mapping.path.is_empty()).then_some(mapping)
}

impl CodeMapping {
    pub(super) fn holds(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The path without the mark.
    pub(super) fn file_name(&self) -> &str {
        self.path.strip_suffix(DELETED).unwrap_or(&self.path)
    }

    /// The file itself; none if another one lies at its path now, whose functions lie elsewhere.
    pub(super) fn open(&self) -> Option<File> {
        let is_it = |file: &File| file.metadata().is_ok_and(|metadata| metadata.ino() == self.inode);
        // The executable is there even if it was replaced on disk.
        let paths = [self.file_name(), "/proc/self/exe"];
        paths.into_iter().filter(|path| path.starts_with('/')).find_map(|path| File::open(path).ok().filter(is_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_read_and_data_is_not() {
        let maps = parse(
            "55a0-55b0 r--p 00000000 fe:00 17    /bin/with a name\n\
             55b0-55c0 r-xp 00010000 fe:00 17    /bin/with a name (deleted)\n\
             7f00-7f10 rw-p 00000000 00:00 0\n\
             7fff-8000 r-xp 00000000 00:00 0                          [vdso]\n\
             nonsense\n",
        );
        let of = |start, end, offset, inode, path: &str| CodeMapping { start, end, offset, inode, path: path.to_owned() };
        assert_eq!(maps, [of(0x55b0, 0x55c0, 0x10000, 17, "/bin/with a name (deleted)"), of(0x7fff, 0x8000, 0, 0, "[vdso]")]);
        assert_eq!(maps[0].file_name(), "/bin/with a name");
        assert!(maps[0].holds(0x55b0) && !maps[0].holds(0x55c0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no maps")]
    fn this_program_is_mapped_and_can_be_opened() {
        let here = parse as *const () as usize;
        let maps = read().unwrap();
        let ours = maps.iter().find(|mapping| mapping.holds(here)).unwrap();
        assert!(ours.open().is_some());
        assert!(CodeMapping { inode: ours.inode + 1, ..ours.clone() }.open().is_none());
    }
}
