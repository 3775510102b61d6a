//! What the rooms still owe the house rules. A number may only fall, and a list should be empty.

/// Rooms that break a rule, and how often at most.
pub(super) type Debt = &'static [(&'static str, usize)];

pub(super) const CIRCLES: Debt = &[("longpole", 2), ("longpole-server", 3)];

pub(super) const CONVENTIONS: Debt = &[("longpole-recording", 4), ("longpole-server", 4)];

pub(super) const LENGTHS: Debt = &[("longpole-recording", 6), ("longpole-server", 6)];

pub(super) const TYPE_NAMES: Debt = &[("crates", 24)];

pub(super) const ENGLISH: Debt = &[
    ("docs", 16),
    ("longpole", 253),
    ("longpole-analysis", 115),
    ("longpole-capture", 9),
    ("longpole-model", 36),
    ("longpole-recording", 192),
    ("longpole-server", 192),
    ("longpole-store", 2),
    ("longpole-symbols", 49),
    ("longpole-wire", 126),
    ("web", 5),
];
