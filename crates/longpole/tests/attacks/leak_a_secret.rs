//! Line 3: a credential comes through redaction, in whatever place a text can stand.
