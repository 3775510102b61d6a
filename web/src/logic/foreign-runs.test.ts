import { describe, expect, it } from 'vitest';
import type { Flame } from '../api/types.gen';
import type { NodeIndex } from '../base/brand';
import { at } from '../base/column';
import { flameOf } from '../testing/text-flame';
import { boxesOnScreen, levelOf, levelsOf, neighbour, selfOfBox, titleOfBox, titleOfNode, viewOfNode, widestNodeOf } from './flame-graph';
import { boxesOf, NOTHING_UNFOLDED, type Unfolded } from './foreign-runs';

const FOREIGN = /^(std|tokio|alloc|park|start)/;
const foreign = (text: string) => flameOf(text, FOREIGN);

const nodeOf = (flame: Flame, name: string) =>
  widestNodeOf(flame, new Set([flame.frames.findIndex((frame) => frame.function === name)])) as NodeIndex;

/** The boxes of a graph 100 wide, each with its level and its place. */
function drawn(flame: Flame, unfolded: Unfolded = NOTHING_UNFOLDED): readonly string[] {
  const graph = levelsOf(flame, boxesOf(flame, unfolded));
  return boxesOnScreen(graph, viewOfNode(flame, 0 as NodeIndex, 0), 100, 5000, 0.1, 100).map(
    ({ node, x, width }) => `${levelOf(graph, node)} ${titleOfBox(graph, node)} ${x}+${width}`,
  );
}

const STACKS = `
  start;std::rt;tokio::poll;work;alloc::push;alloc::grow;alloc::realloc 60
  start;std::rt;tokio::poll;work 20
  start;std::rt;park::wait;park::sleep;park::futex 20
`;
const flame = foreign(STACKS);

describe('a run of foreign frames', () => {
  it('is one box; what the program calls itself, and where a branch leads away from it, keep their names', () => {
    expect(drawn(flame)).toEqual([
      '0 all 0+100',
      '1 std, tokio, … · 3 frames 0+100',
      '2 work 0+80',
      '2 park::wait 80+20',
      '3 alloc::push 0+60',
      '3 park · 2 frames 80+20',
      '4 alloc · 2 frames 0+60',
    ]);
  });

  it('is unfolded by its first node, and all of them at once', () => {
    const unfolded = new Set([nodeOf(flame, 'alloc::grow')]);
    expect(drawn(flame, unfolded).slice(-3)).toEqual(['3 park · 2 frames 80+20', '4 alloc::grow 0+60', '5 alloc::realloc 0+60']);
    expect(drawn(flame, 'all')).toEqual(drawn(flameOf(STACKS)));
  });

  it('of one level stays, and so does a stack without code of the program', () => {
    expect(drawn(foreign('start;main 60\nstart;std::a;std::b 40'))).toEqual([
      '0 all 0+100',
      '1 start 0+100',
      '2 main 0+60',
      '2 std::a 60+40',
      '3 std::b 60+40',
    ]);
    expect(drawn(foreign('std::a;std::b;std::c 90\nmain 10'))).toEqual([
      '0 all 0+100',
      '1 std::a 0+90',
      '1 main 90+10',
      '2 std::b 0+90',
      '3 std::c 0+90',
    ]);
    expect(boxesOf(foreign('std::a;std::b 1'), NOTHING_UNFOLDED).hasRuns).toBe(false);
  });

  it('that branches says how long its longest stack is, and has the time of all its functions', () => {
    const branching = foreign(`
      std::a;std::b;std::c;work 50
      std::a;std::d;rest 30
      std::a 20
    `);
    const graph = levelsOf(branching, boxesOf(branching, NOTHING_UNFOLDED));
    const run = nodeOf(branching, 'std::a');
    expect(titleOfBox(graph, run)).toBe('std · up to 3 frames');
    expect(selfOfBox(graph, run) / 1e6).toBe(20);
    expect(at(graph.boxes.runOf, nodeOf(branching, 'std::d'))).toBe(run);
  });

  it('is walked over with the arrow keys', () => {
    const graph = levelsOf(flame, boxesOf(flame, NOTHING_UNFOLDED));
    const name = (node: NodeIndex) => titleOfNode(flame, node);
    expect(name(neighbour(graph, nodeOf(flame, 'work'), 'up'))).toBe('start');
    expect(name(neighbour(graph, nodeOf(flame, 'start'), 'down'))).toBe('work');
    expect(name(neighbour(graph, nodeOf(flame, 'work'), 'right'))).toBe('park::wait');
  });
});
