/**
 * Story: somebody who is new to a shop opens the map of its services: who calls whom, what fails, what is slow; follows the lines with the keyboard to
 * the traces of a service, and chooses a longer time.
 *
 * Guarantees: the map and its tables have the numbers of the spans that were sent; each service and each call leads to its traces; time and order
 * are in the address; two themes, a phone and sixty services have room; axe finds nothing serious.
 */
import { fileURLToPath } from 'node:url';
import { NO_MAP, shopMap, shopSpans, wideMap } from '../src/testing/services.mjs';
import { accessibilityFaults, expect, launchBrowser, openPage, settled, tell, until } from './browser.mjs';

const mapOf = (page) => page.getByRole('group', { name: /^Map of/ });
const boxOf = (page, name) => mapOf(page).getByRole('link', { name: new RegExp(`^${name}: `) });
const search = (page) => new URL(page.url()).searchParams;
const focused = (page) => page.evaluate(() => document.activeElement?.querySelector('title')?.textContent ?? '');
const rowsOf = (page, table) => page.getByRole('region', { name: table }).locator('tbody tr').allInnerTexts();

async function walk(page, url, shoot) {
  await page.goto(url('/search'));
  await page.getByRole('link', { name: 'Services' }).click();
  await mapOf(page).waitFor();
  expect(new URL(page.url()).pathname === '/services', `the link leads to ${page.url()}`);
  const expected = shopMap();
  const label = await mapOf(page).getAttribute('aria-label');
  expect(label.startsWith('Map of 8\u00a0services and 9\u00a0lines'), `the map is labelled "${label}"`);
  const payment = await boxOf(page, 'payment').locator('title').textContent();
  expect(payment.startsWith('payment: 60\u00a0requests, 6\u00a0errors (10%), median '), `the box says "${payment}"`);
  await page.getByText('8\u00a0services in 60\u00a0traces of the last hour').waitFor();
  // Callers are to the left of callees, and the circle has a line there and a line back.
  const x = async (name) => (await boxOf(page, name).boundingBox()).x;
  const columns = await Promise.all(['shop', 'checkout', 'cart', 'cart-db'].map(x));
  expect(
    columns.every((place, index) => index === 0 || place > columns[index - 1]),
    `the columns are at ${columns}`,
  );
  for (const name of ['prices calls currencies', 'currencies calls prices']) {
    expect(
      (await mapOf(page)
        .getByRole('link', { name: new RegExp(`^${name}: 60.calls, no errors`) })
        .count()) === 1,
      `no line ${name}`,
    );
  }
  await shoot('services');

  const rows = await rowsOf(page, 'Calls');
  expect(rows.length === expected.calls.length, `${rows.length} rows of calls`);
  await page.getByRole('region', { name: 'Calls' }).getByRole('button', { name: 'Errors' }).click();
  await until('the order in the address', () => search(page).get('sort') === 'errors');
  const [worst] = await rowsOf(page, 'Calls');
  expect(/^checkout\s+payment\s+60\s+6 \(10%\)/.test(worst), `the first row is "${worst}"`);
  const sorted = page.getByRole('region', { name: 'Calls' }).locator('th[aria-sort="descending"]');
  expect((await sorted.innerText()).startsWith('Errors'), 'the column does not say that the table is in its order');

  // Tab stops once in the map; arrows follow the lines, the one with the most calls first.
  await page.getByRole('link', { name: '2d' }).focus();
  await page.keyboard.press('Tab');
  expect((await focused(page)).startsWith('shop: '), `Tab stops at "${await focused(page)}"`);
  await page.keyboard.press('ArrowRight');
  expect(/^shop calls /.test(await focused(page)), `→ leads to "${await focused(page)}"`);
  for (let step = 0; step < 4 && !(await focused(page)).startsWith('shop calls checkout'); step += 1) {
    await page.keyboard.press(step < 2 ? 'ArrowDown' : 'ArrowUp');
  }
  await page.keyboard.press('ArrowRight');
  expect((await focused(page)).startsWith('checkout: '), `→ leads to "${await focused(page)}"`);
  await shoot('services-keyboard');
  await page.keyboard.press('Enter');
  await until('the traces of the service', () => new URL(page.url()).pathname === '/search' && search(page).get('service') === 'checkout');
  await page.goBack();
  await mapOf(page).waitFor();
  expect(search(page).get('sort') === 'errors', `a step back leads to ${page.url()}`);
  await mapOf(page)
    .getByRole('link', { name: /^checkout calls payment: / })
    .click();
  await until('the traces of the callee', () => search(page).get('service') === 'payment');
  await page.goBack();

  await page.getByRole('link', { name: '15m' }).click();
  await until('the time in the address', () => search(page).get('range') === '15m');
  await page.getByText('of the last 15 minutes').waitFor();
  await page.reload();
  await page.getByText('of the last 15 minutes').waitFor();
  expect(search(page).get('sort') === 'errors', 'the order is not in the address');
}

/** States that a server with the spans of a shop does not show. */
async function walkOtherStates(page, server, shoot) {
  server.services.show(wideMap());
  await page.goto(server.url('/services'));
  await page.getByText('From the newest 2,000 traces of the last').waitFor();
  expect((await mapOf(page).getByRole('link').count()) > 120, 'boxes or lines are missing');
  await shoot('services-many');
  server.services.show(NO_MAP);
  await page.goto(server.url('/services?range=6h'));
  await page.getByText('No traces in the last 6 hours').waitFor();
  await shoot('services-none');
  server.services.isServer = true;
  server.services.show(shopMap());
  // The page looks again by itself.
  await mapOf(page).waitFor();
  await server.close();
  await page.getByRole('link', { name: '2d' }).click();
  await page.getByRole('alert').getByText('The longpole server does not respond.').waitFor();
}

async function inBrowser(origin, directory, expected, tale) {
  const browser = await launchBrowser();
  try {
    const { page, faults, close } = await openPage(browser, origin, { width: 1280, height: 900, expected });
    await tale(page, async (name) => {
      for (const scheme of ['light', 'dark']) {
        for (const [width, height] of [
          [390, 844],
          [1280, 900],
        ]) {
          await page.emulateMedia({ colorScheme: scheme });
          await page.setViewportSize({ width, height });
          await page.mouse.move(0, 0);
          await settled(page);
          await page.screenshot({ path: `${directory}/${name}-${scheme}-${width}.png`, fullPage: name !== 'services-many' });
          for (const fault of await accessibilityFaults(page)) faults.push(`${name} ${scheme} ${width}: ${fault}`);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          expect(over <= 0, `${name} is ${over} pixels wider than ${width}`);
        }
      }
    });
    expect(faults.length === 0, faults.join('\n'));
    await close();
  } finally {
    await browser.close();
  }
}

/** Walks the story against made-up answers. */
export function seeWhoCallsWhom(server, directory) {
  server.services.isServer = true;
  server.services.show(shopMap());
  return inBrowser(server.origin, directory, [/ERR_CONNECTION_REFUSED/], async (page, shoot) => {
    await walk(page, server.url, shoot);
    await walkOtherStates(page, server, shoot);
  });
}

/** Sends the spans of the shop to a server of `longpole serve`, and walks the story there. */
async function seeWhoCallsWhomInReality(url, directory, otlp) {
  const body = JSON.stringify(shopSpans(Date.now()));
  const sent = await fetch(`${otlp}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(sent.ok, `the server answers ${sent.status}: ${await sent.text()}`);
  const { origin } = new URL(url);
  await inBrowser(origin, directory, [], (page, shoot) => walk(page, (path) => `${origin}${path}`, shoot));
  const answer = await (await fetch(`${origin}/longpole/v1/services/map`)).json();
  const [found, expected] = [answer, shopMap()].map((map) => JSON.stringify(map));
  expect(found === expected, `the server answers\n${found}\nnot\n${expected}`);
  return answer;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell(
    'see-who-calls-whom',
    (url, directory) => seeWhoCallsWhomInReality(url, directory, process.argv[4]),
    (answer) => JSON.stringify(answer),
  );
}
