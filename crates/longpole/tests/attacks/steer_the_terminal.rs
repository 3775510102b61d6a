//! Line 5: names of other programs send escapes to the terminal.
