/**
 * Story: a service uses more CPU than before. Somebody opens the profiles of a new server, which says how to send some; as soon as they come, the
 * first sentence says which function has most of the time. They look for it in the flame graph, compare with the hour before and with the other
 * version, and look at memory. Later, the memory of another service grows.
 *
 * Guarantees: sentence, flame graph, tables and comparison have the numbers of the stacks that were sent; what is chosen, searched for and zoomed
 * into is in the address; the line has the values over time, and a drag over it selects a time; a service that grows is named and leads to its
 * profiles; labels that cannot be read and times without profiles are answered in words; two themes, a phone and a wide screen have room; axe finds
 * nothing serious.
 */
import { fileURLToPath } from 'node:url';
import { sendGrowingProfiles, sendShopProfiles } from '../src/testing/profiles.mjs';
import { accessibilityFaults, expect, launchBrowser, openPage, settled, tell, until } from './browser.mjs';

const search = (page) => new URL(page.url()).searchParams;
const graphOf = (page) => page.getByRole('group', { name: /^Flame graph of/ });
const boxOf = (page, name) => graphOf(page).getByRole('button', { name });
const rowsOf = (page, table) => page.getByRole('region', { name: table }).locator('tbody tr').allInnerTexts();
const answerOfPage = async (page) => (await page.locator('main p').first().innerText()).replace(/\s+/g, ' ');

/** Waits for a sentence that matches, and returns it. */
const sentence = (page, pattern) =>
  until(`a sentence like ${pattern}`, async () => {
    const text = (await page.locator('main').innerText()).replace(/\s+/g, ' ');
    return pattern.exec(text)?.[0];
  });

async function seeHowToSend(page, url, shoot) {
  await page.goto(url('/search'));
  await page.getByRole('navigation', { name: 'Lists' }).getByRole('link', { name: 'Profiles' }).click();
  await page.getByRole('heading', { name: 'No profiles in the last 7 days' }).waitFor();
  for (const [language, words] of [
    ['Go', /pyroscope\.Start\(.*http:\/\//],
    ['Python', /pyroscope\.configure\(/],
    ['Node.js', /Pyroscope\.init\(/],
    ['Java', /-javaagent:pyroscope\.jar/],
    ['Rust', /PyroscopeAgentBuilder/],
    ['OpenTelemetry', /-collection-agent=/],
  ]) {
    await page.getByRole('radio', { name: language, exact: true }).check();
    const steps = await page.locator('main ol').innerText();
    expect(words.test(steps), `${language} says "${steps}"`);
  }
  await page.getByRole('radio', { name: 'Go', exact: true }).check();
  await shoot('profiles-first');
}

async function seeWhoUsesIt(page, shoot) {
  // The page looks again by itself, and the service is in the address.
  await sentence(page, /cart used 3\.96s of CPU time in the last hour; 58% of it in main\.parseRules\./);
  await until('the service in the address', () => search(page).get('service') === 'cart');
  const [first] = await rowsOf(page, 'Functions');
  expect(/^main\.parseRules\s+2\.30s 58%\s+2\.30s 58%/.test(first), `the first function is "${first}"`);
  await boxOf(page, /^main\.handleCart, 90%, 3\.55s total/).waitFor();
  await shoot('profiles-cart');

  await page.getByRole('region', { name: 'Functions' }).getByRole('button', { name: 'Total' }).click();
  await until('the order in the address', () => search(page).get('sort') === 'total');
  const [outer] = await rowsOf(page, 'Functions');
  expect(/^main\.handleCart\s+–\s+3\.55s 90%/.test(outer), `by total, the first function is "${outer}"`);
  const head = page.locator('th[aria-sort="descending"]');
  expect((await head.innerText()).startsWith('Total'), 'the column does not say that the table is in its order');

  // A function of the table is highlighted in the graph.
  await page.getByRole('region', { name: 'Functions' }).getByRole('button', { name: 'main.loadRules', exact: true }).click();
  await until('the function in the address', () => search(page).get('function') === 'main.loadRules');
  expect((await boxOf(page, /^main\.loadRules/).getAttribute('aria-pressed')) === 'true', 'the box of the function is not highlighted');

  // A search highlights all that match, and the tables show only them.
  await page.keyboard.press('/');
  await page.keyboard.type('json');
  await page.getByText('1\u00a0function, 15% in total').waitFor();
  await until('only what was found', async () => (await rowsOf(page, 'Functions')).length === 1);
  expect((await boxOf(page, /^encoding\/json\.Marshal/).getAttribute('aria-pressed')) === 'true', 'what was found is not highlighted');
  await shoot('profiles-found');
  await page.keyboard.press('Escape');
  await until('no search', () => search(page).get('find') === null);
  await page.getByRole('searchbox', { name: 'Find functions' }).blur();
}

async function zoomIntoIt(page, shoot) {
  await boxOf(page, /^main\.loadRules/).focus();
  await page.keyboard.press('Enter');
  await until('the box in the address', () => search(page).get('zoom') === 'main.loadRules');
  await until('only its callees on the screen', async () => (await boxOf(page, /^main\.priceOf/).count()) === 0);
  await shoot('profiles-zoomed');
  await page.reload();
  await page.getByRole('button', { name: 'Whole graph' }).waitFor();
  await page.locator('h1').click();
  await page.keyboard.press('Escape');
  await until('the whole graph', () => search(page).get('zoom') === null);
  await boxOf(page, /^main\.priceOf/).waitFor();
  await page.keyboard.press('Escape');
  await until('no function', () => search(page).get('function') === null);
  // A click of the mouse zooms, too; another one on the same box zooms out.
  const box = await boxOf(page, /^main\.parseRules/).boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await until('the box in the address', () => search(page).get('zoom') === 'main.parseRules');
  await page.goBack();
  await until('a step back', () => search(page).get('zoom') === null);
}

/** The line of values: its sentence, its values under the keyboard, and a drag. */
async function seeWhenItUsedIt(page) {
  await page
    .getByRole('img', { name: /^CPU time of cart from .*, highest 0\.1 CPUs on .*, latest 0\.1 CPUs on .*, version="8" since / })
    .waitFor();
  const values = page.getByRole('slider', { name: 'CPU time of cart at a time' });
  await values.focus();
  await page.keyboard.press('ArrowLeft');
  expect(/: 0\.032 CPUs$/.test(await values.getAttribute('aria-valuetext')), 'the value before is not 0.032 CPUs');
  await values.blur();
  const line = await page.getByRole('img', { name: /^CPU time of cart/ }).boundingBox();
  await page.mouse.move(line.x + line.width * 0.2, line.y + 30);
  await page.mouse.down();
  await page.mouse.move(line.x + line.width * 0.5, line.y + 30, { steps: 3 });
  await page.mouse.up();
  await until('the range in the address', () => search(page).get('start') !== null);
  await sentence(page, /cart used 960\.0ms of CPU time from /);
  await page.goBack();
  await sentence(page, /cart used 3\.96s of CPU time in the last hour/);
}

/** Nothing grew in the last hours; then a service comes that does. */
async function seeWhatGrows(page, at, pyroscope, shoot) {
  expect((await page.getByRole('region', { name: 'What grows' }).count()) === 0, 'something grows');
  await sendGrowingProfiles(pyroscope, Date.now());
  await page.goto(at('/profiles?service=cart'));
  const growing = page.getByRole('link', {
    name: /^ledger memory in use grows by 5\.0MB a day \(\d\.\d%\): main\.remember holds 100% of the growth$/,
  });
  await growing.waitFor();
  await shoot('profiles-growing');
  await growing.click();
  await sentence(page, /ledger had \S+ of memory in use on average in the last 7 days/);
  expect(search(page).get('service') === 'ledger' && search(page).get('function') === 'main.remember', `the address is ${page.url()}`);
  await page.getByRole('img', { name: /^memory in use of ledger from .*, latest 100MB on / }).waitFor();
  await shoot('profiles-ledger');
}

async function compare(page, shoot) {
  await page.getByRole('combobox', { name: 'Compare with' }).selectOption('1h');
  await until('the comparison in the address', () => search(page).get('before') === '1h');
  const pattern =
    /cart used 3\.96s of CPU time in the last hour, 98% more than 1 hour earlier\. Most changed: main\.parseRules, from 30% to 58% of it \(\+28\.1 points\)\./;
  await sentence(page, pattern);
  const [first] = await rowsOf(page, 'Changes');
  expect(/^main\.parseRules\s+\+28\.1 \+1\.70s\s+30% 600\.0ms\s+58% 2\.30s/.test(first), `the first change is "${first}"`);
  await shoot('profiles-before');

  // A time without profiles compares with nothing.
  await page.getByRole('combobox', { name: 'Compare with' }).selectOption('1d');
  await sentence(page, /in the last hour; there is nothing 1 day earlier to compare with\./);
  await page.getByRole('region', { name: 'Functions' }).waitFor();

  await page.getByLabel('Labels', { exact: true }).fill('version="8"');
  await page.getByLabel('Labels', { exact: true }).press('Enter');
  await page.getByRole('combobox', { name: 'Compare with' }).selectOption('labels');
  await page.getByRole('textbox', { name: 'Other labels' }).fill('version="7"');
  await page.getByRole('textbox', { name: 'Other labels' }).press('Enter');
  await sentence(
    page,
    /where version="8", 3\.1 times as much as version="7"\. Most changed: main\.parseRules, from 31% to 67% of it \(\+35\.4 points\)/,
  );
  expect(search(page).get('beforeLabels') === 'version="7"' && search(page).get('before') === null, `the address is ${page.url()}`);
  await page.reload();
  await sentence(page, /3\.1 times as much as version="7"/);
  await shoot('profiles-versions');
  await page.getByRole('combobox', { name: 'Compare with' }).selectOption('');
}

async function lookElsewhere(page, shoot) {
  const labels = page.getByLabel('Labels', { exact: true });
  await labels.fill('version=8');
  await labels.press('Enter');
  await page.getByRole('alert').getByText('Write the value of version in quotation marks, as env="prod".').waitFor();
  expect((await labels.getAttribute('aria-invalid')) === 'true', 'the field does not say that it is wrong');
  await shoot('profiles-wrong');
  await labels.fill('version=~"("');
  await labels.press('Enter');
  await page.getByRole('alert').getByText('is no regular expression').waitFor();
  await labels.fill('version="9"');
  await labels.press('Enter');
  await page.getByRole('heading', { name: /^No CPU time of cart in the last hour where version="9"/ }).waitFor();
  await shoot('profiles-nothing');
  await page.getByRole('link', { name: 'with any labels' }).click();
  await sentence(page, /cart used 3\.96s of CPU time/);

  await page.getByRole('combobox', { name: 'Type' }).selectOption({ label: 'memory in use' });
  await sentence(page, /cart had 12\.4MB of memory in use on average in the last hour; 76% of it in main\.parseRules\./);
  await shoot('profiles-memory');
  await page.getByRole('combobox', { name: 'Service' }).selectOption('checkout');
  await sentence(page, /checkout used \S+ of CPU time in the last hour/);
  await shoot('profiles-checkout');
  await page.getByRole('button', { name: 'Earlier' }).click();
  await until('a range in the address', () => search(page).get('start') !== null && search(page).get('since') === null);
  await page.getByRole('heading', { name: /^No CPU time of checkout from / }).waitFor();
  await shoot('profiles-earlier');
  await page.getByRole('button', { name: 'Later' }).click();
  await sentence(page, /checkout used \S+ of CPU time from /);
}

/** What is loaded stays when the server goes; what is not yet says so. */
async function loseTheServer(page, at) {
  await page.goto(at('/profiles?service=cart'));
  await sentence(page, /cart used 3\.96s of CPU time/);
  await page.route('**/longpole/v1/**', (route) => route.abort());
  await page.getByRole('link', { name: '6h' }).click();
  await page.getByRole('alert').getByText('The longpole server does not respond.').waitFor();
  await page.unroute('**/longpole/v1/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await sentence(page, /cart used 5\.96s of CPU time in the last 6 hours/);
}

/** Walks the story at a server of `longpole serve` that has no profiles yet. */
async function seeWhatAServiceComputes(url, directory, pyroscope) {
  const { origin } = new URL(url);
  const at = (path) => `${origin}${path}`;
  const browser = await launchBrowser();
  try {
    // A selector that the server refuses is on purpose, and so are requests that get no answer.
    const expected = [/the server responded with a status of 400/, /net::ERR_FAILED/];
    const { page, faults, close } = await openPage(browser, origin, { width: 1280, height: 900, expected });
    const shoot = async (name) => {
      for (const scheme of ['light', 'dark']) {
        for (const [width, height] of [
          [390, 844],
          [1600, 1000],
          [1280, 900],
        ]) {
          await page.emulateMedia({ colorScheme: scheme });
          await page.setViewportSize({ width, height });
          await page.mouse.move(0, 0);
          await settled(page);
          await page.screenshot({ path: `${directory}/${name}-${scheme}-${width}.png`, fullPage: true });
          for (const fault of await accessibilityFaults(page)) faults.push(`${name} ${scheme} ${width}: ${fault}`);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          expect(over <= 0, `${name} is ${over} pixels wider than ${width}`);
        }
      }
    };
    await seeHowToSend(page, at, shoot);
    await sendShopProfiles(pyroscope, Date.now());
    await seeWhoUsesIt(page, shoot);
    const answer = await answerOfPage(page);
    await zoomIntoIt(page, shoot);
    await seeWhenItUsedIt(page);
    await compare(page, shoot);
    await lookElsewhere(page, shoot);
    await seeWhatGrows(page, at, pyroscope, shoot);
    await loseTheServer(page, at);
    expect(faults.length === 0, faults.join('\n'));
    await close();
    return answer;
  } finally {
    await browser.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell(
    'see-what-a-service-computes',
    (url, directory) => seeWhatAServiceComputes(url, directory, process.argv[4]),
    (answer) => JSON.stringify({ answer }),
  );
}
