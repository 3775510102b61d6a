/**
 * Story: somebody asks which thread was busy in a part of a run, and with what: drags over that part of the time axis, reads the sentence, selects
 * a thread, and sends the link to a colleague. Another one does the same by keys.
 *
 * Guarantees: threads, times and functions are those of the API for the same range; the flame graph is of the range and the thread; the link
 * restores both; each part of the selection can be taken away.
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, settled, tell, until, walkEverywhere } from './browser.mjs';

const search = (page) => new URL(page.url()).searchParams;

/** Drags over a part of the time axis, given as shares of its width. */
async function dragOver(page, from, to) {
  const rows = await page.getByRole('group', { name: 'Rows of the trace' }).boundingBox();
  const names = Number((await page.getByRole('region', { name: 'Threads', exact: true }).locator('ul').last().boundingBox()).width) + 1;
  const at = (share) => rows.x + names + share * (rows.width - 12 - names);
  await page.mouse.move(at(from), rows.y + 8);
  await page.mouse.down();
  await page.mouse.move(at((from + to) / 2), rows.y + 8);
  await page.mouse.move(at(to), rows.y + 8);
  await page.mouse.up();
}

/** The rows of the table of threads equal the answer of the API. */
async function compareThreads(page, recording) {
  const [from, to] = search(page).get('range').split('-');
  const { threads } = await answerOf(page, `/api/recordings/${recording}/threads?from=${from}&to=${to}`);
  const table = page.getByRole('table', { name: /^Threads, most CPU time first/ });
  await table.waitFor();
  const shown = await table.locator('tbody tr').count();
  expect(shown === Math.min(8, threads.length), `${shown} rows of ${threads.length} threads`);
  const busy = threads.filter((thread) => thread.on_cpu_nanos > 0).length;
  const sentence = await page.locator('[aria-live="polite"]', { hasText: 'of CPU time' }).first().innerText();
  expect(sentence.startsWith(`${busy}\u00a0thread`), `${sentence}: ${busy} threads were on a CPU`);
  const titles = await table.locator('tbody button[aria-pressed]').evaluateAll((buttons) => buttons.map((button) => button.title));
  threads.slice(0, 8).forEach((thread, row) => {
    expect(titles[row].startsWith(`thread ${thread.tid} of `), `row ${row} is ${titles[row]}, not thread ${thread.tid}`);
  });
  return threads;
}

async function walk(page, url, shoot) {
  await page.goto(url);
  const recording = new URL(url).pathname.split('/').at(-1);
  await page.getByRole('region', { name: 'Threads', exact: true }).waitFor();
  await settled(page);
  await dragOver(page, 0.25, 0.6);
  await until('a range in the link', () => search(page).has('range'));
  const threads = await compareThreads(page, recording);
  const first = threads[0];
  await shoot('range');

  await page
    .getByRole('table', { name: /^Threads, most/ })
    .locator('tbody button[aria-pressed]')
    .first()
    .click();
  await until('the thread in the link', () => search(page).get('thread') === `${first.tid}`);
  await settled(page);
  const link = page.url();
  const heading = await page.getByRole('complementary', { name: 'Selection' }).getByRole('heading', { level: 2 }).innerText();
  await shoot('thread');

  // A colleague opens the link.
  await page.goto(link);
  await until('the same selection', async () => {
    const region = page.getByRole('complementary', { name: 'Selection' }).getByRole('heading', { level: 2 });
    return (await region.count()) > 0 && (await region.innerText()) === heading;
  });
  await page.getByTitle('Show all threads').click();
  await until('all threads again', () => !search(page).has('thread') && search(page).has('range'));
  await page.keyboard.press('Escape');
  await until('the whole run again', () => !search(page).has('range'));

  // By keys: zoom in, select what is on the screen, hide the threads.
  await page.keyboard.press('w');
  await page.keyboard.press('w');
  await page.keyboard.press('r');
  await until('the range on the screen selected', () => search(page).has('range'));
  await compareThreads(page, recording);
  await page.keyboard.press('2');
  await until('no lanes', async () => (await page.getByRole('region', { name: 'Threads', exact: true }).locator('canvas').count()) === 0);
  await page.keyboard.press('2');
  await page.keyboard.press('Escape');
  await page.keyboard.press('0');
  await settled(page);
  return { heading };
}

export const seeWhoWasBusy = (url, directory) => walkEverywhere(url, directory, walk);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('see-who-was-busy', seeWhoWasBusy, (read) => JSON.stringify(read));
}
