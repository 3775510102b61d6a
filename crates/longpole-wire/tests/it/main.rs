//! The doors of `longpole-wire` against the generated OTLP messages, and against bytes nobody would send.

mod arbitrary;
mod corpus;
mod counts;
mod doors;
mod json;
mod logs;
mod oracle;
mod redaction;
mod responses;
mod roundtrips;
mod secrets;
mod traces;
mod unread;
mod wild;
