import { describe, expect, it } from 'vitest';
import { decodeProfileDiff, decodeProfileTypes } from '../api/decode.gen';
import { profileOf } from '../testing/text-profile';
import {
  changedFunctions,
  changeOfValue,
  diffSentence,
  formatOfUnit,
  formatPoints,
  labelOfType,
  profileSentence,
  shownFunctions,
} from './profile-words';
import { matcherOf } from './search';

const STACKS = 'main;parse 2300\nmain;price 1660';

describe('the sentence', () => {
  it('says how much a service used, and most of it in which function', () => {
    expect(profileSentence(profileOf(STACKS), 'cart')).toEqual({
      what: 'cart used 3.96s of CPU time',
      share: '58%',
      of: 'it',
      function: 'parse',
    });
    expect(profileSentence(profileOf(STACKS, ['memory:alloc_space', 'bytes']), 'cart').what).toBe('cart allocated 4.0kB');
    expect(profileSentence(profileOf(STACKS, ['mutex:contentions', 'count']), 'cart').what).toBe('cart waited 3,960 times for locks');
  });

  it('says that states are averages', () => {
    const { what } = profileSentence(profileOf(STACKS, ['memory:inuse_space', 'bytes'], true), 'cart');
    expect(what).toBe('cart had 4.0kB of memory in use on average');
  });

  it('names types that it does not know, and nothing where there is nothing', () => {
    expect(profileSentence(profileOf('', ['gpu:kernel', 'warps']), 'cart')).toEqual({
      what: 'cart has 0 of gpu kernel',
      share: null,
      of: 'them',
      function: '',
    });
  });
});

const diffOf = (totals: readonly [number, number], own: readonly [number, number]) =>
  decodeProfileDiff({
    query: 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}',
    sample_type: 'cpu',
    unit: 'nanoseconds',
    is_state: false,
    before: { from_unix_nano: '0', to_unix_nano: '1', total: totals[0] },
    after: { from_unix_nano: '1', to_unix_nano: '2', total: totals[1] },
    functions: [{ function: 'parse', own, total: own, own_share: [own[0] / (totals[0] || 1), own[1] / (totals[1] || 1)] }],
    truncated: 0,
  });

describe('the sentence of a comparison', () => {
  it('names the function whose part changed most', () => {
    expect(diffSentence(diffOf([2e9, 3.96e9], [0.6e9, 2.3e9]), 'cart')).toEqual({
      what: 'cart used 3.96s of CPU time',
      than: '98% more than',
      before: '2.00s',
      of: 'it',
      largest: { function: 'parse', from: '30%', to: '58%', points: '+28.1' },
    });
    expect(diffSentence(diffOf([4e9, 2e9], [2e9, 0.5e9]), 'cart')).toMatchObject({ than: '50% less than', largest: { points: '−25.0' } });
    expect(diffSentence(diffOf([1e9, 36e9], [1e9, 36e9]), 'cart')).toMatchObject({ than: '36 times as much as', largest: null });
    expect(diffSentence(diffOf([1e9, 3.14e9], [1e9, 3.14e9]), 'cart').than).toBe('3.1 times as much as');
    expect(diffSentence(diffOf([1e9, 1.001e9], [1e9, 1.001e9]), 'cart').than).toBe('as much as');
  });

  it('compares nothing with nothing', () => {
    expect(diffSentence(diffOf([0, 2e9], [0, 1e9]), 'cart')).toMatchObject({ than: null, before: null, largest: null });
    expect(diffSentence(diffOf([2e9, 0], [1e9, 0]), 'cart')).toMatchObject({ than: null, before: '2.00s', largest: null });
  });
});

it('a comparison lists no callers that had nothing themselves', () => {
  const { functions } = diffOf([4e9, 2e9], [2e9, 0.5e9]);
  const caller = { function: 'main', own: [0, 0], total: [4e9, 2e9], ownShare: [0, 0] } as const;
  expect(changedFunctions([caller, ...functions], () => true).map((change) => change.function)).toEqual(['parse']);
  expect(changedFunctions(functions, matcherOf('x'))).toEqual([]);
});

it('values and changes have their unit', () => {
  expect([formatOfUnit('nanoseconds')(1.5e9), formatOfUnit('bytes')(2.5e6), formatOfUnit('count')(12_345)]).toEqual([
    '1.50s',
    '2.5MB',
    '12,345',
  ]);
  expect([changeOfValue(5, 2, 'count'), changeOfValue(0, 2e6, 'nanoseconds'), changeOfValue(7, 7, 'bytes')]).toEqual([
    '−3',
    '+2.0ms',
    '±0',
  ]);
  expect([formatPoints(27.51), formatPoints(-3), formatPoints(-0.04)]).toEqual(['+27.5', '−3.0', '0.0']);
});

it('two types of one label have their names behind', () => {
  const { types } = decodeProfileTypes({
    from_unix_nano: '0',
    to_unix_nano: '1',
    types: [
      'process_cpu:cpu:nanoseconds:cpu:nanoseconds',
      'samples:cpu:nanoseconds:cpu:nanoseconds',
      'memory:inuse_space:bytes:space:bytes',
    ].map((name) => ({ profile_type: name, sample_type: name.split(':')[1], unit: name.split(':')[2], is_state: false, services: [] })),
  });
  expect(types.map((type) => labelOfType(type, types))).toEqual(['CPU time (process_cpu:cpu)', 'CPU time (samples:cpu)', 'memory in use']);
});

it('functions are in the order of a column, and those that match', () => {
  const rows = profileOf('main;parse;read 30\nmain;price 40\nmain;parse 20').functions;
  const names = (sort: 'own' | 'total', find: string) => shownFunctions(rows, sort, matcherOf(find)).map((row) => row.function);
  expect(names('own', '')).toEqual(['price', 'read', 'parse', 'main']);
  expect(names('total', '')).toEqual(['main', 'parse', 'price', 'read']);
  expect(names('own', ' R  PA ')).toEqual(['parse']);
});
