/**
 * Story: somebody reads that a pole is blocked on a lock, opens it, and sees how long, in which system call and which of their functions; switches
 * the flame graph to off-CPU time by the keyboard, and sends a colleague the address.
 *
 * Guarantees: the head splits the run, and the panel its span, in the words and numbers of the API; the wait names the function of the program; that
 * function is a box of the flame graph of blocked time, and of that alone; the switch says what is pressed, is in the URL, goes with Back and comes
 * back with a new load; axe finds nothing serious, in light and in dark.
 *
 *   node stories/see-what-it-waited-for.mjs 'http://127.0.0.1:PORT/?token=…' OUTDIR
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, isShare, openList, settled, tell, until, walkEverywhere } from './browser.mjs';

const plain = (text) => text.replaceAll('\u00a0', ' ').replaceAll(/\s+/g, ' ').trim();
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** Compares the split on the page, `on-CPU 1.03s 36%` and `blocked 21% ( lock 596.0ms 21% )`, with the API's numbers. */
async function readStates(place, states, what) {
  const { blocked_nanos, blocked_unseen_nanos } = states;
  const blocked = sum(Object.values(blocked_nanos)) + blocked_unseen_nanos;
  const others = ['on_cpu', 'runnable', 'in_child', 'awaiting', 'remote', 'unaccounted'].map((name) => [name, states[`${name}_nanos`]]);
  const whole = sum(others.map(([, nanos]) => nanos)) + blocked;
  const list = place.getByRole('list', { name: 'Where the time went' });
  const text = plain(await list.innerText());
  const share = (label, nanos) => {
    // States of length zero take no room.
    if (nanos === 0 && label !== 'on-CPU') return expect(!text.includes(label), `${what}: nothing was ${label}, and it says "${text}"`);
    const said = new RegExp(`${label}(?: [\\d.dhm]+(?:ns|µs|ms|s|h))? (<?\\d+%)`).exec(text)?.[1] ?? '';
    expect(isShare(said, nanos / whole), `${what}: of ${((nanos / whole) * 100).toFixed(1)}% ${label} it says "${text}"`);
  };
  const labels = { on_cpu: 'on-CPU', in_child: 'in a child' };
  for (const [name, nanos] of others) share(labels[name] ?? name, nanos);
  share('blocked', blocked);
  share('lock', blocked_nanos.lock);
  const drawn = await place.locator('[aria-hidden="true"] > span[title^="lock "]').boundingBox();
  const bar = await place.locator('[aria-hidden="true"]:has(> span[title^="lock "])').boundingBox();
  expect(
    Math.abs(drawn.width / bar.width - blocked_nanos.lock / whole) < 0.03,
    `${what}: the lock is drawn ${drawn.width} of ${bar.width} wide`,
  );
}

async function walk(page, url, shoot) {
  const handle = await openList(page, url);
  await page.goto(new URL(`/r/${handle}`, page.url()).href);
  const rows = page.getByRole('region', { name: 'Long poles' }).locator('tbody tr[aria-current]');
  await rows.first().waitFor();
  const { states } = await answerOf(page, `/api/recordings/${handle}`);
  await readStates(page.getByRole('region', { name: 'Answer' }), states, 'the head');

  const { poles } = await answerOf(page, `/api/recordings/${handle}/poles`);
  const place = poles.findIndex((pole) => / blocked on a lock, in /.test(pole.reason.text));
  expect(place >= 0, `no pole of ${handle} is blocked on a lock`);
  const pole = poles[place];
  await rows.nth(place).getByRole('button').first().click();
  const panel = page.getByRole('complementary', { name: 'Selection' });
  const waits = panel.getByRole('region', { name: 'Waits', exact: true });
  await waits.waitFor();
  const span = await answerOf(page, `/api/recordings/${handle}/spans/${pole.spans[0]}`);
  await readStates(panel.getByRole('region', { name: 'States' }), span.states, pole.handle);
  const about = panel.getByRole('region', { name: 'Long pole' });
  const [first] = span.waits;
  expect(first.kind === 'lock' && first.function !== null, `the longest wait of ${pole.handle} is ${JSON.stringify(first)}`);
  expect(pole.reason.function === first.function, `${pole.handle} waits in ${first.function}, but ${JSON.stringify(pole.reason)}`);
  const named = about.locator(`button[title="${first.function}"]`);
  const shown = await named.innerText();
  const reason = pole.reason.pieces.map(({ text }) => (text === first.function ? shown : text)).join('');
  expect(plain(await about.innerText()).includes(reason), `the panel says of ${pole.handle}: "${await about.innerText()}"`);
  const heldUp = span.waits.filter((wait) => !wait.in_other_threads).length;
  expect((await waits.locator('tbody tr').count()) === heldUp, `of ${heldUp} waits some are not listed`);
  const longest = waits.locator('tbody tr').first();
  const said = plain(await longest.innerText());
  expect(/^[\d.]+(ms|s) lock /.test(said) && said.includes(first.syscall), `the longest wait is shown as "${said}"`);
  const waiting = longest.locator('td').last();
  expect((await waiting.getAttribute('title')) === first.function, `nothing says that ${first.function} waits`);

  const times = panel.getByRole('group', { name: 'Time of the flame graph' });
  const pressed = (name) => times.getByRole('button', { name, exact: true, pressed: true });
  const graph = panel.getByRole('group', { name: /^Flame graph of/ });
  const box = graph.getByRole('button', { name: new RegExp(`^${first.function.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')},`) });
  await pressed('on-CPU').waitFor();
  await settled(page);
  // With kernel functions there may be samples of falling asleep, but no more.
  const ran = await answerOf(page, `/api/recordings/${handle}/flame?span=${pole.spans[0]}`);
  const nanosOf = (row) => (ran.frames[ran.nodes.frame[row]]?.function === first.function ? ran.nodes.total_nanos[row] : 0);
  const onCpu = ran.nodes.frame.reduce((sum, _, row) => sum + nanosOf(row), 0);
  expect(onCpu * 20 <= first.nanos, `${first.function} is said to have run for ${onCpu} ns while it waited`);
  await shoot('waits');

  // Left and right move along the switch, Space presses.
  await pressed('on-CPU').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Space');
  await until('blocked time in the URL', () => new URL(page.url()).searchParams.get('time') === 'off_cpu');
  await pressed('off-CPU').waitFor();
  await box.first().waitFor({ state: 'attached' });
  await settled(page);
  await shoot('blocked');
  const address = page.url();

  await times.getByRole('button', { name: 'wall', exact: true }).click();
  await until('wall time in the URL', () => new URL(page.url()).searchParams.get('time') === 'wall');
  await box.first().waitFor({ state: 'attached' });
  await page.goBack();
  await until('blocked time again', () => page.url() === address);
  await pressed('off-CPU').waitFor();

  await box.first().focus();
  await page.keyboard.press('Enter');
  await until('the function in the URL', () => new URL(page.url()).searchParams.has('frame'));
  const card = page.getByRole('region', { name: 'Selected function' });
  await card.waitFor();
  await settled(page);
  await shoot('waiting-function');

  await page.goto(address);
  await pressed('off-CPU').waitFor();
  await box.first().waitFor({ state: 'attached' });
  expect(page.url() === address, `the URL changed from ${address} to ${page.url()}`);
  await pressed('off-CPU').click();
  await pressed('off-CPU').waitFor();
  await times.getByRole('button', { name: 'on-CPU', exact: true }).click();
  await until('on-CPU, which goes without saying', () => !new URL(page.url()).searchParams.has('time'));

  // One click on the reason leads there.
  await named.click();
  await until('where it waited in the URL', () => page.url() === address);
  await pressed('off-CPU').waitFor();

  // The whole run has waits too, and keeps the switch.
  await panel.getByRole('button', { name: 'Deselect the span' }).click();
  await until('the whole run', () => !new URL(page.url()).searchParams.has('span'));
  await pressed('off-CPU').waitFor();
  await box.first().waitFor({ state: 'attached' });
  await settled(page);
  await shoot('blocked-run');
  return { handle, pole: pole.handle, function: first.function };
}

/** Walks the story in both themes and sizes; returns its result. */
export function seeWhatItWaitedFor(url, directory) {
  return walkEverywhere(url, directory, walk);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('see-what-it-waited-for', seeWhatItWaitedFor, (read) => JSON.stringify(read));
}
