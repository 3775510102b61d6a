import { describe, expect, it } from 'vitest';
import type { SpanIndex } from '../base/brand';
import { treeOf } from '../testing/text-tree';
import {
  ALL_FOLDED,
  type Fold,
  markedBelow,
  NOTHING_FOLDED,
  neighbouringMark,
  neighbouringPole,
  revealed,
  rowOf,
  toggled,
  visibleSpans,
} from './rows';
import { nameOfSpan } from './span-words';

const tree = treeOf(`
  deploy         0..100  engine
    build       10..60   builder
      pack      20..50   builder
      hash      50..60   builder
    upload      60..90   cloud
  watch          0..95   engine
`);
const DEPLOY = 0 as SpanIndex;
const BUILD = 1 as SpanIndex;
const PACK = 2 as SpanIndex;

const namesOf = (fold: Fold) => [...visibleSpans(tree, fold)].map((span) => nameOfSpan(tree, span as SpanIndex)).join(' ');

describe('rows', () => {
  it('show everything, or what is not folded away', () => {
    expect(namesOf(NOTHING_FOLDED)).toBe('deploy build pack hash upload watch');
    expect(namesOf(ALL_FOLDED)).toBe('deploy watch');
    expect(namesOf(toggled(NOTHING_FOLDED, BUILD))).toBe('deploy build upload watch');
    expect(namesOf(toggled(ALL_FOLDED, DEPLOY))).toBe('deploy build upload watch');
    expect(namesOf(toggled(toggled(NOTHING_FOLDED, BUILD), BUILD))).toBe('deploy build pack hash upload watch');
  });

  it('of a span inside something folded is the row of what hides it', () => {
    const rows = visibleSpans(tree, toggled(NOTHING_FOLDED, BUILD));
    expect(rowOf(rows, PACK)).toBe(1);
    expect(rowOf(rows, 4 as SpanIndex)).toBe(2);
  });

  it('unfold just enough to show a span', () => {
    expect(namesOf(revealed(ALL_FOLDED, tree, PACK))).toBe('deploy build pack hash upload watch');
    expect(revealed(NOTHING_FOLDED, tree, PACK)).toBe(NOTHING_FOLDED);
  });

  it('count the marks that hide below', () => {
    const marked = Uint32Array.of(1, 2, 3, 5);
    expect(markedBelow(tree, marked, DEPLOY)).toBe(3);
    expect(markedBelow(tree, marked, BUILD)).toBe(2);
    expect(markedBelow(tree, marked, PACK)).toBe(0);
  });

  it('step from mark to mark and round the ends', () => {
    const marked = Uint32Array.of(2, 4);
    const walk = (from: number | null, direction: 1 | -1) => neighbouringMark(marked, from as SpanIndex | null, direction);
    expect([walk(null, 1), walk(2, 1), walk(3, 1), walk(4, 1)]).toEqual([2, 4, 4, 2]);
    expect([walk(null, -1), walk(2, -1), walk(3, -1), walk(4, -1)]).toEqual([4, 4, 2, 2]);
    expect(neighbouringMark(new Uint32Array(0), null, 1)).toBeNull();
  });

  it('are walked without recursion, however deep', () => {
    const depth = 10_000;
    const lines = Array.from({ length: depth }, (_, level) => `${'  '.repeat(level)}s${level} 0..1 deep`);
    const deep = treeOf(lines.join('\n'));
    expect(visibleSpans(deep, NOTHING_FOLDED).length).toBe(depth);
    expect(visibleSpans(deep, ALL_FOLDED).length).toBe(1);
    expect(revealed(ALL_FOLDED, deep, (depth - 1) as SpanIndex).except.size).toBe(depth - 1);
  });
});

describe('stepping through poles', () => {
  // Two parts of one operation have the same span; the fourth has none.
  const poles = [
    { handle: 'p1', spans: ['s8'] },
    { handle: 'p2', spans: ['s8'] },
    { handle: 'p3', spans: ['s2', 's4'] },
    { handle: 'p4', spans: [] },
  ];
  const step = (from: string | null, direction: 1 | -1) => neighbouringPole(poles, from, direction)?.handle;
  it('goes by rank, and around', () => {
    expect([step(null, 1), step('p1', 1), step('p2', 1), step('p3', 1)]).toEqual(['p1', 'p2', 'p3', 'p1']);
    expect([step(null, -1), step('p1', -1), step('p3', -1)]).toEqual(['p3', 'p3', 'p2']);
    expect(neighbouringPole([], null, 1)).toBeNull();
  });
});
