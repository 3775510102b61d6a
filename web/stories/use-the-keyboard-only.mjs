/**
 * Story: somebody who does not use a mouse opens a recording, walks its rows, selects a span, walks its flame graph, selects a function, goes to
 * another span in which it ran, and clears the selection again.
 *
 * Guarantees: each of these is done with keys alone; the treegrid says what is selected and unfolded; the focus is never lost; the help lists the keys;
 * the palette finds actions, poles, spans and functions by some letters, and tells screen readers which of them Enter runs.
 */
import { expect, launchBrowser, openPage, settled, until } from './browser.mjs';

const search = (page) => new URL(page.url()).searchParams;
const focusedSpan = (page) => page.evaluate(() => document.activeElement?.getAttribute('data-span') ?? null);
const focusedNode = (page) => page.evaluate(() => document.activeElement?.getAttribute('data-node') ?? null);

async function tabUntil(page, what, reached) {
  for (let presses = 0; presses < 60; presses++) {
    if (await reached()) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`60 presses of Tab do not lead to ${what}`);
}

/** Presses a key and waits until the focus is where it should go. */
async function press(page, key, focused, expected) {
  await page.keyboard.press(key);
  await until(`the focus on ${expected} after ${key}`, async () => (await focused(page)) === expected);
}

/** Finds rows by words and conditions, goes through them, and shows only these. */
async function findRows(page) {
  const rows = () => page.getByRole('treegrid').getByRole('row').count();
  const words = () => page.getByRole('search').getByRole('status').innerText();
  const all = await rows();
  await page.keyboard.press('/');
  await page.keyboard.type('create dur>');
  await until('what is wrong with half a condition', async () => (await words()).includes('takes a duration'));
  await page.keyboard.type('1us');
  const counted = await until('the number of rows', async () => /^(\d+)\srows?, \S+ on path$/.exec(await words()));
  const found = Number(counted[1]);
  expect(found > 0 && found < all, `of ${all} rows ${found} are found`);
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await until('a found row selected', async () => /^\d+ of \d+$/.test(await words()));
  await tabUntil(page, 'the switch', () => page.evaluate(() => document.activeElement?.textContent === 'only these'));
  await page.keyboard.press('Enter');
  await until('fewer rows', async () => (await rows()) < all && search(page).get('only') === '1');
  await settled(page);
  await page.reload();
  await until('the same rows by the link', async () => (await rows()) < all && (await rows()) > 0);
  await page.keyboard.press('Escape');
  await until('the search over', async () => !search(page).has('find') && (await rows()) === all);
}

/** Types into the palette, and runs the first command whose title matches. */
async function command(page, words, title) {
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox');
  await field.waitFor();
  await page.keyboard.type(words);
  const chosen = page.getByRole('option', { selected: true });
  await until(`${title} for "${words}"`, async () => (await chosen.count()) === 1 && title.test(await chosen.innerText()));
  expect((await field.getAttribute('aria-activedescendant')) === (await chosen.getAttribute('id')), 'the field names another option');
  await page.keyboard.press('Enter');
  await field.waitFor({ state: 'detached' });
}

/** Goes to things by some of their letters, from anywhere on the page. */
async function findByPalette(page) {
  await command(page, 'p2', /^p2 /);
  await until('p2 selected', () => search(page).get('pole') === 'p2');
  await command(page, 's5', /^s5 run program/);
  await until('s5 selected', () => search(page).get('span') === 's5');
  await settled(page);
  await command(page, 'clps all', /^Collapse all rows/);
  await until('all folded', () => search(page).get('fold') === 'all');
  await command(page, 'expand', /^Expand all rows/);
  await until('all unfolded', () => !search(page).has('fold'));
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.getByRole('option').nth(1).and(page.locator('[aria-selected="true"]')).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('combobox').waitFor({ state: 'detached' });
  expect(search(page).get('span') === 's5', 'Escape closed more than the palette');
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await until('the flame graph focused', async () => (await focusedNode(page)) !== null);
}

/** Goes to the first row while the rows move, as when the selection of the key before brings its row into sight. */
async function goHomeWhileRowsMove(page) {
  await press(page, 'End', focusedSpan, 's38');
  await page.evaluate(() => {
    const home = new KeyboardEvent('keydown', { key: 'Home', bubbles: true, cancelable: true });
    document.activeElement?.dispatchEvent(home);
    const wheel = new WheelEvent('wheel', { deltaY: 3000, bubbles: true, cancelable: true });
    document.querySelector('[aria-label="Rows of the trace"]')?.dispatchEvent(wheel);
  });
  await until('the focus on the first row', async () => (await focusedSpan(page)) === 's1');
}

async function walk(page, url) {
  await page.goto(url);
  await page.getByRole('link', { name: 'r7' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('deploy');
  await until('only the deployment in the list', async () => (await page.locator('tbody tr').count()) === 1);
  await tabUntil(page, 'the recording', () => page.evaluate(() => document.activeElement?.textContent === 'r7'));
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid').getByRole('row').first().waitFor({ state: 'attached' });
  await settled(page);

  await tabUntil(page, 'the rows', async () => (await focusedSpan(page)) !== null);
  await press(page, 'Home', focusedSpan, 's1');
  await press(page, 'ArrowDown', focusedSpan, 's2');
  await press(page, 'ArrowDown', focusedSpan, 's3');
  await page.keyboard.press('ArrowLeft');
  await page.locator('[data-span="s3"][aria-expanded="false"]').waitFor({ state: 'attached' });
  await press(page, 'ArrowDown', focusedSpan, 's6');
  await press(page, 'ArrowUp', focusedSpan, 's3');
  await page.keyboard.press('ArrowRight');
  await page.locator('[data-span="s3"][aria-expanded="true"]').waitFor({ state: 'attached' });
  await press(page, 'End', focusedSpan, 's38');
  await press(page, 'ArrowLeft', focusedSpan, 's2');
  await page.keyboard.press('.');
  await until('the next pole selected', () => search(page).get('span') !== null);
  await goHomeWhileRowsMove(page);
  await press(page, 'Home', focusedSpan, 's1');
  for (const span of ['s2', 's3', 's4', 's5']) await press(page, 'ArrowDown', focusedSpan, span);
  await page.keyboard.press('Enter');
  await until('s5 selected', () => search(page).get('span') === 's5');
  const announced = await until('the selection in words', () => page.locator('p[aria-live="polite"]').textContent());
  expect(announced.includes('run program'), `the selection is announced as "${announced}"`);
  await settled(page);

  await findRows(page);
  await findByPalette(page);

  await page.keyboard.press('w');
  await until('a time range in the URL', () => search(page).has('t'));
  await page.keyboard.press('0');
  await until('the whole run again', () => !search(page).has('t'));

  await tabUntil(page, 'the flame graph', async () => (await focusedNode(page)) !== null);
  await press(page, 'ArrowDown', focusedNode, '1');
  for (const node of ['2', '3', '4', '5', '6']) await press(page, 'ArrowDown', focusedNode, node);
  await page.keyboard.press('Shift+Enter');
  await until('the box zoomed', () => search(page).get('node') === '6');
  await settled(page);
  await page.keyboard.press('Backspace');
  await until('zoomed out by one', () => search(page).get('node') === '5');
  await page.keyboard.press('Enter');
  await until('a function selected', () => search(page).has('frame'));
  await page.getByRole('region', { name: 'Selected function' }).waitFor();

  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard and mouse' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(search(page).has('frame'), 'closing the help dropped the selection');
  await page.keyboard.press('Escape');
  await until('the function dropped', () => !search(page).has('frame'));
  await page.keyboard.press('Escape');
  await until('the span dropped', () => !search(page).has('span'));
  await page.goBack();
  await until('the span back', () => search(page).get('span') === 's5');
}

/** Runs the story; `url` is the list of the made-up recordings. */
export async function useTheKeyboardOnly(url) {
  const browser = await launchBrowser();
  try {
    const { page, faults } = await openPage(browser, new URL(url).origin);
    await walk(page, url);
    expect(faults.length === 0, faults.join('\n'));
  } finally {
    await browser.close();
  }
}
