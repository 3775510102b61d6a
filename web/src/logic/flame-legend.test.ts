import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeFlame } from '../api/checks';
import type { NodeIndex } from '../base/brand';
import { flameOf } from '../testing/text-flame';
import { originShares, showsStates, stateShares, statesInWords } from './flame-legend';
import { formatDuration, formatShare } from './format';

const said = (shares: ReturnType<typeof originShares>) =>
  shares.map(({ name, total, self }) => `${name} ${formatShare(total)}, self ${formatShare(self)}`);

describe('whose code it is', () => {
  it('by the time with what it called, in which a stack counts once, and by its own', () => {
    const flame = flameOf(`
      main;shop::run;tax::rate;shop::round 60
      main;shop::run;std::hash 30
      idle 10
    `);
    expect(said(originShares(flame))).toEqual([
      'shop 90%, self 60%',
      'tax 60%, self 0%',
      'language runtime 30%, self 30%',
      'native code 100%, self 10%',
    ]);
  });

  it('with what is beyond the limit as one', () => {
    const flame = flameOf('a::f 50\nb::f;c::f 30\nc::f 20');
    expect(said(originShares(flame, 1))).toEqual(['a 50%, self 50%', 'other code 50%, self 50%']);
  });
});

describe('what its time was', () => {
  const golden = (time: string) =>
    decodeFlame(JSON.parse(readFileSync(new URL(`../testing/golden/flame-${time}.json`, import.meta.url), 'utf8')));

  it('is by state where there are waits', () => {
    expect(showsStates(flameOf('main 1'))).toBe(false);
    const wall = golden('wall');
    expect(showsStates(wall)).toBe(true);
    const [first, ...waits] = stateShares(wall);
    expect(first?.state).toBe('on_cpu');
    expect(waits[0]).toMatchObject({ state: 'lock', label: 'lock' });
    const sum = stateShares(wall).reduce((whole, { nanos }) => whole + nanos, 0);
    expect(formatDuration(sum)).toBe(formatDuration(wall.weightNanos));
  });

  it('of a box in words', () => {
    expect(statesInWords(golden('wall'), 0 as NodeIndex)).toMatch(/^\d+% on-CPU, \d+% waiting, mostly lock$/);
    expect(statesInWords(golden('off_cpu'), 0 as NodeIndex)).toBe('100% waiting, mostly lock');
    expect(statesInWords(flameOf('main 1'), 0 as NodeIndex)).toBe('');
  });
});
