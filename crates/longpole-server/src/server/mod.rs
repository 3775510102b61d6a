//! The page of `longpole open`: bind, serve, close.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Router, middleware, routing};
use http::{Method, StatusCode};
use longpole_store::{RecordingName, Store};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::{self, ApiError, ReportCache};
use crate::assets;
use crate::auth::{self, Access, PageAuth};
use crate::limits::PAGE_CLOSE_MAX;
use crate::page_clients::{ClientCheck, PageClients};
use crate::page_connections;
use longpole_recording::source_file::SourceConsent;
use longpole_recording::view::LinkView;

/// A page on loopback that is being served. Dropping it closes it.
#[derive(Debug)]
pub struct Page {
    address: SocketAddr,
    auth: Arc<PageAuth>,
    url: String,
    tells_users_apart: bool,
    closing: watch::Sender<bool>,
    served: JoinHandle<()>,
    runtime: Runtime,
}

impl Page {
    /// Serves the store in this directory on 127.0.0.1; port 0 takes a free one. Meanwhile it makes the report of `recording`, which the
    /// first request will need; without one, the list is what people see first. It reads source files of other users' recordings as far as `consent` goes.
    ///
    /// [`Access::OwnUser`] is for a store that holds nothing but the recording: then its page is at `/`, too.
    pub fn start(
        store: &Path,
        recording: impl Into<Option<RecordingName>>,
        port: u16,
        access: Access,
        consent: SourceConsent,
        clients: PageClients,
    ) -> io::Result<Page> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)))?.into_std()?;
        listener.set_nonblocking(false)?;
        let address = listener.local_addr()?;
        let client_check = ClientCheck::new(clients, &listener)?;
        let tells_users_apart = client_check.tells_users_apart();
        listener.set_nonblocking(true)?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let new = auth::secret().map_err(no_random_bytes)?;
        // Where the kernel does not say whose a connection is, only the token keeps others out, and one that stays is known to whoever saw it.
        let stays = access == Access::Token && tells_users_apart;
        let kept = stays.then(|| Store::open(store).ok()?.kept_token(|| new.clone()).ok()).flatten();
        let auth = Arc::new(PageAuth::new(address, access, kept.unwrap_or(new)));
        let url = format!("http://{address}/?token={}", auth.token());
        let cache = Arc::new(ReportCache::new(store, consent));
        let recording = recording.into();
        let home = recording.filter(|_| access == Access::OwnUser);
        let router = router(Arc::clone(&cache), home, Arc::clone(&auth));
        let (closing, closed) = watch::channel(false);
        let served = runtime.spawn(page_connections::serve(listener, client_check, router, closed));
        if let Some(recording) = recording {
            runtime.spawn(async move {
                // A request for it reports the error.
                let _ = cache.report(&recording.to_string()).await;
            });
        }
        Ok(Page { address, auth, url, tells_users_apart, closing, served, runtime })
    }

    /// Address that our user types where no token is needed ([`Access::OwnUser`]).
    pub fn plain_url(&self) -> String {
        format!("http://localhost:{}", self.address.port())
    }

    /// Address of the list of recordings, with the token that opens it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Address of one recording, or of the list, with the token that opens it.
    pub fn url_of(&self, recording: impl Into<Option<RecordingName>>) -> String {
        self.url.replacen("/?", &format!("{}?", path_of(recording.into())), 1)
    }

    /// The same for the browser that starts next, as this user: it works once, within a minute.
    pub fn url_once_of(&self, recording: impl Into<Option<RecordingName>>) -> io::Result<String> {
        Ok(format!("http://{}{}?once={}", self.address, path_of(recording.into()), self.auth.new_once().map_err(no_random_bytes)?))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the kernel distinguishes the users of connections. If it does not, the page serves every client that has the token.
    pub fn tells_users_apart(&self) -> bool {
        self.tells_users_apart
    }

    /// Serves until a signal to end arrives (SIGINT, SIGTERM, SIGHUP; Ctrl-C on systems other than Unix), then closes. From now on these
    /// signals do not end the process by themselves.
    pub fn wait(self) -> io::Result<()> {
        self.runtime.block_on(async { EndSignals::watch().await?.wait().await })?;
        self.close()
    }

    /// Closes the page after the answers that are being made, within [`PAGE_CLOSE_MAX`].
    pub fn close(self) -> io::Result<()> {
        self.closing.send_replace(true);
        // It ended, or ran into the limit, or into a panic, which its own client got as an error.
        let _ = self.runtime.block_on(async { tokio::time::timeout(PAGE_CLOSE_MAX, self.served).await });
        self.runtime.shutdown_background();
        Ok(())
    }
}

fn no_random_bytes(error: getrandom::Error) -> io::Error {
    io::Error::other(format!("no random bytes: {error}"))
}

/// The signals that end a server (SIGINT, SIGTERM, SIGHUP; Ctrl-C on systems other than Unix).
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct EndSignals([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl EndSignals {
    /// From now on they do not end the process by themselves.
    pub(crate) async fn watch() -> io::Result<EndSignals> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(EndSignals([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?]))
    }

    /// Waits for the next one.
    pub(crate) async fn wait(&mut self) -> io::Result<()> {
        let [interrupt, terminate, hang_up] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        Ok(())
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct EndSignals;

#[cfg(not(unix))]
impl EndSignals {
    pub(crate) async fn watch() -> io::Result<EndSignals> {
        Ok(EndSignals)
    }

    pub(crate) async fn wait(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

fn path_of(recording: Option<RecordingName>) -> String {
    recording.map_or_else(|| "/".to_owned(), |recording| format!("/r/{recording}"))
}

/// `home` is the recording that `/` leads to.
fn router(cache: Arc<ReportCache>, home: Option<RecordingName>, auth: Arc<PageAuth>) -> Router {
    let mut routes = api::routes(cache);
    if let Some(home) = home {
        routes = routes.route("/", routing::get(move || async move { Redirect::to(&format!("/r/{home}")) }));
    }
    let link = {
        let auth = Arc::clone(&auth);
        routing::get(move || async move { api::json(&LinkView { token: auth.token().to_owned() }) })
    };
    routes.route("/api/link", link).fallback(other).layer(middleware::from_fn_with_state(auth, auth::check))
}

/// Any other address is a file of the page.
pub(crate) async fn other(request: Request) -> Response {
    let path = request.uri().path();
    // Nobody who asks an API for something that it does not have wants a page.
    let is_of_api = |api: &str| path.strip_prefix(api).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_of_api("/api") || is_of_api("/longpole") {
        return ApiError::not_found(format!("no such address: {path}")).into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address is read-only: use GET").into_response();
    }
    assets::answer(path, request.headers())
}

#[cfg(test)]
mod tests;
