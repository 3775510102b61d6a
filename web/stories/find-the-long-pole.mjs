/**
 * Story: somebody opens the recording of a run, asks which operation to fix, reads which function is behind it, and sees where else that function ran.
 *
 * Guarantees: the list names the answer; the first pole is one click away; the flame graph of exactly its span comes with it; a click on the hottest
 * function marks its spans in the list and in the rows; every step is in the URL and comes back from it; no request leaves the origin, nothing is
 * complained about on the console, and axe finds nothing serious, in light and in dark.
 *
 *   node stories/find-the-long-pole.mjs 'http://127.0.0.1:PORT/?token=…' OUTDIR
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accessibilityFaults, expect, launchBrowser, openPage, settled, until } from './browser.mjs';

const SIZES = [
  { name: '1440x900', width: 1440, height: 900 },
  { name: '900x700', width: 900, height: 700 },
];

/** The list, and of it the recording that the URL names, else the first. */
async function walk(page, url, shoot) {
  const list = new URL(url);
  const recording = /^\/r\/(r\d+)/.exec(list.pathname)?.[1];
  list.pathname = '/';
  await page.goto(list.href);
  await page.locator('table tbody tr').first().waitFor();
  const handle = recording ?? (await page.locator('table tbody tr a').first().innerText());
  const row = page.locator('tbody tr', { has: page.getByRole('link', { name: handle, exact: true }) });
  const answer = await row.locator('p').innerText();
  expect(/saves/.test(answer), `the row of ${handle} does not name a saving: "${answer}"`);
  await settled(page);
  await shoot('list');

  await row.getByRole('link', { name: handle, exact: true }).click();
  const headline = page.getByRole('heading', { level: 1 });
  await headline.waitFor();
  await page.getByRole('treegrid', { name: 'Spans' }).getByRole('row').first().waitFor();
  const sentence = await headline.innerText();
  expect(/is the long pole/.test(sentence) && /earlier/.test(sentence), `the headline is no answer: "${sentence}"`);
  expect(!new URL(page.url()).searchParams.has('token'), 'the token stays in the address bar');
  await settled(page);
  await shoot('recording');

  const poles = page.getByRole('region', { name: 'Long poles' });
  const first = poles.locator('tbody tr').first();
  const pole = await first.getByRole('button').innerText();
  expect(sentence.startsWith(pole.replace(/ ×\d+$/, '')), `the headline names "${sentence}", the first pole is "${pole}"`);
  await first.getByRole('button').click();
  const panel = page.getByRole('complementary', { name: 'Selection' });
  await panel.getByRole('button', { name: 'Drop the selection' }).waitFor();
  const span = await until('a selected span in the URL', () => new URL(page.url()).searchParams.get('span'));
  await page.locator(`[role="row"][data-span="${span}"][aria-selected="true"]`).waitFor({ state: 'attached' });
  expect(
    (await panel.getByRole('region', { name: 'Savings' }).innerText()).includes('Saves if 0'),
    'the panel does not say what the span saves',
  );
  await settled(page);
  await shoot('pole');

  const top = panel.getByRole('region', { name: 'Top functions' }).locator('button[data-frame]').first();
  await top.waitFor();
  const hot = await top.innerText();
  const frame = await top.getAttribute('data-frame');
  // The same function as a box of the flame graph, found through the list that mirrors it.
  // It is there unless it is too narrow to be pointed at.
  const box = panel
    .getByRole('group', { name: /^Flame graph of/ })
    .getByRole('button', { name: new RegExp(hot.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) });
  await ((await box.count()) > 0 ? box.first() : top).click();
  await until(`${frame} in the URL`, () => new URL(page.url()).searchParams.get('frame') === frame);
  const spans = page.getByRole('region', { name: 'Selected function' }).locator('button[data-span-link]');
  await spans.first().waitFor();
  const handles = await spans.evaluateAll((buttons) => buttons.map((button) => button.dataset.spanLink));
  expect(handles.includes(span), `${hot} is not said to have run in ${span}, but in ${handles.join(', ')}`);
  const label = await page.locator(`[role="row"][data-span="${span}"]`).innerText();
  expect(/of its samples are in the selected function/.test(label), `the row of ${span} is not marked: "${label}"`);
  await settled(page);
  await shoot('frame');

  // The URL is the state: the same view comes back from it.
  const address = page.url();
  await page.goto(address);
  await page.locator(`button[data-frame="${frame}"][aria-pressed="true"]`).waitFor();
  await page.locator(`[role="row"][data-span="${span}"][aria-selected="true"]`).waitFor({ state: 'attached' });
  expect(page.url() === address, `the URL changed from ${address} to ${page.url()}`);
  return { handle, sentence, answer, pole, hot, spans: handles };
}

/** Walks the story in both themes and sizes; answers with what was read. */
export async function findTheLongPole(url, directory) {
  await mkdir(directory, { recursive: true });
  const browser = await launchBrowser();
  const { origin } = new URL(url);
  let read = null;
  try {
    for (const scheme of ['light', 'dark']) {
      for (const size of SIZES) {
        const { page, faults, close } = await openPage(browser, origin, { ...size, scheme });
        const shoot = async (step) => {
          // The pointer would leave its mark on the picture.
          await page.mouse.move(0, 0);
          await settled(page);
          const name = `${step}-${scheme}-${size.name}`;
          await page.screenshot({ path: join(directory, `${name}.png`) });
          for (const fault of await accessibilityFaults(page)) faults.push(`${name}: ${fault}`);
        };
        read = await walk(page, url, shoot);
        await close();
        expect(faults.length === 0, `${scheme} ${size.name}:\n${faults.join('\n')}`);
      }
    }
  } finally {
    await browser.close();
  }
  await writeFile(join(directory, 'read.json'), `${JSON.stringify(read, null, 2)}\n`);
  return read;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [url, directory] = process.argv.slice(2);
  if (url === undefined || directory === undefined) {
    process.stderr.write('usage: node stories/find-the-long-pole.mjs URL OUTDIR\n');
    process.exit(2);
  }
  try {
    const read = await findTheLongPole(url, directory);
    process.stdout.write(`${read.sentence}\n${read.hot} is behind it; it ran in ${read.spans.join(', ')}\n`);
  } catch (error) {
    process.stderr.write(`find-the-long-pole failed: ${error instanceof Error ? error.message : error}\n`);
    process.exit(1);
  }
}
