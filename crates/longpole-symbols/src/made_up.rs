//! ELF files for tests, of a few sections.

/// Where the beginning of the file lies in memory.
pub(crate) const BASE: u64 = 0x40_0000;

/// A section: its name, its kind, where it lies in the file, and its bytes. One of kind 8 has none in the file.
pub(crate) type MadeUpSection<'a> = (&'a str, u32, usize, &'a [u8]);

/// A program for this kind of machine with these sections, and one segment that holds all of them and may be executed.
pub(crate) fn elf(sections: &[MadeUpSection<'_>]) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut header = |name: usize, kind: u32, at: usize, bytes: usize, link: u32| {
        headers.extend([name as u32, kind].map(u32::to_le_bytes).concat());
        headers.extend([2, BASE + at as u64, at as u64, bytes as u64].map(u64::to_le_bytes).concat());
        headers.extend([link, 1].map(u32::to_le_bytes).concat());
        headers.extend([8u64, if kind == 11 { 24 } else { 0 }].map(u64::to_le_bytes).concat());
    };
    let number_of = |name: &str| sections.iter().position(|section| section.0 == name).map_or(0, |place| place as u32 + 1);
    for (name, kind, at, bytes) in sections {
        let link = if *kind == 11 { number_of(".dynstr") } else { 0 };
        header(names.len(), *kind, *at, bytes.len(), link);
        names.extend(name.bytes().chain([0]));
        if *kind != 8 {
            file.resize(file.len().max(at + bytes.len()), 0);
            file[*at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
    let names_at = file.len();
    header(names.len(), 3, names_at, names.len() + 10, 0);
    names.extend(b".shstrtab\0");
    file.extend(&names);
    file.resize(file.len().next_multiple_of(8), 0);
    let headers_at = file.len() as u64;
    file.extend(&headers);
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut start = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0".to_vec();
    start.extend([&machine.to_le_bytes()[..], &1u32.to_le_bytes()].concat());
    start.extend([0, 64, headers_at].map(u64::to_le_bytes).concat());
    start.extend([0u16, 0, 64, 56, 1, 64, sections.len() as u16 + 2, sections.len() as u16 + 1].map(u16::to_le_bytes).concat());
    start.extend([1u32, 5].map(u32::to_le_bytes).concat());
    let length = file.len() as u64;
    start.extend([0, BASE, BASE, length, length, 0x1000].map(u64::to_le_bytes).concat());
    file[..start.len()].copy_from_slice(&start);
    file
}

/// Says which test is to run by itself, to the process that runs it.
const ALONE: &str = "LONGPOLE_TEST_ALONE";

/// Runs a test in a process of its own, and returns the most memory that it had there; `None` in that process, which prints it.
pub(crate) fn peak_bytes_alone(test: &str, run: impl FnOnce()) -> Option<u64> {
    use std::io::Write as _;

    if std::env::var(ALONE).is_ok_and(|alone| alone == test) {
        run();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        writeln!(std::io::stdout(), "{}", status.lines().find(|line| line.starts_with("VmHWM:")).unwrap()).unwrap();
        return None;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let out = child.args(["--exact", test, "--nocapture"]).env(ALONE, test).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let peak = text.lines().find_map(|line| line.split_once("VmHWM:")?.1.strip_suffix("kB")?.trim().parse::<u64>().ok());
    Some(peak.unwrap() << 10)
}
