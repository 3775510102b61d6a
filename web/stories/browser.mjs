/** A headless browser of the distribution, and a page that counts all faults. */
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const SIZES = [
  { name: '1440x900', width: 1440, height: 900 },
  { name: '900x700', width: 900, height: 700 },
];

/** Starts the browser named by LONGPOLE_CHROMIUM, or the one of the distribution. */
export function launchBrowser() {
  return chromium.launch({ executablePath: process.env.LONGPOLE_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
}

/**
 * Opens a page that lists faults: requests to another origin, errors on the console, exceptions, violations of the content security
 * policy. `expected` names faults that a story provokes on purpose.
 */
export async function openPage(browser, origin, { width = 1440, height = 900, scheme = 'light', expected = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const faults = [];
  const note = (fault) => {
    if (!expected.some((pattern) => pattern.test(fault))) faults.push(fault);
  };
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) note(`request left the origin: ${request.url()}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') note(`console ${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => note(`exception: ${error.message}`));
  return { page, faults, close: () => context.close() };
}

/** Whether `20%` or `<1%` is right for this share of a whole. */
export function isShare(said, share) {
  const [, sign, number] = /^(<?)(\d+)%$/.exec(said) ?? [];
  const percent = share * 100;
  return sign === '<' ? percent < Number(number) : Math.abs(Number(number) - percent) <= 0.5;
}

/** Ends a story with the message if the condition fails. */
export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

/** Waits until `read` returns a true value, and returns it. */
export async function until(what, read, timeoutMillis = 10_000) {
  const deadline = Date.now() + timeoutMillis;
  for (;;) {
    const value = await read();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMillis} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Waits until all requests have ended and the page has drawn. */
export async function settled(page) {
  await page.waitForLoadState('networkidle');
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Opens the list of recordings. Returns the recording in the URL, else the first. */
export async function openList(page, url) {
  const list = new URL(url);
  const recording = /^\/r\/(r\d+)/.exec(list.pathname)?.[1];
  list.pathname = '/';
  await page.goto(list.href);
  await page.locator('table tbody tr').first().waitFor();
  return recording ?? page.locator('table tbody tr a').first().innerText();
}

/** The API's answer, with the page's cookie. */
export function answerOf(page, path) {
  return page.evaluate(async (address) => (await fetch(address)).json(), path);
}

/** The command as the terminal and the page show it: the program without the folder. */
export function shortCommand([program, ...words]) {
  return [program.split('/').at(-1), ...words].join(' ');
}

/** Walks a story in both themes and two sizes; fails if the browser or axe reports a fault. Returns the result of the last walk. */
export async function walkEverywhere(url, directory, walk) {
  await mkdir(directory, { recursive: true });
  const browser = await launchBrowser();
  const { origin } = new URL(url);
  let read = null;
  try {
    for (const scheme of ['light', 'dark']) {
      for (const size of SIZES) {
        const { page, faults, close } = await openPage(browser, origin, { ...size, scheme });
        const shoot = async (step) => {
          // The pointer would show in the picture.
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
  return read;
}

/** Runs a story with the URL and directory of the command line, and prints its result. */
export async function tell(name, story, print) {
  const [url, directory] = process.argv.slice(2);
  if (url === undefined || directory === undefined) {
    process.stderr.write(`usage: node stories/${name}.mjs URL OUTDIR\n`);
    process.exit(2);
  }
  try {
    process.stdout.write(`${print(await story(url, directory))}\n`);
  } catch (error) {
    process.stderr.write(`${name} failed: ${error instanceof Error ? error.message : error}\n`);
    process.exit(1);
  }
}

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Accessibility faults that axe rates serious or critical, in words. */
export async function accessibilityFaults(page) {
  // Use the debugger: the content security policy rightly keeps out foreign scripts.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(' ')}: ${failureSummary}`),
    );
}
