//! Line 4: connections that never finish a request keep everybody else's spans out.
