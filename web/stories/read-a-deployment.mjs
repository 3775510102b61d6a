/**
 * Story: somebody who deploys with Pulumi opens the recording. Is the cloud slow, or Pulumi? And which resource?
 *
 * Guarantees: the head says how the time of the deployment is split, in the words of the terminal, and the parts are those of the API; a pole that
 * works on a cloud resource names it, and its URN can be read; a pole that is long because of another names that one, and leads there; axe finds
 * nothing serious, in light and in dark. Every recording of a deployment that the list has is read.
 *
 *   node stories/read-a-deployment.mjs 'http://127.0.0.1:PORT/?token=…' OUTDIR
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, isShare, settled, shortCommand, tell, until, walkEverywhere } from './browser.mjs';

const PARTS = {
  cloud_wait_nanos: 'cloud',
  provider_nanos: 'providers',
  engine_nanos: 'Pulumi’s engine',
  language_host_nanos: 'language host',
  plugin_start_nanos: 'plug-in start',
  state_backend_nanos: 'state',
  compile_nanos: 'compiling',
  idle_nanos: 'nothing running',
};

/** Checks the header's split: `70% cloud`, to the percent, without parts that took no time. */
function partsOf(deployment, wall) {
  return Object.entries(PARTS)
    .filter(([key]) => deployment[key] > 0)
    .map(([key, label]) => ({ label, share: deployment[key] / wall }));
}

async function readSplit(page, summary) {
  const { deployment, wall_nanos: wall } = summary;
  const sum = Object.keys(PARTS).reduce((total, key) => total + deployment[key], 0);
  expect(sum === wall, `the parts of the deployment sum to ${sum} of ${wall} ns`);
  const [lead, ...items] = await page.getByRole('list', { name: 'Time of the deployment' }).getByRole('listitem').allInnerTexts();
  expect(lead === 'pulumi', `the split begins with "${lead}"`);
  const parts = partsOf(deployment, wall);
  expect(items.length === parts.length, `of ${parts.length} parts the head shows ${items.join(', ')}`);
  for (const [index, { label, share }] of parts.entries()) {
    const [, said, name] = /^(\S+) (.+)$/.exec(items[index]) ?? [];
    expect(name === label && isShare(said, share), `${share * 100}% ${label} is shown as "${items[index]}"`);
  }
  return parts.map(({ label }) => label);
}

async function readPole(page, poles, place) {
  const pole = poles[place];
  const rows = page.getByRole('region', { name: 'Long poles' }).locator('tbody tr[aria-current]');
  const row = rows.nth(place);
  const label = await row.getByRole('button').first().getAttribute('aria-label');
  const context = pole.context !== null && !pole.name.includes(pole.context) ? ` in ${pole.context}` : '';
  expect(label === `${pole.name}${pole.count > 1 ? ` ×${pole.count}` : ''}${context}`, `${pole.handle} is called "${label}"`);
  await row.getByRole('button').first().click();
  await until(`${pole.handle} in the URL`, () => new URL(page.url()).searchParams.get('pole') === pole.handle);
  const about = page.getByRole('complementary', { name: 'Selection' }).getByRole('region', { name: 'Long pole' });
  await about.getByText(pole.handle, { exact: true }).first().waitFor();
  const said = await about.innerText();
  const inner = pole.contains === null ? '' : `contains ${pole.contains}; `;
  expect(said.startsWith(`${pole.handle}${context}: ${inner}`), `the panel says of ${pole.handle}: "${said}"`);
  if (pole.resource === null) return;
  expect(said.includes(pole.resource), `the panel does not say the URN of ${pole.handle}: "${said}"`);
  const small = row.locator('small').first();
  const shown = await small.textContent();
  expect(shown.replaceAll('\u00a0', ' ').startsWith(`in ${pole.context} · `), `the row of ${pole.handle} is about "${shown}"`);
  expect((await small.getAttribute('title')) === pole.resource, `the row of ${pole.handle} does not tell its URN`);
  // However long its type is, the resource's name is not shortened.
  const name = pole.resource.split('::').at(-1);
  const whole = await small
    .locator('span > span + span')
    .evaluate((end, wanted) => end.textContent === wanted && end.scrollWidth <= end.clientWidth, name);
  expect(whole, `the row of ${pole.handle} cuts off "${name}"`);
}

async function readRecording(page, recording, shoot) {
  await page.goto(new URL(`/r/${recording}`, page.url()).href);
  await page.getByRole('treegrid', { name: 'Spans' }).getByRole('row').first().waitFor();
  await page.getByRole('region', { name: 'Long poles' }).locator('tbody tr[aria-current]').first().waitFor();
  const summary = await answerOf(page, `/api/recordings/${recording}`);
  const { poles } = await answerOf(page, `/api/recordings/${recording}/poles`);
  const title = page.getByRole('banner').locator('code');
  expect((await title.textContent()) === shortCommand(summary.command), `the page shows the command as "${await title.textContent()}"`);
  const parts = await readSplit(page, summary);
  await settled(page);
  await shoot(`deployment-${recording}`);

  const outer = poles.findIndex(({ contains }) => contains !== null);
  expect(outer >= 0, `no pole of ${recording} contains another`);
  await readPole(page, poles, outer);
  const { contains } = poles[outer];
  const about = page.getByRole('region', { name: 'Long pole', exact: true });
  await about.getByRole('button', { name: contains, exact: true }).click();
  await until(`${contains} in the URL`, () => new URL(page.url()).searchParams.get('pole') === contains);
  // It may be far down the list, which scrolls there.
  await until(`the row of ${contains} in sight`, () =>
    page.getByRole('group', { name: 'Table of long poles' }).evaluate((table) => {
      const row = table.querySelector('tr[aria-current="true"]')?.getBoundingClientRect();
      const box = table.getBoundingClientRect();
      return row !== undefined && row.top >= box.top && row.bottom <= box.bottom + 1;
    }),
  );
  const resource = poles.findIndex((pole) => pole.resource !== null);
  if (resource >= 0) {
    await readPole(page, poles, resource);
    await settled(page);
    await shoot(`resource-${recording}`);
  }
  return { recording, parts, resource: poles[resource]?.context ?? null };
}

/** Walks the story in both themes and sizes; returns the result for each deployment. */
export function readADeployment(url, directory) {
  return walkEverywhere(url, directory, async (page, address, shoot) => {
    const list = new URL(address);
    list.pathname = '/';
    await page.goto(list.href);
    await page.locator('table tbody tr').first().waitFor();
    const { recordings } = await answerOf(page, '/api/recordings');
    const read = [];
    for (const { recording } of recordings) {
      const { deployment } = await answerOf(page, `/api/recordings/${recording}`);
      if (deployment !== null) read.push(await readRecording(page, recording, shoot));
    }
    expect(read.length > 0, 'no recording of the list is a deployment');
    return read;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('read-a-deployment', readADeployment, (read) => JSON.stringify(read));
}
