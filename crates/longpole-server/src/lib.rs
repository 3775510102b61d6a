//! The doors of longpole: spans in, copies out to the user's own endpoint, the page and its API.
//!
//! You bring a place to keep ([`receive::Keep`]) and a store. This crate speaks OTLP with the command's processes
//! ([`receive`]), hands their requests on ([`forward`]), turns a log into a sealed recording ([`seal`]), gives the numbers of a
//! recording their outside form ([`view`]), and serves them ([`server`]). It is the only room with sockets and HTTP; it
//! prints nothing, reads no environment, and computes no number that `longpole-analysis` does not compute.

#![forbid(unsafe_code)]

mod api;
mod assets;
pub mod export;
pub mod forward;
mod guard;
pub mod import;
pub mod limits;
mod listeners;
mod loss_book;
mod memory;
mod peer;
mod places;
pub mod receive;
pub mod redacting;
pub mod seal;
pub mod server;
pub mod source_file;
pub mod view;
mod visitors;

pub use server::Page;
pub use visitors::Visitors;
