import { describe, expect, it } from 'vitest';
import type { OperationPoles, Quantiles, SharedPole } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { listedPoles, poleName, poleShare, saves, takesWithout, whySlow } from './shared-poles';

const takes = (median: number, p99: number): Quantiles => ({
  medianNanos: median as Nanos,
  p95Nanos: p99 as Nanos,
  p99Nanos: p99 as Nanos,
});
const longest = { traceId: '1'.repeat(32), nanos: 9e6 as Nanos };
const pole = (part: Partial<SharedPole>): SharedPole => ({
  service: 'shop',
  name: 'render',
  part: null,
  traces: 4,
  onPathNanos: 1e6 as Nanos,
  shareOfSlowest: null,
  shareOfOthers: null,
  savesNanos: { low: 0 as Nanos, high: 5e6 as Nanos },
  without: takes(60e6, 60e6),
  withoutAtBest: takes(46e6, 60e6),
  mostIn: longest,
  ...part,
});
const of: OperationPoles = {
  service: 'shop',
  name: 'POST /cart',
  traces: 4,
  totalNanos: 400e6 as Nanos,
  takes: takes(100e6, 120e6),
  longest,
  poles: [pole({ service: 'db', name: 'query', onPathNanos: 200e6 as Nanos }), pole({ part: 'compress' })],
  omitted: 0,
};

describe('poles of many traces', () => {
  it('are named with a service where that is another one', () => {
    expect(of.poles.map((it) => poleName(it, of))).toEqual(['query · db', 'render › compress']);
  });
  it('say what traces would take without them', () => {
    expect([takesWithout(pole({}), 'medianNanos'), takesWithout(pole({}), 'p99Nanos')]).toEqual(['46.0ms–60.0ms', '60.0ms']);
    expect(saves(pole({ savesNanos: { low: 0 as Nanos, high: 0 as Nanos } }))).toBe(false);
  });
  it('say why the slowest traces are slow', () => {
    const slow = pole({ name: 'lock', shareOfSlowest: 0.9, shareOfOthers: 0.2 });
    expect(whySlow({ ...of, poles: [...of.poles, slow] })).toBe(
      'The slowest 5% are slow because of lock: 90% of their time, 20% in the others.',
    );
    expect(whySlow(of)).toBeNull();
  });
  it('are listed if they have a part of the time', () => {
    expect(listedPoles(of).map((it) => poleShare(it, of))).toEqual(['50%']);
  });
});
