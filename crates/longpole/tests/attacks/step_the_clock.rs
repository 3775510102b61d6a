//! Line 8: the wall clock is set while a command runs.
