/**
 * Story: somebody opens a file of 2,000 traces and sees which operation is slow, sorts and groups the table, opens the spans of one operation in the
 * trace, goes back, and drags over the slowest durations of another to see only those spans. Then they do the same with the keyboard in a deployment.
 *
 * Guarantees: many traces begin with the table, a run with its trace; each number of spans in the table is the number of rows that the search finds;
 * a quantile of too few spans is missing, and says why; the browser's Back leads from the spans to the table; axe finds nothing serious, and no
 * width makes the page scroll sideways.
 */
import { accessibilityFaults, expect, launchBrowser, openPage, settled, until, walkEverywhere } from './browser.mjs';

const search = (page) => new URL(page.url()).searchParams;
const table = (page) => page.getByRole('region', { name: 'Operations' }).getByRole('table');
const rowOf = (page, name) => table(page).getByRole('row').filter({ hasText: name });
const names = (page) => table(page).locator('tbody th button').allInnerTexts();
const wordsOfFind = (page) => page.getByRole('search').getByRole('status').innerText();

/** The number of rows that the search found, as the page says it. */
async function found(page) {
  const match = await until('the number of rows', async () => /^([\d,]+)\srows?, /.exec(await wordsOfFind(page)));
  return Number(match[1].replaceAll(',', ''));
}

const countOf = async (page, name) => Number((await rowOf(page, name).getByRole('cell').first().innerText()).replaceAll(',', ''));

async function orderBy(page, title, direction) {
  const heading = table(page).getByRole('columnheader', { name: title });
  await heading.getByRole('button').click();
  await until(`${title} ${direction}`, async () => (await heading.getAttribute('aria-sort')) === direction);
}

/** Drags over the right part of the large histogram, and returns the number of spans that it names. */
async function dragOverTheSlowest(page, share) {
  const slider = page.getByRole('slider', { name: /^Durations of/ });
  const box = await slider.boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * (1 - share), y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, y, { steps: 4 });
  const words = await page.locator('figcaption').innerText();
  await page.mouse.up();
  return Number(/and above: ([\d,]+)\sspan/.exec(words)?.[1].replaceAll(',', ''));
}

async function walk(page, url, shoot) {
  await page.goto(url);
  await page.getByRole('link', { name: 'r1', exact: true }).click();
  await table(page).waitFor();
  await page.getByRole('heading', { name: /^2,000\straces; p99 of POST \/checkout is [\d.]+ms\.$/ }).waitFor();
  expect((await page.getByRole('region', { name: 'Long poles' }).count()) === 0, 'many traces have a table of long poles');
  await shoot('operations');

  await orderBy(page, 'p99', 'descending');
  expect((await names(page))[0] === 'POST /checkout', `the slowest operation is ${(await names(page))[0]}`);
  await orderBy(page, 'p99', 'ascending');
  expect((await names(page)).at(-1) === 'POST /checkout', 'the other way round the slowest operation is not last');
  await page.getByRole('group', { name: 'Group by' }).getByRole('button', { name: 'service', exact: true }).click();
  await until('a row for each service', async () => (await names(page)).sort().join(' ') === 'cart payment shop stock');
  await page.getByRole('group', { name: 'Group by' }).getByRole('button', { name: 'name and service' }).click();
  await until('a row for each operation', async () => (await names(page)).length === 6);

  const carts = await countOf(page, 'GET /cart');
  await rowOf(page, 'GET /cart').click();
  await until('a search for the spans', () => search(page).get('find') === 'name="GET /cart" service=shop');
  expect((await found(page)) === carts, `of ${carts} spans the search finds ${await found(page)}`);
  expect(search(page).get('only') === '1', 'the trace also shows other rows');
  await shoot('spans-of-an-operation');
  await page.goBack();
  await table(page).waitFor();

  await rowOf(page, 'SELECT stock')
    .getByRole('button', { name: /^Durations/ })
    .click();
  await page.getByRole('slider', { name: 'Durations of SELECT stock FOR UPDATE of stock' }).waitFor();
  const slow = await dragOverTheSlowest(page, 0.3);
  expect(slow > 0 && slow < (1200 * 2) / 3, `${slow} spans are slow`);
  await until('a search for durations', () => /dur>=[\d.]+ms$/.test(search(page).get('find') ?? ''));
  expect((await found(page)) === slow, `of ${slow} slow spans the search finds ${await found(page)}`);
  await shoot('slow-spans');
  return { carts, slow };
}

const isFocused = (page, words) =>
  page.evaluate((text) => document.activeElement?.getAttribute('aria-label')?.includes(text) ?? false, words);

/** The same without a mouse, in a run: its trace comes first. */
async function walkByKeyboard(page, url) {
  await page.goto(url);
  await page.getByRole('treegrid').waitFor();
  await settled(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('operations');
  await page.getByRole('option', { selected: true, name: 'Go to the operations' }).waitFor();
  await page.keyboard.press('Enter');
  await until('the first row focused', () => isFocused(page, 'Show the spans: deploy'));
  expect((await page.getByRole('region', { name: 'Long poles' }).count()) === 1, 'a run has no table of long poles');
  const missing = rowOf(page, 'start replica').getByTitle(
    '12 spans are too few: the p99 would be the longest duration. It needs 100 spans.',
  );
  expect((await missing.innerText()) === '–', 'the p99 of 12 spans is there');

  await page.keyboard.press('ArrowDown');
  await until('the second row focused', () => isFocused(page, 'Show the spans: pack bundle'));
  await page.keyboard.press('Tab');
  await until('its durations focused', () => isFocused(page, 'Durations: pack bundle'));
  await page.keyboard.press('Enter');
  const slider = page.getByRole('slider', { name: 'Durations of pack bundle' });
  await slider.waitFor();
  // From the row back over the headings to the picture above them.
  for (let presses = 0; presses < 20 && !(await isFocused(page, 'Durations of pack bundle')); presses++)
    await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('End');
  await until('the last bin', async () => / and above: \d+\sspan/.test((await slider.getAttribute('aria-valuetext')) ?? ''));
  for (let presses = 0; presses < 12; presses++) await page.keyboard.press('Shift+ArrowLeft');
  const counted = await until('one slow span', async () => /: 1\sspan$/.exec((await slider.getAttribute('aria-valuetext')) ?? ''));
  expect(counted !== null, 'the slowest durations have no span');
  await page.keyboard.press('Enter');
  await until('a search for it', () => /^name="pack bundle" .*dur>=/.test(search(page).get('find') ?? ''));
  expect((await found(page)) === 1, `the search finds ${await found(page)} spans`);

  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await until('the table focused', () => isFocused(page, 'Show the spans:'));
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await until('the trace focused', () => page.evaluate(() => document.activeElement?.hasAttribute('data-span')));
}

/** Runs the story; `url` is the list of the made-up recordings. */
export async function compareOperations(server, directory) {
  await walkEverywhere(server.url('/'), directory, walk);
  const browser = await launchBrowser();
  try {
    const { page, faults, close } = await openPage(browser, server.origin);
    await walkByKeyboard(page, server.url('/r/r7'));
    await close();
    const phone = await openPage(browser, server.origin, { width: 390, height: 844 });
    for (const path of ['/r/r1', '/r/r7?view=operations', '/r/r7']) {
      await phone.page.goto(server.url(path));
      await phone.page.getByRole('group', { name: 'Trace or operations' }).waitFor();
      await settled(phone.page);
      const over = await phone.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(over <= 0, `${path} is ${over} pixels wider than a phone`);
      faults.push(...phone.faults, ...(await accessibilityFaults(phone.page)));
    }
    expect(faults.length === 0, faults.join('\n'));
  } finally {
    await browser.close();
  }
}
