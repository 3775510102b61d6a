//! Line 2: a catalog or a store of somebody else's makes `rm` and `prune` delete what is not a recording.
