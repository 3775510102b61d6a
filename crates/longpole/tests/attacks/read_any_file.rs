//! Line 10: a recording names a file, and a view prints it.
