/**
 * Story: somebody opens odd recordings: a single process, a hundred thousand spans, a run without permission to profile, a run whose recorder was
 * killed, a recording that does not exist. They come without a token, and keep the page open while the server stops.
 *
 * Guarantees: each page says what is odd and what to do; only the rows on the screen are in the document, however many spans there are; loaded data
 * stays usable without a server; axe finds nothing serious.
 */
import { accessibilityFaults, expect, launchBrowser, openPage, settled, until } from './browser.mjs';

/** Upper limit of rows in the document: more than fit on any screen of these stories. */
const ROWS_MAX = 60;

async function says(page, text) {
  await page.getByText(text).first().waitFor();
}

/** Opens pages by path, checks each, and keeps pictures if there is a directory. */
export async function lookAtOddRecordings(server, directory = null) {
  const browser = await launchBrowser();
  const look = async (name, path, options, inspect) => {
    const { page, faults, close } = await openPage(browser, server.origin, options);
    await page.goto(options.withoutToken === true ? server.origin + path : server.url(path));
    await inspect(page);
    await settled(page).catch(() => undefined);
    for (const fault of await accessibilityFaults(page)) faults.push(fault);
    if (directory !== null) await page.screenshot({ path: `${directory}/${name}.png` });
    expect(faults.length === 0, `${name}:\n${faults.join('\n')}`);
    await close();
  };
  try {
    await look('single', '/r/r6', {}, async (page) => {
      await says(page, 'No long pole: no span or process spent time of its own on the critical path.');
      await says(page, 'This run has no samples');
      expect((await page.getByRole('row').count()) === 1, 'a single process is not a single row');
    });
    await look('refused', '/r/r4?span=s3', { scheme: 'dark' }, async (page) => {
      await says(page, 'profiling was not allowed:');
      await says(page, 'Profiling was not allowed');
      await says(page, 'failed: collect2: error: ld returned 1 exit status');
      await page.getByRole('button', { name: /^Data quality/ }).click();
      await says(page, 'spans whose parent is not in the recording');
    });
    // The trace of a server is no run.
    await look('trace', '/r/r7', {}, async (page) => {
      await page.route(/\/api\/recordings\/r7(\/poles)?$/, async (route) => {
        const document = await (await route.fetch()).json();
        await route.fulfill({ json: { ...document, of: 'trace' } });
      });
      await page.reload();
      await says(page, 'Whole trace');
      await settled(page);
      for (const [words, title] of [
        ['whole', 'Show the whole trace'],
        ['without', /^Imagine the trace without p1, or with it again/],
      ]) {
        await page.keyboard.press('Control+k');
        await page.keyboard.type(words);
        await page.getByRole('option', { name: title }).first().waitFor();
        expect((await page.getByRole('option', { name: 'the run' }).count()) === 0, `"${words}" in the palette finds a run`);
        await page.keyboard.press('Escape');
        await page.getByRole('combobox').waitFor({ state: 'detached' });
      }
      expect((await page.getByText('the run would').count()) === 0, 'the page of a trace speaks of a run');
    });
    await look('killed', '/r/r3', {}, async (page) => {
      await says(page, 'longpole was killed:');
      await says(page, 'shares from fewer than 20 are rough.');
    });
    await look('damaged-row', '/', {}, async (page) => {
      await page.route('**/api/recordings', async (route) => {
        const document = await (await route.fetch()).json();
        await route.fulfill({
          json: { ...document, damaged: ['failed to make sense of catalog.sqlite: row 3: `wall_nanos` is no number'] },
        });
      });
      await page.reload();
      await says(page, '1 recording cannot be listed:');
      await says(page, 'is no number');
    });
    await look('not-sealed', '/', {}, async (page) => {
      await page.route('**/api/recordings', async (route) => {
        const document = await (await route.fetch()).json();
        const [first, ...others] = document.recordings;
        const ended = { ...first, state: 'ended', not_sealed: 'failed to write spans.parquet: no space left on device', answer: null };
        await route.fulfill({ json: { ...document, recordings: [ended, ...others] } });
      });
      await page.reload();
      await says(page, 'no space left on device. Open it to try again.');
    });
    await look('missing', '/r/r99', { expected: [/404/] }, (page) => says(page, 'no recording r99'));
    await look('no-page', '/nowhere', {}, (page) => says(page, 'Page not found'));
    await look('unauthorized', '/r/r7', { withoutToken: true, expected: [/401/] }, (page) =>
      says(page, 'This page needs the token from your terminal'),
    );
    await look('many', '/r/r5', {}, async (page) => {
      const rows = page.getByRole('treegrid').getByRole('row');
      await rows.first().waitFor({ state: 'attached', timeout: 30_000 });
      expect((await rows.count()) <= ROWS_MAX, `${await rows.count()} rows in the document`);
      await rows.first().focus();
      await page.keyboard.press('End');
      await until('the last of 100,000 rows', () => page.evaluate(() => document.activeElement?.getAttribute('data-span') === 's100000'));
      expect((await rows.count()) <= ROWS_MAX, `${await rows.count()} rows in the document after scrolling`);
      await page.keyboard.press('Enter');
      await says(page, 's100000 · shop');
    });
    const { page, faults, close } = await openPage(browser, server.origin, { expected: [/ERR_CONNECTION_REFUSED/] });
    await page.goto(server.url('/r/r7?span=s12'));
    await page.getByRole('region', { name: 'Top functions' }).waitFor();
    await settled(page);
    await server.close();
    await page.locator('[data-frame]').first().click();
    await says(page, 'The longpole server does not respond.');
    await page.keyboard.press('w');
    await until('a time range in the URL', () => new URL(page.url()).searchParams.has('t'));
    expect((await page.getByRole('treegrid').getByRole('row').count()) > 10, 'the rows are gone with the server');
    expect(faults.length === 0, faults.join('\n'));
    await close();
  } finally {
    await browser.close();
  }
}
