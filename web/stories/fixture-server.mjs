/**
 * Serves web/dist and made-up recordings as `longpole open` does: a token in the URL, a cookie, the content security policy, precompressed
 * files. For tests and for developing the page; `node stories/fixture-server.mjs` prints the URL to open.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allRecordings } from '../src/testing/recordings.mjs';
import { NO_MAP } from '../src/testing/services.mjs';
import { madeUpTraces } from '../src/testing/traces.mjs';

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
const TOKEN = '5f1c0ffee5f1c0ffee';
// As strict as the product's policy, or stricter.
const POLICY = "default-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

function json(response, status, document) {
  const body = JSON.stringify(document);
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(body);
}

function refuse(response, status, code, message) {
  json(response, status, { error: { code, message } });
}

function answerApi(recordings, url, response) {
  const [, , , name, kind, handle] = url.pathname.split('/').map(decodeURIComponent);
  if (name === undefined) return json(response, 200, { recordings: recordings.map((entry) => entry.recording), damaged: [] });
  const found = name === 'last' ? recordings[0] : recordings.find((entry) => entry.recording.recording === name);
  if (found === undefined) return refuse(response, 404, 'recording_not_found', `no recording ${name}; longpole ls names them`);
  const views = {
    undefined: () => found.summary(),
    poles: () => found.poles(),
    tree: () => found.tree(),
    spans: () => found.span(handle ?? ''),
    flame: () => found.flame(url.searchParams.get('span'), url.searchParams.get('time') ?? 'on_cpu'),
    frames: () => found.frame(handle ?? ''),
    // Made-up recordings have no threads; the story of threads reads a real one.
    lanes: () => ({ recording: name, from_nanos: 0, to_nanos: 1, bins: 1, states: [], threads: [], truncated: 0 }),
  };
  const document = Object.hasOwn(views, String(kind)) ? views[String(kind)]() : null;
  if (document === null) return refuse(response, 404, 'not_found', `no ${handle ?? kind} in ${name}`);
  return json(response, 200, document);
}

function answerTraces(traces, services, url, response) {
  if (url.pathname === '/longpole/v1/services/map') return json(response, 200, services.map);
  if (url.pathname === '/longpole/v1/services') return json(response, 200, traces.services());
  if (url.pathname === '/longpole/v1/traces') return json(response, 200, traces.search(url.searchParams));
  return refuse(response, 404, 'not_found', `no ${url.pathname}`);
}

async function answerFile(url, request, response) {
  const wanted = extname(url.pathname) === '' ? '/index.html' : url.pathname;
  const path = join(DIST, normalize(wanted));
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  const headers = { 'content-type': type, 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' };
  try {
    if (/\bbr\b/.test(request.headers['accept-encoding'] ?? '')) {
      const packed = await readFile(`${path}.br`).catch(() => null);
      if (packed !== null) return response.writeHead(200, { ...headers, 'content-encoding': 'br' }).end(packed);
    }
    return response.writeHead(200, headers).end(await readFile(path));
  } catch {
    return refuse(response, 404, 'not_found', `no file ${url.pathname}`);
  }
}

/** Starts the server on a free port; returns its URL, its traces, its map of services and a function that stops it. */
export async function startFixtureServer(port = 0, recordings = allRecordings()) {
  const traces = madeUpTraces();
  const services = {
    map: NO_MAP,
    /** Whether the lists of `longpole serve` are there. */
    isServer: false,
    show: (map) => {
      services.map = map;
    },
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    const byToken = url.searchParams.get('token') === TOKEN;
    const cookie = `longpole=${TOKEN}`;
    if (byToken) response.setHeader('set-cookie', `${cookie}; HttpOnly; SameSite=Strict; Path=/`);
    const isOfTraces = url.pathname.startsWith('/longpole/');
    const isApi = url.pathname.startsWith('/api/') || isOfTraces;
    const allowed = byToken || (request.headers.cookie ?? '').includes(cookie);
    if (isApi && !allowed) refuse(response, 401, 'unauthorized', 'use the URL that longpole open printed');
    else if (isOfTraces) answerTraces(traces, services, url, response);
    else if (url.pathname === '/api/server')
      json(response, 200, { traces: services.isServer, otlp_http_port: 4318, otlp_grpc_port: 4317, zipkin_port: 9411, needs_token: false });
    else if (url.pathname === '/api/link') json(response, 200, { token: TOKEN });
    else if (isApi) answerApi(recordings, url, response);
    else answerFile(url, request, response);
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    origin,
    traces,
    services,
    url: (path) => `${origin}${path}${path.includes('?') ? '&' : '?'}token=${TOKEN}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await startFixtureServer(Number(process.argv[2] ?? 0));
  process.stdout.write(`${server.url('/')}\n`);
}
