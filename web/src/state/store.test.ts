import { expect, it } from 'vitest';
import { createAtom } from './store';

it('an atom tells its watchers of changes, and of nothing else', () => {
  const atom = createAtom(1);
  const seen: number[] = [];
  const end = atom.watch(() => seen.push(atom.get()));
  atom.set(2);
  atom.set(2);
  atom.set(3);
  end();
  atom.set(4);
  expect(seen).toEqual([2, 3]);
  expect(atom.get()).toBe(4);
});
