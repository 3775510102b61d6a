//! Line 1: another user reads what was recorded.
