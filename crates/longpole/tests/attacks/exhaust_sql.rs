//! Line 11: a statement overflows the stack, takes all memory or does not end.
