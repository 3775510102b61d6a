import { describe, expect, it } from 'vitest';
import { treeOf } from '../testing/text-tree';
import { spansNamed } from './named-spans';

const tree = treeOf(`
  deploy         0..100  engine
    build       10..60   builder
      pack      20..30   builder
    pack        60..90   cloud
`);
const found = (query: string) => spansNamed(tree, query, 5).map(({ entry }) => entry.words.replaceAll('\u00a0', ' '));

describe('spans by name', () => {
  it('are one for each name, the longest', () => {
    expect(found('pack')).toEqual(['s4 pack in cloud, longest of 2 spans']);
    expect(found('d')).toEqual(['s1 deploy in engine', 's2 build in builder']);
    expect(found('nothing')).toEqual([]);
    expect(found('')).toEqual([]);
  });

  it('are found by their handle, too', () => {
    expect(found('S3')).toEqual(['s3 pack in builder']);
    expect(found('s9')).toEqual([]);
  });
});
