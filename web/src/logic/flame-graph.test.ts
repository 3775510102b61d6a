import { describe, expect, it } from 'vitest';
import type { NodeIndex } from '../base/brand';
import { at } from '../base/column';
import { flameOf } from '../testing/text-flame';
import {
  boxesOnScreen,
  boxInWords,
  type FlameView,
  frameTotals,
  hitFlame,
  hottestFrames,
  LEVEL_HEIGHT,
  levelsOf,
  levelsWorthShowing,
  neighbour,
  titleOfNode,
  trunkLevels,
  viewOfNode,
  visitBoxes,
  widestNodeOf,
} from './flame-graph';

const flame = flameOf(`
  main;work;hash 70
  main;work;hash;core::num::rotate 10
  main;work 5
  main;read 10
  idle 5
`);
const graph = levelsOf(flame);
const ROOT = 0 as NodeIndex;
const whole = viewOfNode(flame, ROOT, 0);

const nameOf = (node: NodeIndex) => titleOfNode(flame, node);
const nodeOf = (name: string) => {
  const frame = flame.frames.findIndex((entry) => entry.function === name);
  return widestNodeOf(flame, new Set([frame])) as NodeIndex;
};

describe('boxes', () => {
  it('lie below their callers, the largest on the left', () => {
    const boxes = boxesOnScreen(graph, whole, 100, 500, 1, 100);
    expect(boxes.map(({ node, x, y, width }) => `${nameOf(node)} ${x}+${width} @${y / LEVEL_HEIGHT}`)).toEqual([
      'all 0+100 @0',
      'main 0+95 @1',
      'idle 95+5 @1',
      'work 0+85 @2',
      'read 85+10 @2',
      'hash 0+80 @3',
      'core::num::rotate 0+10 @4',
    ]);
  });

  it('of callers fill the width when a box is zoomed into, and boxes beside it are gone', () => {
    const boxes = boxesOnScreen(graph, viewOfNode(flame, nodeOf('hash'), 0), 100, 500, 1, 100);
    expect(boxes.map(({ node, x, width }) => `${nameOf(node)} ${x}+${width.toFixed(1)}`)).toEqual([
      'all 0+100.0',
      'main 0+100.0',
      'work 0+100.0',
      'hash 0+100.0',
      'core::num::rotate 0+12.5',
    ]);
  });

  it('above and below the screen are not visited', () => {
    const view: FlameView = { ...whole, top: 2 * LEVEL_HEIGHT };
    expect(boxesOnScreen(graph, view, 100, LEVEL_HEIGHT, 1, 100).map(({ node }) => nameOf(node))).toEqual(['work', 'read']);
  });

  it('stop at the limit', () => {
    expect(boxesOnScreen(graph, whole, 100, 500, 1, 3)).toHaveLength(3);
  });

  it('are found under a point', () => {
    const hit = (x: number, level: number) => {
      const node = hitFlame(graph, whole, 100, x, level * LEVEL_HEIGHT + 3);
      return node === null ? null : nameOf(node);
    };
    expect([hit(10, 0), hit(96, 1), hit(90, 2), hit(84, 3), hit(9, 4), hit(11, 4), hit(50, 5), hit(100, 0)]).toEqual([
      'all',
      'idle',
      'read',
      null,
      'core::num::rotate',
      null,
      null,
      null,
    ]);
  });
});

describe('a graph of many narrow boxes', () => {
  const wide = flameOf(Array.from({ length: 4000 }, (_, index) => `main;f${index} ${1 + (index % 3)}`).join('\n'));
  const levels = levelsOf(wide);
  const view = viewOfNode(wide, ROOT, 0);

  it('costs pixels, not boxes', () => {
    let visits = 0;
    visitBoxes(levels, view, 500, 500, 1, () => {
      visits += 1;
    });
    expect(visits).toBeLessThanOrEqual(2 + 501);
  });

  it('leaves no pixel empty that a box covers', () => {
    const painted = new Uint8Array(500);
    visitBoxes(levels, view, 500, 500, 1, (_, x, y, width) => {
      if (y !== 2 * LEVEL_HEIGHT) return;
      for (let pixel = Math.floor(x); pixel < Math.min(500, x + Math.max(1, width)); pixel++) painted[pixel] = 1;
    });
    expect(painted.every((value) => value === 1)).toBe(true);
  });

  it('draws a wide box that begins right behind a narrow one', () => {
    // `end` is a tenth of a pixel wide, and `wide` begins where it ends.
    const stacks = flameOf('a;first 4999\na;end 1\nb;wide 5000');
    const shown = boxesOnScreen(levelsOf(stacks), viewOfNode(stacks, ROOT, 0), 1000, 500, 1, 100);
    expect(shown.map(({ node }) => titleOfNode(stacks, node))).toContain('wide');
  });

  it('is hit exactly', () => {
    for (let node = 2; node < wide.nodes.parent.length; node += 97) {
      const middle = ((at(wide.nodes.offsetNanos, node) + at(wide.nodes.totalNanos, node) / 2) / wide.weightNanos) * 500;
      expect(hitFlame(levels, view, 500, middle, 2 * LEVEL_HEIGHT)).toBe(node);
    }
  });
});

describe('walking with the arrow keys', () => {
  const walk = (name: string, step: 'up' | 'down' | 'left' | 'right') => nameOf(neighbour(graph, nodeOf(name), step));
  it('goes to the caller, the largest callee, and along the level', () => {
    expect(walk('hash', 'up')).toBe('work');
    expect(walk('work', 'down')).toBe('hash');
    expect(walk('work', 'right')).toBe('read');
    expect(walk('read', 'left')).toBe('work');
  });
  it('stays where there is nothing', () => {
    expect(nameOf(neighbour(graph, ROOT, 'up'))).toBe('all');
    expect(walk('read', 'down')).toBe('read');
    expect(walk('read', 'right')).toBe('read');
    expect(walk('main', 'left')).toBe('main');
  });
});

describe('what can be read off', () => {
  it('self and total of functions, each stack counted once', () => {
    const recursive = flameOf(`
      main;visit;visit;visit 30
      main;visit 10
      main 5
    `);
    const totals = frameTotals(recursive);
    const read = recursive.frames.map(
      ({ function: name }, index) => `${name} ${at(totals.self, index) / 1e6} ${at(totals.total, index) / 1e6}`,
    );
    expect(read).toEqual(['main 5 45', 'visit 40 40']);
    expect(hottestFrames(recursive, totals, null, 1)).toEqual([1]);
    expect(hottestFrames(recursive, totals, 'f1', 2)).toEqual([0, 1]);
  });

  it('a box in words', () => {
    expect(boxInWords(graph, nodeOf('hash')).replaceAll('\u00a0', ' ')).toBe('hash, 80%, 80.0ms total, 70.0ms self, 80 samples');
  });

  it('where the stacks part', () => {
    expect(trunkLevels(graph)).toBe(2);
    expect(trunkLevels(levelsOf(flameOf('a;b;c 10')))).toBe(4);
  });

  it('how deep it is worth showing', () => {
    expect(levelsWorthShowing(graph)).toBe(5);
    expect(levelsWorthShowing(levelsOf(flameOf('a;b 99\nc;d;e;f;g 1')))).toBe(3);
  });
});
