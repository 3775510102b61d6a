// The arrow table of the page: base <- api <- logic <- state <- canvas, views. A file may import only from its own room and the rooms listed for it.
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';

const MAY_IMPORT = {
  base: [],
  api: ['base'],
  logic: ['base', 'api'],
  state: ['base', 'api', 'logic'],
  canvas: ['base', 'api', 'logic', 'state'],
  views: ['base', 'api', 'logic', 'state', 'canvas', 'style'],
  style: [],
  testing: ['base', 'api', 'logic'],
  main: ['state', 'views', 'style', 'api'],
};
// Packages that a room may use. Rooms without an entry use none.
const MAY_USE = {
  state: ['react', '@tanstack/react-query', '@tanstack/react-router'],
  views: ['react', 'react-dom', '@tanstack/react-query', '@tanstack/react-router', '@base-ui/react'],
  main: ['react', 'react-dom', '@tanstack/react-query'],
  testing: ['vitest'],
};
// Only these rooms may access the network, and only through this file.
const MAY_FETCH = ['state', 'main'];
const NETWORK = join('src', 'api', 'client.ts');

// Statements begin a line; strings that look like one do not.
const IMPORT = /(?:^(?:(?:import|export)\s[^;']*?\sfrom|import)\s*|\bimport\()'([^']+)'/gm;

const roomOf = (path) => {
  const parts = path.split('/');
  return parts.length === 2 ? 'main' : parts[1];
};
const isTest = (path) => path.endsWith('.test.ts');
const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

const faults = [];
const root = new URL('.', import.meta.url).pathname;
for (const entry of await readdir(join(root, 'src'), { recursive: true })) {
  if (!/\.(ts|tsx|mjs)$/.test(entry)) continue;
  const path = join('src', entry);
  const room = roomOf(path);
  const text = await readFile(join(root, path), 'utf8');
  for (const match of text.matchAll(IMPORT)) {
    const specifier = match[1];
    if (isTest(path) && (specifier === 'vitest' || specifier.startsWith('node:') || specifier.includes('/testing/'))) continue;
    if (!specifier.startsWith('.')) {
      if (!(MAY_USE[room] ?? []).includes(packageOf(specifier))) faults.push(`${path}: ${room} does not use ${specifier}`);
      continue;
    }
    const target = normalize(join(dirname(path), specifier));
    const other = roomOf(target);
    if (other !== room && !(MAY_IMPORT[room] ?? []).includes(other)) faults.push(`${path}: no arrow from ${room} to ${other}`);
    if (target === NETWORK.replace(/\.ts$/, '') && !MAY_FETCH.includes(room) && !isTest(path)) {
      faults.push(`${path}: ${room} does not fetch`);
    }
  }
}
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length > 0 ? 1 : 0;
