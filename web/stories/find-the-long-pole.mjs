/**
 * Story: somebody opens the recording of a run, finds the operation to fix and the function behind it, and sees where else that function ran.
 *
 * Guarantees: the list names the answer, and the command without the folder of its program; the first pole is one click away, also from the pole
 * around it, which says that it contains it; what would be waited for in its place is one click further; the flame graph of exactly its span comes with it; a click on the hottest function marks its spans in
 * the list and in the rows; every step is in the URL and comes back from it; no request leaves the origin, nothing is complained about on the
 * console, and axe finds nothing serious, in light and in dark.
 *
 *   node stories/find-the-long-pole.mjs 'http://127.0.0.1:PORT/?token=…' OUTDIR
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answerOf, expect, openList, settled, shortCommand, tell, until, walkEverywhere } from './browser.mjs';

/** The list, and in it the recording of the URL, else the first. */
async function walk(page, url, shoot) {
  const handle = await openList(page, url);
  const row = page.locator('tbody tr', { has: page.getByRole('link', { name: handle, exact: true }) });
  const answer = await row.locator('p').innerText();
  expect(/saves/.test(answer), `the row of ${handle} does not name a saving: "${answer}"`);
  const { command } = await answerOf(page, `/api/recordings/${handle}`);
  const shown = await row.locator('code').first().textContent();
  expect(shown === shortCommand(command), `the list shows the command as "${shown}"`);
  await settled(page);
  await shoot('list');

  await row.getByRole('link', { name: handle, exact: true }).click();
  const headline = page.getByRole('heading', { level: 1 });
  await headline.waitFor();
  await page.getByRole('treegrid', { name: 'Spans' }).getByRole('row').first().waitFor();
  const sentence = await headline.innerText();
  expect(/is the long pole/.test(sentence) && /shorter/.test(sentence), `the headline is no answer: "${sentence}"`);
  expect(!new URL(page.url()).searchParams.has('token'), 'the token stays in the address bar');
  const title = page.getByRole('banner').locator('code');
  expect((await title.textContent()) === shortCommand(command), `the page shows the command as "${await title.textContent()}"`);
  expect((await title.getAttribute('title')) === command.join(' '), 'the whole command cannot be read anywhere');
  await settled(page);
  await shoot('recording');

  const poles = page.getByRole('region', { name: 'Long poles' });
  const rowOf = (place) => poles.locator('tbody tr[aria-current]').nth(place);
  const pole = await rowOf(0).getByRole('button').first().getAttribute('aria-label');
  expect(sentence.startsWith(pole.replace(/ ×\d+/, '')), `the headline names "${sentence}", the first pole is "${pole}"`);
  const panel = page.getByRole('complementary', { name: 'Selection' });
  const { poles: all } = await answerOf(page, `/api/recordings/${handle}/poles`);
  const outer = all.findIndex(({ contains }) => contains === 'p1');
  expect(outer > 0, `no pole says that it contains ${pole}`);
  await rowOf(outer).getByRole('button').first().click();
  await panel
    .getByRole('region', { name: 'Long pole' })
    .getByText(`p${outer + 1}`)
    .waitFor();
  const why = await panel.getByRole('region', { name: 'Long pole' }).innerText();
  expect(why.includes(`contains p1; ${all[outer].reason.text}`), `the panel says of p${outer + 1}: "${why}"`);
  await panel.getByRole('button', { name: 'p1', exact: true }).click();
  await until('the contained pole in the URL', () => new URL(page.url()).searchParams.get('pole') === 'p1');
  await poles.locator('tr[aria-current="true"]', { hasText: 'p1' }).waitFor();
  await page.goBack();
  await until('the pole around it', () => new URL(page.url()).searchParams.get('pole') === `p${outer + 1}`);

  await rowOf(0).getByRole('button').first().click();
  await panel.getByRole('button', { name: 'Deselect the span' }).waitFor();
  const { limited_by: limit } = all[0];
  expect(limit !== null, 'nothing limits the saving of the first pole');
  const next = panel.getByRole('region', { name: 'Long pole' }).getByRole('button', { name: limit.name, exact: true });
  const reasons = await panel.getByRole('region', { name: 'Long pole' }).innerText();
  expect(reasons.includes(`; it cannot save more: without it, ${limit.name} is on the path`), `the panel says of p1: "${reasons}"`);
  await next.click();
  await until(`${limit.handle} in the URL`, () => new URL(page.url()).searchParams.get('span') === limit.handle);
  await page.goBack();
  await panel.getByRole('region', { name: 'Long pole' }).getByText('p1', { exact: true }).waitFor();
  const { spans: own } = all[0];
  const span = await until('a span of the pole in the URL', () => own.find((s) => new URL(page.url()).searchParams.get('span') === s));
  await page.locator(`[role="row"][data-span="${span}"][aria-selected="true"]`).waitFor({ state: 'attached' });
  expect(
    (await panel.getByRole('region', { name: 'Savings' }).innerText()).includes('saves if 2× faster'),
    'the panel does not say what the span saves',
  );
  await settled(page);
  await shoot('pole');

  const top = panel.getByRole('region', { name: 'Top functions' }).locator('button[data-frame]').first();
  await top.waitFor();
  const hot = await top.innerText();
  const frame = await top.getAttribute('data-frame');
  // The same function as a box of the flame graph, through the list that mirrors it.
  // The box is in the list unless it is too narrow.
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

  // The URL is the state: it restores the same view.
  const address = page.url();
  await page.goto(address);
  await page.locator(`button[data-frame="${frame}"][aria-pressed="true"]`).waitFor();
  await page.locator(`[role="row"][data-span="${span}"][aria-selected="true"]`).waitFor({ state: 'attached' });
  expect(page.url() === address, `the URL changed from ${address} to ${page.url()}`);

  // A copied link shows it in a browser that has never been here.
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const elsewhere = await page.context().browser().newContext();
  const fresh = await elsewhere.newPage();
  await fresh.goto(link);
  await fresh.locator(`button[data-frame="${frame}"][aria-pressed="true"]`).waitFor();
  expect(!fresh.url().includes('token='), `the token stays in the address: ${fresh.url()}`);
  await elsewhere.close();
  return { handle, sentence, answer, pole, hot, spans: handles };
}

/** Walks the story in both themes and sizes; returns its result. */
export async function findTheLongPole(url, directory) {
  const read = await walkEverywhere(url, directory, walk);
  await writeFile(join(directory, 'read.json'), `${JSON.stringify(read, null, 2)}\n`);
  return read;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell(
    'find-the-long-pole',
    findTheLongPole,
    (read) => `${read.sentence}\n${read.hot} is behind it; it ran in ${read.spans.join(', ')}`,
  );
}
