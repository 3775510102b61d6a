/** Runs every story against made-up recordings: `npm run story [OUTDIR]`. Needs a built page and a Chromium. */
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compareOperations } from './compare-operations.mjs';
import { findTheLongPole } from './find-the-long-pole.mjs';
import { startFixtureServer } from './fixture-server.mjs';
import { lookAtOddRecordings } from './look-at-odd-recordings.mjs';
import { readADeployment } from './read-a-deployment.mjs';
import { searchForTraces } from './search-for-traces.mjs';
import { seeWhatItWaitedFor } from './see-what-it-waited-for.mjs';
import { seeWhoCallsWhom } from './see-who-calls-whom.mjs';
import { useTheKeyboardOnly } from './use-the-keyboard-only.mjs';

const directory = process.argv[2] ?? (await mkdtemp(join(tmpdir(), 'longpole-stories-')));
await mkdir(directory, { recursive: true });
const STORIES = {
  'find the long pole': (server) => findTheLongPole(server.url('/'), directory),
  'read a deployment': (server) => readADeployment(server.url('/'), directory),
  'see what it waited for': (server) => seeWhatItWaitedFor(server.url('/'), directory),
  'use the keyboard only': (server) => useTheKeyboardOnly(server.url('/')),
  'compare operations': (server) => compareOperations(server, directory),
  'search for traces': (server) => searchForTraces(server, directory),
  'see who calls whom': (server) => seeWhoCallsWhom(server, directory),
  'look at odd recordings': (server) => lookAtOddRecordings(server, directory),
};

for (const [name, story] of Object.entries(STORIES)) {
  const server = await startFixtureServer();
  try {
    await story(server);
    process.stdout.write(`ok    ${name}\n`);
  } catch (error) {
    process.stdout.write(`FAIL  ${name}\n${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  } finally {
    await server.close();
  }
}
process.stdout.write(`pictures: ${directory}\n`);
