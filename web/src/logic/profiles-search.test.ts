import { describe, expect, it } from 'vitest';
import { decodeProfileTypes } from '../api/decode.gen';
import type { Micros } from '../base/brand';
import {
  choiceOf,
  commandOf,
  diffParametersOf,
  movedRange,
  type ProfilesSearch,
  profileParametersOf,
  readProfilesSearch,
  readRequest,
  servicesOf,
  timeInWords,
  typesOf,
  typesParametersOf,
  valuesParametersOf,
} from './profiles-search';

const HOUR = 3_600_000_000;
const NOW = (1_000 * HOUR) as Micros;
const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const HEAP = 'memory:inuse_space:bytes:space:bytes';

const { types } = decodeProfileTypes({
  from_unix_nano: '0',
  to_unix_nano: '1',
  types: [
    { profile_type: HEAP, sample_type: 'inuse_space', unit: 'bytes', is_state: true, services: ['batch', 'cart'] },
    { profile_type: CPU, sample_type: 'cpu', unit: 'nanoseconds', is_state: false, services: ['cart', 'checkout'] },
  ],
});

describe('the address', () => {
  it('is read without what is invalid', () => {
    expect(readProfilesSearch({ service: 'cart', since: '6h', before: '1d', sort: 'total', start: 5, x: 1 })).toEqual({
      service: 'cart',
      since: '6h',
      before: '1d',
      sort: 'total',
    });
    expect(readProfilesSearch({ service: 7, since: '2h', before: '1m', start: 9, end: 5 })).toEqual({ service: '7' });
  });

  it('has one range, and one thing to compare with', () => {
    expect(readProfilesSearch({ since: '6h', start: 5, end: 9, before: '1h', beforeLabels: 'a="b"' })).toEqual({
      start: 5,
      end: 9,
      beforeLabels: 'a="b"',
    });
  });

  it('is in words', () => {
    expect(timeInWords({}, 0)).toBe('in the last hour');
    expect(timeInWords({ since: '7d' }, 0)).toBe('in the last 7 days');
    expect(timeInWords({ start: NOW - HOUR, end: NOW }, 0)).toBe('from 11 Feb 15:00:00 to 16:00:00');
  });
});

describe('the service and the type', () => {
  it('are the first that readers want most, unless the address names others', () => {
    expect(servicesOf(types)).toEqual(['batch', 'cart', 'checkout']);
    expect(typesOf(types, 'cart').map(({ profileType }) => profileType)).toEqual([CPU, HEAP]);
    expect(choiceOf(types, {})).toEqual({ service: 'cart', type: CPU });
    expect(choiceOf(types, { service: 'batch' })).toEqual({ service: 'batch', type: HEAP });
    expect(choiceOf(types, { type: HEAP })).toEqual({ service: 'batch', type: HEAP });
    expect(choiceOf(types, { service: 'gone' })).toEqual({ service: 'gone', type: CPU });
    expect(choiceOf([], {})).toBeNull();
  });

  it('are searched for in the last days, too', () => {
    expect(typesParametersOf({}, NOW)).toEqual({ start: String(NOW - 168 * HOUR), end: String(NOW) });
    expect(typesParametersOf({ start: 5, end: 9 }, NOW)).toEqual({ start: '5', end: String(NOW) });
  });
});

describe('the request', () => {
  const choice = { service: 'cart', type: CPU };

  it('goes back from now, or has the range of the address', () => {
    expect(profileParametersOf(readRequest({ labels: 'env="prod"' }, choice).request, NOW)).toMatchObject({
      query: `${CPU}{service_name="cart", env="prod"}`,
      start: String(NOW - HOUR),
      end: String(NOW),
    });
    expect(profileParametersOf(readRequest({ start: 5, end: 9 }, choice).request, NOW)).toMatchObject({ start: '5', end: '9' });
    expect(movedRange({ start: 5, end: 9 }, NOW, 1)).toEqual({ start: 9, end: 13 });
    expect(movedRange({}, NOW, -1)).toEqual({ start: NOW - 2 * HOUR, end: NOW - HOUR });
  });

  it('has values of steps in which each process sends a profile', () => {
    const steps = (search: ProfilesSearch) => valuesParametersOf(readRequest(search, choice).request, NOW)['steps'];
    expect([steps({ since: '15m' }), steps({}), steps({ since: '7d' }), steps({ start: 5, end: 9 })]).toEqual(['30', '120', '240', '1']);
  });

  it('compares with the same length of time before', () => {
    expect(diffParametersOf(readRequest({ since: '6h', before: '1d' }, choice).request, NOW)).toMatchObject({
      start: String(NOW - 6 * HOUR),
      beforeStart: String(NOW - 30 * HOUR),
      beforeEnd: String(NOW - 24 * HOUR),
    });
  });

  it('compares with other labels at the same time', () => {
    expect(diffParametersOf(readRequest({ labels: 'version="8"', beforeLabels: 'version="7"' }, choice).request, NOW)).toMatchObject({
      query: `${CPU}{service_name="cart", version="8"}`,
      before: `${CPU}{service_name="cart", version="7"}`,
      beforeStart: String(NOW - HOUR),
    });
  });

  it('is a command in the terminal, if that can ask it', () => {
    const of = (search: Parameters<typeof readRequest>[0]) => commandOf(readRequest(search, choice).request, 'http://localhost:16686');
    expect(of({ since: '6h', before: '1d' })).toBe(
      `longpole profile '${CPU}{service_name="cart"}' --since 6h --diff 1d --at http://localhost:16686`,
    );
    expect([of({ start: 5, end: 9 }), of({ beforeLabels: 'version="7"' })]).toEqual([null, null]);
  });

  it('says what is wrong with labels', () => {
    const { wrong, wrongBefore } = readRequest({ labels: 'version=8', beforeLabels: 'version' }, choice);
    expect(wrong).toContain('in quotation marks');
    expect(wrongBefore).toContain('and a value after version');
  });
});
