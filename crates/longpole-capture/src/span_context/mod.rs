//! The span context that SDKs publish: records in thread-local storage, journals in shared memory.

pub mod context_record;
pub mod journal;
pub mod journal_dir;
pub(crate) mod journal_poller;
pub mod otel;

#[cfg(test)]
pub(crate) mod testing {
    use std::fs;
    use std::path::PathBuf;

    /// An empty folder of this test.
    pub(crate) fn base(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("longpole-capture-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }
}
