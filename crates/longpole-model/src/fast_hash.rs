//! Maps for ids and names of a million spans: the standard map with a hash that costs a few nanoseconds.
//!
//! Half of the time to build a forest went into SipHash. foldhash does not resist an attacker who sees the hashes; nobody sees these, and
//! each map has a seed of its own.

use std::collections::HashMap;

/// The seed of a map.
pub type FastState = foldhash::fast::RandomState;

/// A map with the fast hash.
pub type FastMap<K, V> = HashMap<K, V, FastState>;
