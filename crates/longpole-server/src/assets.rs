//! The page: files that `cargo xtask web` built, embedded in release builds, read from `web/dist` in debug builds.

use axum::body::Body;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use http::{HeaderMap, StatusCode};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// The page of a build without the page, so that a plain `cargo build` needs no Node.
const NOT_BUILT: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>longpole</title>\
<h1>The page is not built</h1><p>This longpole was built without its page. Build it, then start again:<pre>cargo xtask web</pre>\
<p>The same answers are in the terminal: <code>longpole show last</code>\n";

/// Names of files that carry a hash of their content: they never change.
const HASHED: &str = "assets/";

/// Compressed neighbours, the smaller first.
const PACKED: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The file of this path. Paths without a file are the page's own addresses, and all of them are `index.html`.
pub(crate) fn answer(path: &str, request: &HeaderMap) -> Response {
    let wanted = path.trim_start_matches('/');
    let is_address = !wanted.rsplit('/').next().unwrap_or_default().contains('.');
    let name = if is_address { "index.html" } else { wanted };
    if let Some(response) = file(name, request) {
        return response;
    }
    if is_address {
        return html(StatusCode::OK, NOT_BUILT);
    }
    html(StatusCode::NOT_FOUND, "<!doctype html><html lang=en><meta charset=utf-8><title>longpole</title><p>No such file.\n")
}

/// A page of our own making.
pub(crate) fn html(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn file(name: &str, request: &HeaderMap) -> Option<Response> {
    let accepts: Vec<String> =
        request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| Some(value.to_str().ok()?.to_lowercase())).collect();
    let accepts = |coding: &str| {
        accepts.iter().flat_map(|value| value.split(',')).any(|part| {
            let mut words = part.split(';').map(str::trim);
            words.next() == Some(coding) && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
    };
    let packed =
        PACKED.iter().filter(|(coding, _)| accepts(coding)).find_map(|(coding, end)| Some((Dist::get(&format!("{name}{end}"))?, *coding)));
    // The plain file must exist: `x.js.br` alone is no answer to `x.js`.
    let plain = Dist::get(name)?;
    let (found, coding) = packed.map_or((plain, None), |(found, coding)| (found, Some(coding)));
    let mut response = Response::new(Body::from(found.data.into_owned()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(coding) = coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    let cached = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cached));
    Some(response)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_the_page_gets_the_page_and_a_missing_file_gets_none() {
        // Whether the page is built or not, an address is answered with HTML.
        for path in ["/", "/r/r7", "/anything/at/all"] {
            let response = answer(path, &HeaderMap::new());
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        }
        for path in ["/assets/none.js", "/../Cargo.toml", "/..%2fCargo.toml", "//etc/passwd.txt"] {
            assert_eq!(answer(path, &HeaderMap::new()).status(), 404, "{path}");
        }
    }

    #[test]
    fn files_are_served_packed_to_whom_takes_them_so() {
        let Some(name) = Dist::iter().find(|name| name.starts_with(HASHED) && name.ends_with(".js")) else { return };
        let get = |accepts: &'static str| {
            let response = answer(&format!("/{name}"), &HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepts))]));
            assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=31536000, immutable");
            response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(get("gzip, deflate, br, zstd").as_deref(), Some("br"));
        assert_eq!(get("gzip;q=1.0, br;q=0").as_deref(), Some("gzip"));
        assert_eq!(get("identity"), None);
    }
}
