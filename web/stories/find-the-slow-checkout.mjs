/**
 * Story: somebody starts `longpole serve`, sends the first span, then runs a shop on it; among 100,000 traces they find the slow checkout and
 * what it waits for, send the link to a colleague, keep the trace, and open the trace that the colleague sent back as a file.
 *
 * Guarantees: the page says how to send the first span and turns green when it comes; three actions lead to the trace; its page says what to fix
 * first; the link shows the same in a fresh browser; a kept trace is a recording; a dropped file is one, or the page says why not; axe finds nothing
 * serious. The server is a real one.
 */
import { fileURLToPath } from 'node:url';
import { accessibilityFaults, expect, launchBrowser, openPage, settled, tell, until } from './browser.mjs';

const TRACES = 100_000;
const TRACES_OF_A_REQUEST = 500;
const REQUESTS_AT_ONCE = 4;
/** The slow one, not among the newest that a list without filters has. */
const SLOW = 31_415;

const hex = (number, digits) => number.toString(16).padStart(digits, '0');
const MILLION = 1_000_000n;

/** A checkout that takes 24 ms, or 2.4 s where it waits for a lock in the database. */
function spansOf(number, startMillis) {
  const factor = number === SLOW ? 100 : 1;
  const traceId = hex(number, 32);
  const span = (id, parent, name, kind, from, to) => ({
    traceId,
    spanId: hex(number * 4 + id, 16),
    parentSpanId: parent === 0 ? '' : hex(number * 4 + parent, 16),
    name,
    kind,
    startTimeUnixNano: `${BigInt(startMillis + from * factor) * MILLION}`,
    endTimeUnixNano: `${BigInt(startMillis + to * factor) * MILLION}`,
  });
  return {
    checkout: [span(1, 0, 'POST /checkout', 2, 0, 24), span(2, 1, 'render receipt', 1, 23, 24)],
    stock: [span(3, 1, 'SELECT stock FOR UPDATE', 2, 1, 23)],
  };
}

function bodyOf(traces) {
  const resourceSpans = ['checkout', 'stock'].map((service) => ({
    resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] },
    scopeSpans: [{ spans: traces.flatMap((spans) => spans[service]) }],
  }));
  return JSON.stringify({ resourceSpans });
}

async function send(otlp, traces) {
  const sent = await fetch(`${otlp}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: bodyOf(traces) });
  expect(sent.ok, `the server answers ${sent.status}: ${await sent.text()}`);
}

/** Sends the traces of the last ten minutes, a few requests at a time. */
async function sendAll(otlp) {
  const begin = Date.now() - 600_000;
  let next = 1;
  const sender = async () => {
    while (next < TRACES) {
      const first = next;
      next += TRACES_OF_A_REQUEST;
      const numbers = Array.from({ length: Math.min(TRACES_OF_A_REQUEST, TRACES - first) }, (_, place) => first + place);
      await send(
        otlp,
        numbers.map((number) => spansOf(number, begin + Math.floor((number * 590_000) / TRACES))),
      );
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, sender));
}

/** Drops a file on the page. */
async function drop(page, name, text) {
  const files = await page.evaluateHandle(
    ([fileName, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], fileName));
      return transfer;
    },
    [name, text],
  );
  await page.dispatchEvent('body', 'dragover', { dataTransfer: files });
  await page.getByText('Drop a trace, a profile or a recording to open it').waitFor();
  await page.dispatchEvent('body', 'drop', { dataTransfer: files });
}

const pathOf = (page) => new URL(page.url()).pathname;

/** Goes from the newest thousand traces to the thousand before them, and back. */
async function readOlder(browser, origin) {
  const { page, faults, close } = await openPage(browser, origin);
  await page.goto(`${origin}/search`);
  const first = () => page.locator('tbody tr a').first().getAttribute('href');
  await page.getByText('Showing the 1,000 newest matching traces').waitFor();
  const newest = await first();
  await page.getByRole('link', { name: 'Older traces' }).click();
  await page.getByText('Showing the 1,000 older matching traces').waitFor();
  await until('older traces', async () => (await first()) !== newest);
  await page.getByRole('link', { name: 'Newest traces' }).click();
  await until('the newest traces', async () => (await first()) === newest);
  expect(faults.length === 0, faults.join('\n'));
  await close();
}

async function walk(browser, origin, otlp, page, shoot) {
  await page.goto(origin);
  await page.getByRole('heading', { name: 'Waiting for the first span' }).waitFor();
  await page.getByRole('radio', { name: 'Python' }).check();
  await page.getByText('opentelemetry-instrument python app.py').waitFor();
  await shoot('first-span');
  await send(otlp, [spansOf(TRACES, Date.now() - 1_000)]);
  await page.getByRole('status').getByText('The first span has arrived, from').waitFor();
  await shoot('first-span-came');

  await sendAll(otlp);
  // Three actions.
  await page.getByLabel('Service').selectOption('checkout');
  await page.getByLabel('Min span duration').fill('1s');
  const slow = page.locator('tbody tr').getByRole('link', { name: 'POST /checkout' });
  await until('the one slow trace', async () => (await page.locator('tbody tr').count()) === 1, 30_000);
  await shoot('slow-checkout-found');
  await slow.click();

  await page
    .getByRole('heading', { name: /SELECT stock FOR UPDATE/ })
    .first()
    .waitFor();
  await settled(page);
  await shoot('slow-checkout');
  expect(pathOf(page) === `/r/${hex(SLOW, 32)}`, `the page of the trace is ${page.url()}`);
  await page.getByText('2.20s shorter').waitFor();

  // A colleague gets the link.
  const link = page.url();
  const { page: fresh, faults, close } = await openPage(browser, origin);
  await fresh.goto(link);
  await fresh
    .getByRole('heading', { name: /SELECT stock FOR UPDATE/ })
    .first()
    .waitFor();
  await settled(fresh);
  expect(new URL(fresh.url()).search === new URL(link).search, `the link ${link} became ${fresh.url()}`);
  expect(faults.length === 0, faults.join('\n'));
  await close();

  await readOlder(browser, origin);

  await page.getByRole('button', { name: 'Keep' }).click();
  await until('the recording of the trace', () => pathOf(page) === '/r/r1');
  await page
    .getByRole('heading', { name: /SELECT stock FOR UPDATE/ })
    .first()
    .waitFor();
  await page.getByRole('link', { name: 'Recordings', exact: true }).click();
  await page.getByRole('link', { name: 'r1' }).waitFor();
  await shoot('kept');

  await drop(page, 'from a colleague.json', bodyOf([spansOf(7, Date.now())]));
  await until('the recording of the file', () => pathOf(page) === '/r/r2');
  await page.getByText('POST /checkout').first().waitFor();
  await drop(page, 'holiday.jpg', 'no trace at all');
  await page.getByRole('alert').getByText('holiday.jpg').waitFor();
  await shoot('not-a-trace');
  await page.getByRole('alert').getByRole('button', { name: 'Close' }).click();

  await page.goto(`${origin}/search`);
  // What all of them have in common.
  const answer = page.getByRole('region', { name: 'What to fix first' });
  await answer
    .getByText('Fix SELECT stock FOR UPDATE · stock first: without it, POST /checkout takes 2.0ms instead of 24.0ms (median)')
    .waitFor();
  await answer.getByRole('button', { name: 'Long poles' }).click();
  await answer.getByRole('row', { name: /SELECT stock FOR UPDATE · stock 9[12]% 1,000 2\.0ms/ }).waitFor();
  await shoot('what-to-fix-first');
  return { kept: 'r1', dropped: 'r2' };
}

async function findTheSlowCheckout(url, directory, otlp) {
  const { origin } = new URL(url);
  const browser = await launchBrowser();
  try {
    const { page, faults, close } = await openPage(browser, origin, { width: 1280, height: 900, expected: [/status of 400/] });
    const read = await walk(browser, origin, otlp, page, async (name) => {
      for (const scheme of ['light', 'dark']) {
        // The page of a trace is for a desk.
        const narrow = pathOf(page).startsWith('/r/') ? [900, 700] : [390, 844];
        for (const [width, height] of [narrow, [1280, 900]]) {
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
    return read;
  } finally {
    await browser.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell(
    'find-the-slow-checkout',
    (url, directory) => findTheSlowCheckout(url, directory, process.argv[4]),
    (read) => JSON.stringify(read),
  );
}
