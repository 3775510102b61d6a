/**
 * Story: a command became slower. Somebody opens its last run, reads there how it compares with the run before, and goes on to what changed; selects
 * the changed operation, and sends the link.
 *
 * Guarantees: nobody searches for the run before; the changes on the page are those of `longpole diff`, and add up to the difference; an operation
 * leads to its span; the link opens the same comparison.
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, settled, tell, until, walkEverywhere } from './browser.mjs';

async function walk(page, url, shoot) {
  await page.goto(url);
  const recording = new URL(url).pathname.split('/').at(-1);
  await page.getByRole('list', { name: 'The run before' }).getByRole('link').click();
  await until('the comparison', () => new URL(page.url()).pathname === '/compare');
  await page.getByRole('heading', { level: 1 }).waitFor();
  await settled(page);
  const before = new URL(page.url()).searchParams.get('a');
  const diff = await answerOf(page, `/api/recordings/${recording}/diff?before=${before}`);
  const sum = diff.operations.reduce((all, operation) => all + operation.delta_nanos, diff.truncated.delta_nanos);
  expect(sum === diff.delta_nanos, `the changes add up to ${sum}, the runs differ by ${diff.delta_nanos}`);
  const rows = page.locator('tbody tr');
  const expected = diff.operations.length + (diff.truncated.operations > 0 ? 1 : 0) + 1;
  expect((await rows.count()) === expected, `${await rows.count()} rows, not ${expected}`);
  const first = await rows.first().innerText();
  const { name, delta_nanos: delta } = diff.operations[0];
  expect(first.includes(name) && first.includes(delta > 0 ? '+' : '−'), `the first row is ${first}, not ${name}`);
  const heading = await page.getByRole('heading', { level: 1 }).innerText();
  expect(heading.includes(diff.delta_nanos > 0 ? 'longer than' : 'shorter than'), heading);
  await shoot('compare');

  const link = page.url();
  const { handle } = diff.operations[0].b;
  await rows.first().getByRole('link').last().click();
  await until('the span of the changed operation', () => new URL(page.url()).searchParams.get('span') === handle);
  await page.goto(link);
  await until('the same comparison', async () => (await page.getByRole('heading', { level: 1 }).innerText()) === heading);
  return { name, before };
}

export const compareTwoRuns = (url, directory) => walkEverywhere(url, directory, walk);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('compare-two-runs', compareTwoRuns, (read) => JSON.stringify(read));
}
