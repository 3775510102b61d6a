import { describe, expect, it } from 'vitest';
import { decodeTree } from '../api/checks';
import { loadRecording } from '../testing/recordings.mjs';
import { foundSpans, readFind } from './find';
import { barsPath, binAt, binCount, binsInWords, binsOf, commonBins, countsOf, placeOf, rangeOf, searchOfBins } from './histogram';
import { operationsOf } from './operations';

const tree = decodeTree(loadRecording().tree());
const { rows } = operationsOf(tree, 'operation');

describe('bins', () => {
  it('grow by one factor, with round edges', () => {
    expect([...binsOf(1e6, 16e6, 4).edges]).toEqual([1e6, 2e6, 4e6, 8e6, 16e6]);
  });
  it('hold every duration once, also those of a single length and of none', () => {
    for (const { durations } of rows) {
      for (const bins of [commonBins(rows, 24), binsOf(1, 1e9, 7), binsOf(durations[0] ?? 0, durations.at(-1) ?? 0, 40)]) {
        expect(countsOf(durations, bins).reduce((sum, count) => sum + count, 0)).toBe(durations.length);
      }
    }
    expect([...countsOf(Float64Array.of(0, 0), commonBins([], 24))].reduce((sum, count) => sum + count, 0)).toBe(2);
    expect(binCount(binsOf(5e6, 5e6, 40))).toBeGreaterThan(0);
  });
  it('lie side by side on the axis', () => {
    const bins = binsOf(1e6, 16e6, 4);
    expect([0, 1e6, 2e6, 8e6, 99e6].map((nanos) => Math.round(placeOf(bins, 400, nanos)))).toEqual([0, 0, 100, 300, 400]);
    expect([-5, 0, 99, 100, 399, 400].map((x) => binAt(bins, 400, x))).toEqual([0, 0, 0, 1, 3, 3]);
  });
});

describe('the spans of some bins', () => {
  it('are those that the search finds', () => {
    for (const operation of rows) {
      const bins = binsOf(operation.durations[0] ?? 0, operation.durations.at(-1) ?? 0, 32);
      const counts = countsOf(operation.durations, bins);
      for (let bin = 0; bin < counts.length; bin += 3) {
        const range = rangeOf(Math.min(bin + 2, counts.length - 1), bin);
        const expected = counts.slice(range.first, range.last + 1).reduce((sum, count) => sum + count, 0);
        expect(foundSpans(tree, readFind(searchOfBins(operation, bins, range))).length).toBe(expected);
      }
    }
  });
  it('are named with their durations', () => {
    const bins = binsOf(1e6, 16e6, 4);
    const counts = Uint32Array.of(3, 1, 0, 2);
    expect(binsInWords(bins, counts, rangeOf(2, 1))).toBe('2.0ms to 8.0ms: 1\u00a0span');
    expect(binsInWords(bins, counts, rangeOf(0, 0))).toBe('below 2.0ms: 3\u00a0spans');
    expect(binsInWords(bins, counts, rangeOf(3, 3))).toBe('8.0ms and above: 2\u00a0spans');
    expect(binsInWords(bins, counts, rangeOf(0, 3))).toBe('all durations: 6\u00a0spans');
  });
});

it('bars stand on the lower edge; a single span among thousands has one', () => {
  expect(barsPath(Uint32Array.of(1000, 0, 1), 30, 20, 1)).toBe('M0.0 20v-20.0h9.0v20.0zM20.0 20v-1.5h9.0v1.5z');
});
