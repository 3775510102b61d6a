//! The token of the page, kept for its user: a link of yesterday opens today.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::Store;
use crate::error::StoreError;
use crate::files;

const FILE_NAME: &str = "page-token";

/// Hexadecimal digits of a token.
const DIGITS: usize = 32;

impl Store {
    /// The token that this user keeps; where there is none, or others could read it, the one that `make` makes is kept from now on.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if it cannot be written.
    pub fn kept_token(&self, make: impl FnOnce() -> String) -> Result<String, StoreError> {
        let folder = self.cache();
        let path = folder.join(FILE_NAME);
        let is_private = || fs::symlink_metadata(&path).is_ok_and(|data| data.is_file() && data.mode() & 0o077 == 0);
        let is_token = |text: &String| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(token) = is_private().then(|| files::read_to_string(&path).ok()).flatten().filter(is_token) {
            return Ok(token);
        }
        let token = make();
        if let Err(error) = files::create_dir(&folder)
            && !folder.is_dir()
        {
            return Err(StoreError::io("create", &folder)(error));
        }
        files::replace(&path, token.as_bytes()).map_err(StoreError::io("write", &path))?;
        Ok(token)
    }
}
