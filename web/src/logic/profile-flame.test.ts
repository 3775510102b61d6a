import { describe, expect, it } from 'vitest';
import type { NodeIndex } from '../base/brand';
import { profileOf } from '../testing/text-profile';
import { boxInWords, levelsOf, shareOfFrames } from './flame-graph';
import { flameOfProfile, nodeOfStack, stackOfNode } from './profile-flame';

const STACKS = `
  main;serve;parse 40
  main;serve;price;parse 10
  main;gc;scan 30
  main;serve 20
`;
const flame = flameOfProfile(profileOf(STACKS), 'cart');
const nameOf = (node: number) => flame.frames[flame.nodes.frame[node] ?? -1]?.function ?? flame.title;

describe('profiles as a flame graph', () => {
  it('have a root, and each call below its caller', () => {
    const rows = Array.from(flame.nodes.parent, (parent, node) => [
      nameOf(node),
      parent < 0 ? '' : nameOf(parent),
      (flame.nodes.offsetNanos[node] ?? 0) / 1e6,
      (flame.nodes.totalNanos[node] ?? 0) / 1e6,
    ]);
    expect(rows).toEqual([
      ['cart', '', 0, 100],
      ['main', 'cart', 0, 100],
      ['serve', 'main', 0, 70],
      ['parse', 'serve', 0, 40],
      ['price', 'serve', 40, 10],
      ['parse', 'price', 40, 10],
      ['gc', 'main', 70, 30],
      ['scan', 'gc', 70, 30],
    ]);
  });

  it('write values in their unit', () => {
    const inWords = (of: typeof flame) => boxInWords(levelsOf(of), 3 as NodeIndex);
    expect(inWords(flame)).toBe('parse, 40%, 40.0ms total, 40.0ms self');
    expect(inWords(flameOfProfile(profileOf(STACKS, ['memory:inuse_space', 'bytes']), 'cart'))).toBe('parse, 40%, 40B total, 40B self');
  });

  it('count a stack once for all functions that were searched for', () => {
    const framesOf = (...names: readonly string[]) =>
      new Set(flame.frames.flatMap((frame, place) => (names.includes(frame.function) ? [place] : [])));
    expect(shareOfFrames(flame, framesOf('parse'))).toBeCloseTo(0.5);
    expect(shareOfFrames(flame, framesOf('price', 'parse', 'scan'))).toBeCloseTo(0.8);
  });

  it('survive an answer whose depths jump', () => {
    const profile = profileOf(STACKS);
    const odd = flameOfProfile({ ...profile, calls: { ...profile.calls, depth: profile.calls.depth.map(() => 9) } }, 'cart');
    expect(odd.nodes.depth[7]).toBe(7);
  });
});

describe('a box in the address', () => {
  it('is the shortest end of its stack that finds it', () => {
    for (let node = 0; node < flame.nodes.parent.length; node++) {
      const stack = stackOfNode(flame, node);
      expect(stack === null ? 0 : nodeOfStack(flame, stack)).toBe(node);
    }
    expect(stackOfNode(flame, 3)).toBe('parse');
    expect(stackOfNode(flame, 5)).toBe('price;parse');
  });

  it('may have the separator in its name, and is the root where it is gone', () => {
    const profile = profileOf('run;f 3\nrun;g;f 4');
    const names = profile.calls.names.map((name) => (name === 'f' ? 'f(LString;)V' : name));
    const java = flameOfProfile({ ...profile, calls: { ...profile.calls, names } }, 'cart');
    expect(Array.from(java.nodes.parent, (_, node) => stackOfNode(java, node))).toEqual([
      null,
      'run',
      'g',
      'f(LString;)V',
      'run;f(LString;)V',
    ]);
    expect(nodeOfStack(java, 'run;f(LString;)V')).toBe(4);
    expect(nodeOfStack(java, 'gone')).toBe(0);
  });
});
