//! The doors of longpole: spans in, copies out to the user's own endpoint, the page and its API.
//!
//! You bring a sink for requests ([`receive::ReceivedSink`]) and a store. This crate speaks OTLP with the command's processes
//! ([`receive`]), hands their requests on ([`forward`]), and serves the views of `longpole-recording` ([`server`]). It is the only
//! room with sockets and HTTP; it prints nothing, reads no environment, and computes no number.

#![forbid(unsafe_code)]

mod answer;
mod api;
mod assets;
mod auth;
mod connect_protocol;
pub mod forward;
pub mod limits;
mod listeners;
mod off_the_reactor;
mod open_files;
mod otlp_request;
mod page_clients;
mod page_connections;
mod peer_process;
pub mod query_client;
mod query_parameters;
pub mod receive;
pub mod serve;
pub mod server;
mod wall_clock;

pub use auth::Access;
pub use page_clients::PageClients;
pub use server::Page;
