// Puts `.br` and `.gz` beside every file of dist/ that shrinks, so that the server only has to choose one, and holds the size budget of the page.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

// The size a browser loads before the first picture: the scripts and styles that index.html names, gzip (ux.md, Budget). Others come later.
const INITIAL_GZIP_BYTES_MAX = 260 * 1024;
const DIST = new URL('./dist/', import.meta.url).pathname;

async function filesBelow(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

const index = await readFile(join(DIST, 'index.html'), 'utf8');
let initialBytes = 0;
let laterBytes = 0;
for (const path of (await filesBelow(DIST)).sort()) {
  if (/\.(br|gz)$/.test(path)) continue;
  const plain = await readFile(path);
  const gzip = gzipSync(plain, { level: 9 });
  const brotli = brotliCompressSync(plain, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length },
  });
  if (gzip.length < plain.length) await writeFile(`${path}.gz`, gzip);
  if (brotli.length < plain.length) await writeFile(`${path}.br`, brotli);
  if (/\.(js|css)$/.test(path)) {
    if (index.includes(`/${relative(DIST, path)}`)) initialBytes += gzip.length;
    else laterBytes += gzip.length;
  }
  const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`.padStart(11);
  process.stdout.write(`${relative(DIST, path).padEnd(40)}${kib(plain.length)} gzip${kib(gzip.length)} br${kib(brotli.length)}\n`);
}
const inKib = (bytes) => (bytes / 1024).toFixed(1);
process.stdout.write(`scripts and styles, gzip: ${inKib(initialBytes)} KiB of 260, and ${inKib(laterBytes)} KiB later\n`);
if (initialBytes > INITIAL_GZIP_BYTES_MAX) {
  process.stderr.write('the page is larger than its budget\n');
  process.exitCode = 1;
}
