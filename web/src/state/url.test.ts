import { describe, expect, it } from 'vitest';
import type { SpanIndex } from '../base/brand';
import { isFolded } from '../logic/rows';
import {
  changed,
  foldOf,
  printFold,
  printRange,
  readFold,
  readListSearch,
  readRange,
  readRecordingSearch,
  selectingSpan,
  showingOnly,
  showingTime,
  toggledRun,
  toggledWithout,
  unfoldedOf,
  viewOf,
} from './url';

describe('reading search parameters', () => {
  it('keeps what is understood', () => {
    const search = {
      span: 's12',
      pole: 'p1',
      without: 'p1.p3',
      frame: 'f3',
      t: '120000-4500000',
      fold: 's3.s9',
      time: 'off_cpu',
      node: 12,
      unfold: 'n4.n90',
      source: 1,
      view: 'operations',
      by: 'service',
      sort: '-p99',
      op: 'n3s1',
    };
    expect(readRecordingSearch(search)).toEqual(search);
  });

  it.each([
    ['handles of another kind', { span: 'p1', pole: 's1', frame: 'x' }],
    ['numbers where words belong', { span: 12, t: 5, fold: 7 }],
    ['a range that is none', { t: '9-3' }],
    ['a fold that is none', { fold: 's3,s9' }],
    ['a node that is none', { node: -1 }],
    ['runs that are none', { unfold: 'n4.s2' }],
    ['poles that are none', { without: 'p1.s3' }],
    ['a time that is none, or goes without saying', { time: 'on_cpu' }],
    ['a view, a grouping, an order and an operation that are none', { view: 'list', by: 'operation', sort: 'mean', op: 'p1' }],
    ['strangers', { token: 'secret', utm: 'x' }],
    ['objects', { span: { a: 1 }, node: [1] }],
    ['s0, which is no handle', { span: 's0' }],
  ])('leaves out %s', (_, search) => {
    expect(readRecordingSearch(search)).toEqual({});
  });

  it('takes words of the filter that look like numbers', () => {
    expect(readListSearch({ q: 7 })).toEqual({ q: '7' });
    expect(readListSearch({ q: '' })).toEqual({});
    expect(readListSearch({ q: 'x'.repeat(500) }).q).toHaveLength(200);
  });
});

describe('round trips', () => {
  it.each(['0-1', '120000-4500000', '-5-7'])('range %s', (text) => {
    const range = readRange(text);
    expect(range === null ? null : printRange(range)).toBe(text);
  });

  it('a pole is taken away and brought back', () => {
    expect(toggledWithout(undefined, 'p3')).toBe('p3');
    expect(toggledWithout('p3', 'p1')).toBe('p1.p3');
    expect(toggledWithout('p1.p3', 'p1')).toBe('p3');
    expect(toggledWithout('p3', 'p3')).toBeNull();
  });

  it.each(['s3', 's3.s9', 'all', 'all.s1.s4'])('fold %s', (text) => {
    const fold = readFold(text);
    expect(fold === null ? null : printFold(fold)).toBe(text);
  });

  it('a run of foreign frames is unfolded and folded again', () => {
    const one = toggledRun({}, 4);
    expect(one).toEqual({ unfold: 'n4' });
    expect(toggledRun(one, 90)).toEqual({ unfold: 'n4.n90' });
    expect(toggledRun(one, 4)).toEqual({});
    expect(toggledRun({ unfold: 'all' }, 4)).toEqual({ unfold: 'all' });
    expect(unfoldedOf({ unfold: 'n4.n90' })).toEqual(new Set([4, 90]));
  });

  it('nothing folded is not in the URL', () => {
    expect(printFold({ all: false, except: new Set() })).toBeNull();
    expect(isFolded(foldOf({}), 3 as SpanIndex)).toBe(false);
    expect(isFolded(foldOf({ fold: 'all.s4' }), 3 as SpanIndex)).toBe(false);
    expect(isFolded(foldOf({ fold: 'all.s4' }), 4 as SpanIndex)).toBe(true);
  });

  it('a URL stays short', () => {
    const printed = printFold({ all: false, except: new Set(Array.from({ length: 5000 }, (_, index) => index)) }) ?? '';
    expect(printed.split('.')).toHaveLength(400);
    expect(readFold(printed)).not.toBeNull();
  });
});

describe('changing the selection', () => {
  const search = { span: 's2', pole: 'p1', frame: 'f3', node: 4, t: '1-2' };
  it('drops what becomes null and keeps the rest', () => {
    expect(changed(search, { frame: null })).toEqual({ span: 's2', pole: 'p1', node: 4, t: '1-2' });
  });
  it('another span keeps the function and the time range, but not the zoom of the flame graph', () => {
    expect(selectingSpan(search, 's5', null)).toEqual({ span: 's5', frame: 'f3', t: '1-2' });
    expect(selectingSpan(search, 's2', 'p1')).toEqual(search);
    expect(selectingSpan(search, null, null)).toEqual({ frame: 'f3', t: '1-2' });
  });
  it('another flame graph keeps that all of it is unfolded, but no single runs', () => {
    expect(selectingSpan({ span: 's2', unfold: 'n4' }, 's5', null)).toEqual({ span: 's5' });
    expect(showingTime({ span: 's2', unfold: 'all' }, 'wall')).toEqual({ span: 's2', time: 'wall', unfold: 'all' });
  });
  it('another time of the flame graph keeps all but its zoom, and on-CPU goes without saying', () => {
    const blocked = { span: 's2', pole: 'p1', frame: 'f3', t: '1-2', time: 'off_cpu' } as const;
    expect(showingTime(search, 'off_cpu')).toEqual(blocked);
    expect(selectingSpan(blocked, 's5', null)).toEqual({ span: 's5', frame: 'f3', t: '1-2', time: 'off_cpu' });
    expect(showingTime(blocked, 'on_cpu')).toEqual({ span: 's2', pole: 'p1', frame: 'f3', t: '1-2' });
  });
});

describe('the trace or its operations', () => {
  it('begins with the operations of many traces, until something of the trace is selected', () => {
    expect(viewOf({}, false)).toBe('trace');
    expect(viewOf({}, true)).toBe('operations');
    expect(viewOf({ span: 's2' }, true)).toBe('trace');
    expect(viewOf({ find: 'cart', view: 'operations' }, false)).toBe('operations');
  });
  it('leads from an operation to its spans', () => {
    const spans = showingOnly({ view: 'operations', by: 'name', find: 'cart' }, 'name=deploy');
    expect(spans).toEqual({ by: 'name', find: 'name=deploy', only: 1 });
    expect(viewOf(spans, true)).toBe('trace');
  });
});
