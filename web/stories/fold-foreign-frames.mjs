/**
 * Story: somebody opens a program of an async runtime, and sees the functions of the program instead of twenty frames of the runtime; looks into the
 * runtime, folds it again, and asks what the time was: running, or waiting for what.
 *
 * Guarantees: a flame graph opens with its root on the screen, or says that it does not; consecutive foreign frames are one box with their number, and
 * the API's frames say which are foreign; a click and a key unfold it, `C` folds it again; the switch is in the URL and survives a reload; with waits
 * each box says its states, and the legend has the time of each; axe finds nothing serious, in light and in dark.
 *
 *   node stories/fold-foreign-frames.mjs 'http://127.0.0.1:PORT/?token=…' OUTDIR
 */
import { fileURLToPath } from 'node:url';
import { answerOf, expect, isShare, openList, settled, tell, until, walkEverywhere } from './browser.mjs';

const search = (page) => new URL(page.url()).searchParams;
const focusedNode = (page) => page.evaluate(() => document.activeElement?.getAttribute('data-node') ?? null);

/** The root of the graph is on the screen, or a button says how much is above. */
async function expectRootOrRemark(page, graph) {
  const above = page.getByRole('button', { name: /levels? of callers above$/ });
  if ((await above.count()) === 0) expect(await graph.locator('[data-node="0"]').isVisible(), 'neither the root nor a remark is there');
}

/** Unfolds a run of foreign frames by `unfold`, and folds it again with a key. */
async function lookInside(page, graph, unfold) {
  const run = graph.locator('button[aria-expanded="false"]').first();
  const node = await run.getAttribute('data-node');
  await unfold(run);
  await until(`run ${node} in the URL`, () => search(page).get('unfold') === `n${node}`);
  await graph.locator(`[data-node="${node}"]:not([aria-expanded])`).waitFor({ state: 'attached' });
  await page.getByRole('button', { name: /^Fold 1\s*run again$/ }).waitFor();
  await graph.locator(`[data-node="${node}"]`).focus();
  await page.keyboard.press('c');
  await until('the run folded again', () => !search(page).has('unfold'));
  await graph.locator(`[data-node="${node}"][aria-expanded="false"]`).waitFor({ state: 'attached' });
  await until('the focus where it was', async () => (await focusedNode(page)) === node);
}

async function walk(page, url, shoot) {
  const handle = await openList(page, url);
  await page.goto(new URL(`/r/${handle}`, page.url()).href);
  const panel = page.getByRole('complementary', { name: 'Selection' });
  const graph = panel.getByRole('group', { name: /^Flame graph of/ });
  await graph.waitFor();
  await settled(page);
  const flame = await answerOf(page, `/api/recordings/${handle}/flame`);
  expect(
    flame.frames.some(({ whose }) => whose !== 'program'),
    'the recording has no foreign frames',
  );
  const runs = graph.locator('button[aria-expanded="false"]');
  await runs.first().waitFor({ state: 'attached' });
  const label = await runs.first().getAttribute('aria-label');
  expect(/ · (up to )?\d+ frames, \d+%, /.test(label), `a folded run is called "${label}"`);
  await expectRootOrRemark(page, graph);
  await shoot('folded');

  await lookInside(page, graph, (run) => run.click({ position: { x: 5, y: 8 } }));
  await lookInside(page, graph, async (run) => {
    await run.focus();
    await page.keyboard.press('Enter');
  });

  const folding = panel.getByRole('button', { name: 'fold foreign frames' });
  await folding.click();
  await until('all unfolded in the URL', () => search(page).get('unfold') === 'all');
  await until('no folded run', async () => (await runs.count()) === 0);
  await expectRootOrRemark(page, graph);
  await settled(page);
  await shoot('unfolded');
  await page.reload();
  await graph.waitFor();
  await settled(page);
  expect((await runs.count()) === 0, 'after a reload runs are folded');
  await folding.click();
  await runs.first().waitFor({ state: 'attached' });

  await panel.getByRole('button', { name: 'wall', exact: true }).click();
  const states = panel.getByRole('list', { name: 'Time by state' });
  await states.waitFor();
  const wall = await answerOf(page, `/api/recordings/${handle}/flame?time=wall`);
  const waited = wall.waits.reduce((sum, { nanos }) => sum + nanos, 0);
  const said = await states.locator('li').allInnerTexts();
  expect(said.length === 1 + wall.waits.length, `of ${wall.waits.length} kinds of waits it lists ${said.join('; ')}`);
  const shares = said.map((text) => text.trim().split(/\s+/).at(-1) ?? '');
  expect(isShare(shares[0], 1 - waited / wall.weight_nanos), `of the time on a CPU it says ${said[0]}`);
  wall.waits.forEach(({ nanos }, place) => {
    expect(isShare(shares[place + 1], nanos / wall.weight_nanos), `of ${nanos} ns it says ${said[place + 1]}`);
  });
  const root = await graph.locator('[data-node="0"]').getAttribute('aria-label');
  expect(/\d+% on-CPU, <?\d+% waiting, /.test(root), `the states of the root are "${root}"`);
  await settled(page);
  await shoot('states');
  return { handle, label };
}

/** Walks the story in both themes and sizes; returns its result. */
export function foldForeignFrames(url, directory) {
  return walkEverywhere(url, directory, walk);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await tell('fold-foreign-frames', foldForeignFrames, (read) => JSON.stringify(read));
}
