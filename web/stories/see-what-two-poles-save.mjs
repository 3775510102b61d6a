/**
 * Story: somebody can fix two things, and wants to know what both together gain. They check the two poles, read the sum, clear it, and send the link.
 *
 * Guarantees: the sum is the server's and not the sum of the rows; it names the next pole, which is one click away; the link opens the same sum; the
 * keyboard reaches the boxes.
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, settled, tell, until, walkEverywhere } from './browser.mjs';

async function walk(page, url, shoot) {
  await page.goto(url);
  const recording = new URL(url).pathname.split('/').at(-1);
  const poles = page.getByRole('region', { name: 'Long poles' });
  await poles.getByRole('checkbox', { name: 'without p1', exact: true }).check();
  const line = page.getByRole('region', { name: 'What if' });
  await line.getByText('Fixing p1 saves').waitFor();
  const one = await answerOf(page, `/api/recordings/${recording}/whatif?without=p1`);
  const next = line.getByRole('button', { name: new RegExp(`^${one.next.handle} `) });
  await next.click();
  await until('the next pole in the URL', () => new URL(page.url()).searchParams.get('pole') === one.next.handle);

  await poles.getByRole('checkbox', { name: 'without p2', exact: true }).focus();
  await page.keyboard.press('Space');
  await line.getByText('Fixing p1 and p2 saves').waitFor();
  await settled(page);
  const link = page.url();
  expect(new URL(link).searchParams.get('without') === 'p1.p2', link);
  const words = await line.innerText();
  const both = await answerOf(page, `/api/recordings/${recording}/whatif?without=p1,p2`);
  expect(both.saves_nanos[1] >= one.saves_nanos[1], 'two poles save less than one of them');
  await shoot('what-if');

  await page.getByRole('button', { name: 'Clear', exact: true }).click();
  await line.waitFor({ state: 'detached' });
  expect(!(await poles.getByRole('checkbox', { name: 'without p1', exact: true }).isChecked()), 'p1 stays checked');
  await page.goto(link);
  await until('the same sum', async () => (await line.innerText()) === words);
  return both;
}

export const seeWhatTwoPolesSave = (url, directory) => walkEverywhere(url, directory, walk);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('see-what-two-poles-save', seeWhatTwoPolesSave, (read) => JSON.stringify(read));
}
