//! What the rooms still owe the house rules. A number may only fall, and a list should be empty.

/// Rooms that break a rule, and how often at most.
pub(super) type Debt = &'static [(&'static str, usize)];

pub(super) const CIRCLES: Debt =
    &[("longpole", 2), ("longpole-query", 1), ("longpole-sdk", 3), ("longpole-server", 3), ("longpole-store", 3)];

pub(super) const CONVENTIONS: Debt = &[("longpole-query", 1), ("longpole-recording", 4), ("longpole-server", 4), ("longpole-store", 4)];

pub(super) const LENGTHS: Debt = &[("longpole-recording", 6), ("longpole-sdk", 2), ("longpole-server", 6), ("longpole-store", 3)];

pub(super) const TYPE_NAMES: Debt = &[("crates", 24)];

pub(super) const ENGLISH: Debt = &[
    ("docs", 16),
    ("longpole", 253),
    ("longpole-analysis", 115),
    ("longpole-capture", 9),
    ("longpole-model", 36),
    ("longpole-query", 10),
    ("longpole-recording", 192),
    ("longpole-sdk", 67),
    ("longpole-server", 192),
    ("longpole-store", 124),
    ("longpole-symbols", 49),
    ("longpole-testing", 2),
    ("longpole-wire", 126),
    ("web", 5),
];
