import { describe, expect, it } from 'vitest';
import { decodeServiceGrowth } from '../api/decode.gen';
import type { GrowingState } from '../api/types.gen';
import { growthSentence, searchOfGrowth } from './growth';

const HEAP = 'memory:inuse_space:bytes:space:bytes';
const UTC = () => 0;

/** A state of `cart` that grows, as the server has it. */
function stateOf(changed: Readonly<Record<string, unknown>> = {}): GrowingState {
  const state = {
    service: 'cart',
    query: `${HEAP}{service_name="cart"}`,
    sample_type: 'inuse_space',
    unit: 'bytes',
    processes: 1,
    per_day: 2e6,
    per_day_range: [1.9e6, 2.1e6],
    values: [200e6, 235e6],
    now: 235e6,
    is_taken_back: false,
    since_unix_nano: '1794564000000000000',
    since_within_nanos: 0,
    first_unix_nano: '0',
    over_nanos: 20 * 86_400e9,
    version: 'version="1.8"',
    functions: [{ function: 'remember', growth: 1e6, share: 0.98, callers: ['main'] }],
    ...changed,
  };
  const view = { from_unix_nano: '0', to_unix_nano: '1', growing: [state], truncated: 0, steady: 0, too_short: 0 };
  const [decoded] = decodeServiceGrowth(view).growing;
  if (decoded === undefined) throw new Error('no state');
  return decoded;
}

const grows = (changed: Readonly<Record<string, unknown>>) => growthSentence(stateOf(changed), [], UTC).grows;

describe('the sentence', () => {
  it('says how fast a state grows, since when, and in which function', () => {
    expect(growthSentence(stateOf(), [], UTC)).toEqual({
      service: 'cart',
      labels: null,
      grows: 'memory in use grows by 2.0MB a day (1.0%) since 13 Nov',
      version: 'version="1.8"',
      function: { name: 'remember', share: '98%' },
    });
    expect(grows({ since_within_nanos: 1e9 })).toMatch(/since about 13 Nov$/);
    expect(grows({ is_taken_back: true })).toBe('memory in use grows by 2.0MB a day (1.0%) until a restart takes it back, since 13 Nov');
    expect(grows({ over_nanos: 660e9, per_day: 51.84e9 })).toMatch(/ by 36\.0MB a minute \(18\.0%\)/);
    // New York is 300 minutes behind UTC.
    expect(growthSentence(stateOf({ since_unix_nano: '1794542400000000000' }), [], () => 300).grows).toMatch(/since 12 Nov$/);
  });

  it('has the words of the terminal', () => {
    const count = { unit: 'count', since_unix_nano: null, values: [500, 600] };
    expect(grows({ ...count, sample_type: 'goroutine', per_day: 1.96 })).toBe('goroutines grow by 2.0 a day (0.4%)');
    expect(grows({ ...count, sample_type: 'threads', per_day: 250 })).toBe('threads grow by 250 a day (50.0%)');
    expect(grows({ ...count, sample_type: 'live', per_day: 12_345, values: [0, 9] })).toBe('objects in use grow by 12,345 a day');
    expect(grows({ ...count, sample_type: 'threads', per_day: 250, processes: 3 })).toMatch(/ \(50\.0%\) in each of 3 processes$/);
    expect(growthSentence(stateOf({ functions: [] }), [], UTC).function).toBeNull();
  });

  it('has the labels if another state has the same service and type', () => {
    const [prod, test] = ['prod', 'test'].map((env) => stateOf({ query: `${HEAP}{service_name="cart",env="${env}"}` }));
    if (prod === undefined || test === undefined) throw new Error('no state');
    expect(growthSentence(prod, [prod, test], UTC).labels).toBe('env="prod"');
    expect(growthSentence(prod, [prod, stateOf({ service: 'pay' })], UTC).labels).toBeNull();
  });
});

describe('the address of a state', () => {
  it('has its service, type and labels, and the function', () => {
    expect(searchOfGrowth(stateOf())).toEqual({ service: 'cart', type: HEAP, since: '7d', function: 'remember' });
    const query = `${HEAP}{service_name="cart",env="a\\"b",zone="eu"}`;
    expect(searchOfGrowth(stateOf({ query, functions: [] }))).toEqual({
      service: 'cart',
      type: HEAP,
      since: '7d',
      labels: 'env="a\\"b", zone="eu"',
    });
  });
});
