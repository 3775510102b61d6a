//! The command line of a process: `/proc/PID/cmdline`.

use std::fs::File;
use std::io::Read;

/// Most bytes of a command line that are kept.
const ARGUMENTS_BYTES_MAX: u64 = 16 << 10;

/// Most arguments that are kept of a program: an empty one takes a byte in the kernel, and 24 here.
const ARGUMENTS_MAX: usize = 1_024;

/// Empty until the program's first stack is laid out, and of a program that ends.
pub(crate) fn arguments_of(pid: u32) -> Vec<String> {
    let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) else { return Vec::new() };
    let mut bytes = Vec::new();
    match file.take(ARGUMENTS_BYTES_MAX).read_to_end(&mut bytes) {
        Ok(_) => split_arguments(&bytes),
        Err(_) => Vec::new(),
    }
}

/// `/proc/PID/cmdline`: each argument ends in a zero byte. What is over the limit is cut, and says so by its last character.
fn split_arguments(bytes: &[u8]) -> Vec<String> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let whole = bytes.strip_suffix(b"\0");
    let mut all = whole.unwrap_or(bytes).split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned());
    let mut arguments: Vec<String> = all.by_ref().take(ARGUMENTS_MAX).collect();
    let is_cut = bytes.len() as u64 >= ARGUMENTS_BYTES_MAX || all.next().is_some();
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
        let long = split_arguments(&vec![b'x'; ARGUMENTS_BYTES_MAX as usize]);
        assert!(long[0].ends_with("x…"));
    }

    #[test]
    fn of_many_arguments_the_first_are_kept_and_the_last_of_them_says_so() {
        let arguments = split_arguments(&[0; ARGUMENTS_MAX]);
        assert!(arguments.len() == ARGUMENTS_MAX && arguments.iter().all(String::is_empty));
        let arguments = split_arguments(&[0; ARGUMENTS_MAX + 1]);
        assert_eq!((arguments.len(), arguments[ARGUMENTS_MAX - 1].as_str()), (ARGUMENTS_MAX, "…"));
    }
}
