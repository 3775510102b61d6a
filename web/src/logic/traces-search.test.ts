import { describe, expect, it } from 'vitest';
import { readTags, readTracesSearch, requestOf } from './traces-search';

describe('the search for traces', () => {
  it('reads an address, without what is invalid', () => {
    expect(readTracesSearch({ service: 'cart', minDuration: 5, sort: 'longest', other: 'x', operation: '' })).toEqual({
      service: 'cart',
      minDuration: '5',
      sort: 'longest',
    });
  });

  it('takes attributes as pairs', () => {
    expect(readTags('http.status_code=500 name="two words"')).toEqual(
      new Map([
        ['http.status_code', '500'],
        ['name', 'two words'],
      ]),
    );
    expect(readTags('error')).toBeNull();
    expect(readTags('=1')).toBeNull();
  });

  it('asks as Jaeger spells it, and says what is wrong', () => {
    expect(requestOf({ service: 'cart', tags: 'error=true', minDuration: '1.5s' })).toEqual({
      parameters: { service: 'cart', minDuration: '1.5s', tags: '{"error":"true"}', limit: '100' },
      wrong: null,
    });
    expect(requestOf({ minDuration: 'soon' }).wrong).toContain('soon');
    expect(requestOf({ tags: 'error' }).wrong).toContain('key=value');
  });
});
