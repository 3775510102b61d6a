//! Line 12: a log damaged in its middle, cut off by a power failure, or without a bound.
