//! Work that may block, for tasks that must not.

/// The thread of such work ended by a panic, which has printed itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panicked;

/// Runs work that reads files or computes on a thread that may block.
pub(crate) async fn off_the_reactor<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Panicked> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Panicked.into()))
}
