import { describe, expect, it } from 'vitest';
import { bestMatches, fuzzyScore } from './fuzzy';

const NAMES = ['p1 compress_bundle', 'p2 upload', 'decompress', 'Collapse all rows', 'ResourceProvider/Create', 'compute'];
const best = (query: string) => bestMatches(query, NAMES, (name) => name, 3).map(({ entry }) => entry);

describe('a fuzzy match', () => {
  it('takes words, parts of words and letters in their order', () => {
    expect(best('upload')).toEqual(['p2 upload']);
    expect(best('cmprbun')).toEqual(['p1 compress_bundle']);
    expect(best('RPC')[0]).toBe('ResourceProvider/Create');
    expect(best('bundle p1')).toEqual(['p1 compress_bundle']);
    expect(best('xyz')).toEqual([]);
    expect(fuzzyScore('compress', 'xcxoxmxpxrxexsxs')).toBeNull();
  });

  it('prefers what stands at the start of a word, and then the shorter text', () => {
    expect(best('comp')).toEqual(['compute', 'p1 compress_bundle', 'decompress']);
    expect(fuzzyScore('all', 'all')).toBeGreaterThan(fuzzyScore('all', 'all rows') ?? 0);
  });

  it('takes each text without a query, in its order', () => {
    expect(best('')).toEqual(NAMES.slice(0, 3));
  });
});
