import { describe, expect, it } from 'vitest';
import { decodeTree } from '../api/decode.gen';
import { deployRecording } from '../testing/recordings.mjs';
import { conditionOf, foundSpans, onPathOf, readFind, rowsWith } from './find';
import { NOTHING_FOLDED, visibleSpans } from './rows';

const tree = decodeTree(deployRecording().tree());
const named = (text: string): readonly (string | undefined)[] =>
  [...foundSpans(tree, readFind(text))].map((span) => tree.names[tree.spans.name[span] ?? -1]);

describe('a search in a trace', () => {
  it('matches words of names, services and resources in any case, and all of them', () => {
    const all = named('create');
    expect(all.length).toBeGreaterThan(2);
    expect(all.every((name) => name?.toLowerCase().includes('create'))).toBe(true);
    expect(named('CREATE bundle').length).toBeLessThan(all.length);
    expect(named('CREATE bundle').length).toBeGreaterThan(0);
    expect(named('no such word')).toEqual([]);
    expect(named('')).toEqual([]);
  });
  it('takes words with spaces in quotes', () => {
    const [first = ''] = named('create');
    expect(named(`"${first}"`)).toContain(first);
    expect(named(`name="${first}"`).every((name) => name === first)).toBe(true);
  });
  it('takes names with quotes, written twice inside quotes', () => {
    const names = [...tree.names];
    const [first = 0] = tree.spans.name;
    names[first] = 'SELECT "id" FROM "cart"';
    const odd = { ...tree, names };
    const condition = conditionOf('name', '=', names[first]);
    expect(condition).toBe('name="SELECT ""id"" FROM ""cart"""');
    expect([...foundSpans(odd, readFind(condition))]).toContain(0);
    expect([...foundSpans(odd, readFind('"""id"" from"'))]).toContain(0);
    expect([conditionOf('name', '~', 'cart'), conditionOf('service', '!=', '')]).toEqual(['name~cart', 'service!=""']);
  });
  it('compares durations, and time on the path', () => {
    const { durationNanos, onPathNanos } = tree.spans;
    expect(foundSpans(tree, readFind('dur>=0ns')).length).toBe(durationNanos.length);
    const long = foundSpans(tree, readFind('dur>100ms'));
    expect([...long]).toEqual([...durationNanos.keys()].filter((span) => (durationNanos[span] ?? 0) > 100e6));
    const found = foundSpans(tree, readFind('path>1ms dur<1h'));
    expect([...found]).toEqual([...onPathNanos.keys()].filter((span) => (onPathNanos[span] ?? 0) > 1e6));
    expect(onPathOf(tree, found)).toBe([...found].reduce((sum, span) => sum + (onPathNanos[span] ?? 0), 0));
  });
  it('tells one service from all others', () => {
    const [service = ''] = tree.services;
    const of = foundSpans(tree, readFind(`service="${service}"`)).length;
    expect(of).toBeGreaterThan(0);
    expect(foundSpans(tree, readFind(`service!="${service}"`)).length).toBe(tree.spans.parent.length - of);
  });
  it('knows what failed', () => {
    const failed = foundSpans(tree, readFind('status=error'));
    const fine = foundSpans(tree, readFind('status=ok'));
    expect(failed.length + fine.length).toBe(tree.spans.parent.length);
  });
  it('says what is wrong with it', () => {
    for (const [text, words] of [
      ['dur>soon', 'a duration'],
      ['dur=1s', 'a duration'],
      ['service>cart', 'takes =, != or ~'],
      ['status=fine', '=error or =ok'],
      ['http.route=/x', 'unknown key http.route'],
    ] as const)
      expect(readFind(text).wrong, text).toContain(words);
    expect(readFind('a "b=1"').wrong).toBeNull();
  });
  it('keeps the rows above what it found', () => {
    const rows = visibleSpans(tree, NOTHING_FOLDED);
    const found = foundSpans(tree, readFind('bundle'));
    const kept = rowsWith(tree, rows, found);
    for (const span of found) {
      for (let above = span; above >= 0; above = tree.spans.parent[above] ?? -1) expect([...kept]).toContain(above);
    }
    expect(kept.length).toBeLessThan(rows.length);
    expect(rowsWith(tree, rows, new Uint32Array(0)).length).toBe(0);
  });
});
