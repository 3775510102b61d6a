//! Line 6: another user reads the key of the page.
