//! Source files in words.

use crate::tree::forest::base_name;

/// Functions that many programs have: only their file tells them.
const NOBODYS: [&str; 3] = ["main", "<module>", "(anonymous)"];

/// Files that many folders have: only the folder tells them.
const NOBODYS_FILES: [&str; 4] = ["__init__.py", "__main__.py", "index.js", "mod.rs"];

/// The file of a function that only its file tells: `prog.py`, `json/__init__.py`. `None` for other functions, and if the file is unknown.
pub(super) fn telling_file<'a>(function: &str, file: &'a str) -> Option<&'a str> {
    let base = base_name(file);
    if base.is_empty() || !NOBODYS.contains(&function) {
        return None;
    }
    let folder = file.len().checked_sub(base.len() + 1).filter(|_| NOBODYS_FILES.contains(&base));
    Some(folder.map_or(base, |end| &file[file[..end].rfind('/').map_or(0, |slash| slash + 1)..]))
}

#[cfg(test)]
mod tests {
    use super::telling_file;

    #[test]
    fn only_functions_that_many_programs_have_need_their_file() {
        assert_eq!(telling_file("<module>", "/srv/prog.py"), Some("prog.py"));
        assert_eq!(telling_file("<module>", "/usr/lib/python3.11/json/__init__.py"), Some("json/__init__.py"));
        assert_eq!(telling_file("<module>", "json/__init__.py"), Some("json/__init__.py"));
        assert_eq!(telling_file("<module>", "__init__.py"), Some("__init__.py"));
        assert_eq!(telling_file("<module>", "/__init__.py"), Some("/__init__.py"));
        assert_eq!(telling_file("<module>", "<string>"), Some("<string>"));
        assert_eq!([telling_file("parse", "/srv/prog.py"), telling_file("main", "")], [None, None]);
    }
}
