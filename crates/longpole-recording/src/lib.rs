//! What a recording becomes between the log and the reader.
//!
//! [`words`] is the one home of English: it turns facts and figures into the text that the JSON, the terminal and the page show.
//! This crate opens no socket and prints nothing.

#![forbid(unsafe_code)]

pub mod words;
