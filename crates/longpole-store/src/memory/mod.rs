//! What the rows of a recording take in memory: counted by who writes them, limited for who reads them; and what queries take together.

pub(crate) mod budget;
pub(crate) mod emitters;
pub(crate) mod kept_programs;
pub(crate) mod kept_texts;
pub(crate) mod needs;
pub(crate) mod query_memory;
