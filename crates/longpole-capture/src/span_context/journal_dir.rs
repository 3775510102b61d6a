//! The directory of a recording's span journals.

use std::io;
use std::path::PathBuf;

use crate::private_dir::{self, PrivateDirectory};

/// A file system in memory, the better place for journals (shm_overview(7)).
const MEMORY: &str = "/dev/shm";

/// Prefix of the directories, by which those of killed recorders are found.
pub(super) const PREFIX: &str = "longpole-journals-";

/// Makes the directory of one recording's journals.
///
/// # Errors
///
/// If neither `/dev/shm` nor the folder for temporary files takes it.
pub fn create() -> io::Result<PrivateDirectory> {
    let [memory, other] = bases();
    PrivateDirectory::create_in(&memory, PREFIX).or_else(|_| PrivateDirectory::create_in(&other, PREFIX))
}

/// The folders of such directories, the better one first. It may be missing or closed.
fn bases() -> [PathBuf; 2] {
    [PathBuf::from(MEMORY), std::env::temp_dir()]
}

/// Removes the directories of killed recorders.
pub fn remove_stale() {
    bases().iter().for_each(|base| private_dir::remove_stale_in(base, PREFIX));
}
