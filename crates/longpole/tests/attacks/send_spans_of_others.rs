//! Line 9: another user, a web page or a dead neighbour's pid sends spans into a recording.
