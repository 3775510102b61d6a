/**
 * Story: somebody asks what service each bar is of, looks at one service alone, hides another, and steps from pole to pole.
 *
 * Guarantees: the legend has each service of the API with a colour and a name; a click shows only its rows and what they are in, Shift and a click hide
 * it, both as a search in the URL; `.` goes from the first pole to the next by rank, `,` back, and the bar of each is on the screen.
 *
 *   node stories/see-one-service.mjs 'http://127.0.0.1:PORT/?token=…' OUTDIR
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, openList, settled, tell, until, walkEverywhere } from './browser.mjs';

const search = (page) => new URL(page.url()).searchParams;
const IS_PROCESS = 4;

/** Whether a span's bar is in the range of time that the URL says is on the screen. */
function isOnScreen(page, spans, handle) {
  const row = Number(handle.slice(1)) - 1;
  const [start, end] = [spans.start_nanos[row], spans.start_nanos[row] + spans.duration_nanos[row]];
  const range = search(page).get('t');
  if (range === null) return true;
  const [from, to] = range.split('-').map(Number);
  return start <= to && end >= from;
}

async function walk(page, url, shoot) {
  const handle = await openList(page, url);
  await page.goto(new URL(`/r/${handle}`, page.url()).href);
  const rows = page.getByRole('treegrid').getByRole('row');
  await rows.first().waitFor({ state: 'attached' });
  await settled(page);
  const { services, spans } = await answerOf(page, `/api/recordings/${handle}/tree`);
  const counts = services.map(
    (_, service) => spans.service.filter((of, row) => of === service && (spans.flags[row] & IS_PROCESS) === 0).length,
  );
  const chips = page.getByRole('list', { name: 'Services' }).getByRole('button');
  const listed = counts.filter((count) => count > 0).length;
  expect((await chips.count()) === (listed > 9 ? 9 : listed), `of ${listed} services ${await chips.count()} have chips`);
  await shoot('services');

  const grid = page.getByRole('treegrid');
  const count = async () => Number(await grid.getAttribute('aria-rowcount'));
  const all = await count();
  const last = chips.nth(listed - 1);
  const name = (await last.innerText()).trim();
  await last.click();
  await until('only one service in the URL', () => search(page).get('find')?.startsWith('service=') && search(page).get('only') === '1');
  await until('fewer rows', async () => (await count()) < all);
  expect((await last.getAttribute('aria-pressed')) === 'true', `${name} is not pressed`);
  await settled(page);
  await shoot('one-service');
  await last.click();
  await until('all rows again', async () => (await count()) === all && !search(page).has('find'));
  await last.click({ modifiers: ['Shift'] });
  await until('a service hidden', () => search(page).get('find')?.startsWith('service!='));
  expect((await last.innerText()).includes('hidden'), `nothing says that ${name} is hidden`);
  await page.goBack();
  await until('all rows with Back', async () => (await count()) === all);

  const { poles } = await answerOf(page, `/api/recordings/${handle}/poles`);
  const inTrace = poles.filter((pole) => pole.spans.length > 0);
  // At the very start of the run: the bars of poles are elsewhere.
  await page.keyboard.press('0');
  for (let presses = 0; presses < 12; presses++) await page.keyboard.press('w');
  await until('a range in the URL', () => search(page).has('t'));
  const step = async (key, place) => {
    await page.keyboard.press(key);
    const { handle: pole, spans: own } = inTrace[place];
    await until(`${pole} selected`, () => search(page).get('pole') === pole);
    await until(`the bar of ${pole} on the screen`, () => isOnScreen(page, spans, own[0]));
  };
  await step('.', 0);
  await step('.', 1);
  await step(',', 0);
  await settled(page);
  await shoot('first-pole');
  return { handle, services: listed };
}

/** Walks the story in both themes and sizes; returns its result. */
export function seeOneService(url, directory) {
  return walkEverywhere(url, directory, walk);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('see-one-service', seeOneService, (read) => JSON.stringify(read));
}
