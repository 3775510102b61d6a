//! The command line of a process: `/proc/PID/cmdline` (proc_pid_cmdline(5)).

use std::fs::File;
use std::io::Read;

use longpole_model::process::ARGUMENTS_BYTES_MAX;

/// Most arguments kept of a program: an empty one takes a byte in the kernel, and 24 here.
const ARGUMENTS_MAX: usize = 1_024;

/// The arguments of a process. Empty until its exec has laid out its stack, and while it ends.
pub(crate) fn arguments_of(pid: u32) -> Vec<String> {
    let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) else { return Vec::new() };
    let mut bytes = Vec::new();
    match file.take(ARGUMENTS_BYTES_MAX as u64).read_to_end(&mut bytes) {
        Ok(_) => split_arguments(&bytes),
        Err(_) => Vec::new(),
    }
}

/// Each argument ends in a zero byte. If some are cut off, the last one ends in `…`.
fn split_arguments(bytes: &[u8]) -> Vec<String> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let whole = bytes.strip_suffix(b"\0");
    let mut all = whole.unwrap_or(bytes).split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned());
    let mut arguments: Vec<String> = all.by_ref().take(ARGUMENTS_MAX).collect();
    let is_cut = bytes.len() >= ARGUMENTS_BYTES_MAX || all.next().is_some();
    if is_cut && let Some(last) = arguments.last_mut() {
        last.push('…');
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_at_zero_bytes() {
        assert_eq!(split_arguments(b""), Vec::<String>::new());
        assert_eq!(split_arguments(b"sh\0-c\0\0"), ["sh", "-c", ""]);
        assert_eq!(split_arguments(b"title without end"), ["title without end"]);
        let long = split_arguments(&[b'x'; ARGUMENTS_BYTES_MAX]);
        assert!(long[0].ends_with("x…"));
    }

    #[test]
    fn the_last_of_too_many_arguments_ends_in_an_ellipsis() {
        let arguments = split_arguments(&[0; ARGUMENTS_MAX]);
        assert!(arguments.len() == ARGUMENTS_MAX && arguments.iter().all(String::is_empty));
        let arguments = split_arguments(&[0; ARGUMENTS_MAX + 1]);
        assert_eq!((arguments.len(), arguments[ARGUMENTS_MAX - 1].as_str()), (ARGUMENTS_MAX, "…"));
    }
}
