/**
 * Writes the documents of a recording of a running `longpole open` to src/testing/golden/, where the decoder's tests read them, and the answer of a
 * deployment by Pulumi beside them.
 *
 *   node stories/record-golden.mjs 'http://127.0.0.1:PORT/?token=…' r1 r2
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIRECTORY = fileURLToPath(new URL('../src/testing/golden/', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FRAMES_MAX = 3;

const [address, recording, deployment] = process.argv.slice(2);
if (deployment === undefined) {
  process.stderr.write('usage: node stories/record-golden.mjs URL RECORDING DEPLOYMENT\n');
  process.exit(2);
}
const { origin, searchParams } = new URL(address);

async function get(path) {
  const url = new URL(path, origin);
  url.searchParams.set('token', searchParams.get('token') ?? '');
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function keep(name, path) {
  const document = await get(path);
  // The documents must not contain this machine's path of the repository.
  await writeFile(join(DIRECTORY, `${name}.json`), `${JSON.stringify(document).replaceAll(ROOT, '')}\n`);
  return document;
}

await rm(DIRECTORY, { recursive: true, force: true });
await mkdir(DIRECTORY, { recursive: true });
const base = `/api/recordings/${recording}`;
await keep('recordings', '/api/recordings');
await keep('summary', base);
await keep('tree', `${base}/tree`);
await keep('flame', `${base}/flame`);
for (const time of ['off_cpu', 'wall']) await keep(`flame-${time}`, `${base}/flame?time=${time}`);
const { poles } = await keep('poles', `${base}/poles`);
for (const handle of new Set(['s1', ...poles.slice(0, 3).map((pole) => pole.spans[0])])) {
  await keep(`span-${handle}`, `${base}/spans/${handle}`);
  await keep(`flame-${handle}`, `${base}/flame?span=${handle}`);
}
const frames = poles.flatMap((pole) => pole.top_frames.map((frame) => frame.handle)).slice(0, FRAMES_MAX);
for (const handle of new Set(frames)) await keep(`frame-${handle}`, `${base}/frames/${handle}`);
await keep('summary-deployment', `/api/recordings/${deployment}`);
await keep('poles-deployment', `/api/recordings/${deployment}/poles`);
