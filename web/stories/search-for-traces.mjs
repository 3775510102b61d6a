/**
 * Story: somebody looks for slow traces of one service: they drag a rectangle in the plot, take it back, watch new traces come, point at a row, and
 * keep the page open while the server stops.
 *
 * Guarantees: the rectangle holds the traces whose dots were in it, whatever spans are filtered; it is in the address, and Escape and the browser's
 * back button undo it; new rows are marked, and none come while the pointer is on a row; the page says that the server is gone; axe finds nothing
 * serious.
 */
import { accessibilityFaults, expect, launchBrowser, openPage, settled, until } from './browser.mjs';

const plotOf = (page) => page.getByRole('img', { name: /^Plot of/ });
const rowsOf = (page) => page.locator('tbody tr').count();
const search = (page) => new URL(page.url()).searchParams;

/** Places of the dots, relative to the plot. */
function dotsOf(page) {
  return plotOf(page).evaluate((svg) => {
    const { left, top } = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll('circle, path:not(g *)')];
    return marks.map((mark) => {
      const { x, y, width, height } = mark.getBoundingClientRect();
      return { x: x - left + width / 2, y: y - top + height / 2 };
    });
  });
}

/** Drags in the plot from one place to another. */
async function drag(page, from, to) {
  const { x, y } = await plotOf(page).boundingBox();
  await page.mouse.move(x + from.x, y + from.y);
  await page.mouse.down();
  await page.mouse.move(x + to.x, y + to.y, { steps: 3 });
  await page.mouse.up();
}

async function walk(page, server, shoot) {
  await page.goto(server.url('/search?service=cart'));
  await plotOf(page).waitFor();
  const label = await plotOf(page).getAttribute('aria-label');
  expect(
    /^Plot of 120.traces by start and duration, 12 with errors, started .*, took 2\.0ms–/.test(label),
    `the plot is labelled "${label}"`,
  );
  expect((await rowsOf(page)) === 120, `${await rowsOf(page)} rows`);
  await shoot('traces');

  // The spans of the service are ten times shorter than the traces, and start later.
  const { width, height } = await plotOf(page).boundingBox();
  const [from, to] = [
    { x: width * 0.3, y: height * 0.2 },
    { x: width * 0.6, y: height * 0.6 },
  ];
  const inside = (await dotsOf(page)).filter(({ x, y }) => x > from.x && x < to.x && y > from.y && y < to.y).length;
  expect(inside > 5, `${inside} dots in the rectangle`);
  await drag(page, from, to);
  await until('the rectangle in the address', () => ['start', 'end', 'minWall', 'maxWall'].every((name) => search(page).has(name)));
  await settled(page);
  expect((await rowsOf(page)) === inside, `${await rowsOf(page)} rows of a rectangle with ${inside} dots`);
  await shoot('traces-selected');
  const selected = page.url();
  await page.reload();
  await until('the same rows from the address', async () => (await rowsOf(page)) === inside);
  await page.keyboard.press('Escape');
  await until('all rows after Escape', async () => (await rowsOf(page)) === 120);
  expect([...search(page).keys()].join() === 'service', `Escape leaves ${page.url()}`);
  await page.goBack();
  await until('the rectangle after a step back', async () => page.url() === selected && (await rowsOf(page)) === inside);
  await page.getByRole('button', { name: 'Clear' }).click();
  await until('all rows without a rectangle', async () => (await rowsOf(page)) === 120);

  await page.getByRole('button', { name: 'Live' }).click();
  await page.mouse.move(0, 0);
  expect(search(page).get('live') === '1', `live is not in ${page.url()}`);
  server.traces.add(40_000);
  await until('a new row', async () => (await rowsOf(page)) === 121);
  expect(
    await page
      .locator('tbody tr')
      .first()
      .evaluate((row) => row.className !== ''),
    'the new row is not marked',
  );
  await page.locator('tbody tr').nth(3).hover();
  await page.getByText('paused while you point').waitFor();
  // An answer that was under way may still come.
  await settled(page);
  server.traces.add(50_000);
  await page.waitForTimeout(1500);
  expect((await rowsOf(page)) === 121, 'a row came under the pointer');
  await page.mouse.move(0, 0);
  await until('the row that waited', async () => (await rowsOf(page)) === 122);

  await server.close();
  await page.getByRole('alert').getByText('The longpole server does not respond.').waitFor();
  expect((await rowsOf(page)) === 122, 'the rows are gone with the server');
}

/** Walks the story in one theme and size for each picture that differs. */
export async function searchForTraces(server, directory) {
  server.services.isServer = true;
  const browser = await launchBrowser();
  try {
    const { page, faults, close } = await openPage(browser, server.origin, { expected: [/ERR_CONNECTION_REFUSED/] });
    await walk(page, server, async (name) => {
      for (const scheme of ['light', 'dark']) {
        for (const [width, height] of [
          [390, 844],
          [1280, 900],
        ]) {
          await page.emulateMedia({ colorScheme: scheme });
          await page.setViewportSize({ width, height });
          await page.mouse.move(0, 0);
          await settled(page);
          await page.screenshot({ path: `${directory}/${name}-${scheme}-${width}.png` });
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
