//! Line 7: a file of others panics, lies, or takes all memory.
