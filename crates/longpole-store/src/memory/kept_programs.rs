//! Paths and arguments of programs, each kept once: a fork has those of its parent, and a command can fork 100,000 times.
//!
//! Reader and writer count alike: a value counts the first time that it comes.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use longpole_model::fast_hash::{FastMap, FastState};

/// Paths and arguments that are kept once, and what they take.
#[derive(Debug, Default)]
pub(crate) struct KeptPrograms {
    executables: HashSet<Arc<str>, FastState>,
    /// By the hash of the words. If two lists have one hash, the later one stays.
    arguments: FastMap<u64, Arc<[String]>>,
    hashes: FastState,
    uncounted: u64,
}

impl KeptPrograms {
    /// This path, as it is kept; `new` makes it if it is.
    pub(crate) fn executable(&mut self, path: &str, new: impl FnOnce() -> Arc<str>) -> Arc<str> {
        if let Some(known) = self.executables.get(path) {
            return Arc::clone(known);
        }
        self.uncounted += path.len() as u64;
        let path = new();
        self.executables.insert(Arc::clone(&path));
        path
    }

    /// These words, as they are kept; `new` makes their list if it is new.
    pub(crate) fn arguments<'a>(
        &mut self,
        words: impl Iterator<Item = &'a str> + Clone,
        new: impl FnOnce() -> Arc<[String]>,
    ) -> Arc<[String]> {
        let mut hasher = self.hashes.build_hasher();
        words.clone().for_each(|word| word.hash(&mut hasher));
        let hash = hasher.finish();
        if let Some(known) = self.arguments.get(&hash).filter(|known| known.iter().eq(words.clone())) {
            return Arc::clone(known);
        }
        self.uncounted += words.map(|word| (size_of::<String>() + word.len()) as u64).sum::<u64>();
        let list = new();
        self.arguments.insert(hash, Arc::clone(&list));
        list
    }

    /// Bytes of the values kept since the last call.
    pub(crate) fn take_uncounted(&mut self) -> u64 {
        std::mem::take(&mut self.uncounted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_and_each_list_is_kept_and_counted_once() {
        let mut kept = KeptPrograms::default();
        let mut arguments = |words: &[&str]| {
            let words = words.iter().copied();
            let list = kept.arguments(words.clone(), || words.map(str::to_owned).collect());
            (list, kept.take_uncounted())
        };
        let lists = [&["ab", "c"][..], &["a", "bc"], &["ab", "c"], &[]].map(&mut arguments);
        assert_eq!(lists.each_ref().map(|it| it.1), [51, 51, 0, 0]);
        assert!(Arc::ptr_eq(&lists[0].0, &lists[2].0) && lists[1].0[1] == "bc");
        let paths = ["/bin/sh", "/bin/make", "/bin/sh"].map(|path| kept.executable(path, || path.into()));
        assert!(Arc::ptr_eq(&paths[0], &paths[2]));
        assert_eq!(kept.take_uncounted(), 16);
    }
}
