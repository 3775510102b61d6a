/** A browser of the distribution, driven without a window, and a page that counts everything that must not happen. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
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

/** Starts the browser named by LONGPOLE_CHROMIUM, or the one of the distribution. */
export function launchBrowser() {
  return chromium.launch({ executablePath: process.env.LONGPOLE_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
}

/**
 * Opens a page that keeps a list of faults: requests to another origin, errors on the console, exceptions, violations of the content security
 * policy. `expected` names what a story provokes on purpose.
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

/** Ends a story with a message that says what was expected. */
export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

/** Waits until `read` answers with something true, and gives it back. */
export async function until(what, read, timeoutMillis = 10_000) {
  const deadline = Date.now() + timeoutMillis;
  for (;;) {
    const value = await read();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMillis} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Waits until what was asked for has come and has been drawn. */
export async function settled(page) {
  await page.waitForLoadState('networkidle');
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Faults of accessibility that axe calls serious or critical, in words. */
export async function accessibilityFaults(page) {
  // The debugger's door: the content security policy keeps scripts of others out, and that is as it should be.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(' ')}: ${failureSummary}`),
    );
}
