//! Line 13: spans that a program made never arrive, or a span ends the program.
