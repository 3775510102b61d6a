/** Histograms of durations on a log scale: bins, bars, and the search for the spans of some bins. */
import type { Nanos } from '../base/brand';
import { at, lowerBound } from '../base/column';
import { clamp } from '../base/math';
import { printDuration } from './duration';
import { counted, formatDuration } from './format';
import { conditionsOf } from './operation-search';
import type { Operation } from './operations';

/** Bin `i` has the durations from `edges[i]` to below `edges[i + 1]`. The first also has those below, the last those above. */
export interface Bins {
  readonly edges: Float64Array;
}

/** Edges are round to this many digits, so that a search names them exactly. */
const EDGE_DIGITS = 3;
/** Shorter spans lie in the first bin: the decades below a microsecond would take the room of all others. */
const SHORTEST = 1000;

/** The least ratio of the ends of an axis: durations that hardly differ lie close together in its middle. */
const RATIO_MIN = 4;

/** At most `most` bins, each longer than the one before it by the same factor, up to rounding. */
export function binsOf(shortest: number, longest: number, most: number): Bins {
  const least = Math.max(1, Math.min(longest, Math.max(shortest, SHORTEST)));
  const largest = Math.max(longest, least);
  const air = Math.sqrt(Math.max(1, (RATIO_MIN * least) / largest));
  const [low, high] = [least / air, largest * air];
  const edges: number[] = [];
  for (let place = 0; place <= most; place++) {
    const edge = Number((low * (high / low) ** (place / most)).toPrecision(EDGE_DIGITS));
    if (edge > (edges.at(-1) ?? 0)) edges.push(edge);
  }
  return { edges: Float64Array.from(edges) };
}

/** The number of bins. */
export function binCount({ edges }: Bins): number {
  return edges.length - 1;
}

/** How many durations lie in each bin. */
export function countsOf(ascending: Float64Array, bins: Bins): Uint32Array {
  const counts = new Uint32Array(binCount(bins));
  let begin = 0;
  for (let bin = 0; bin < counts.length; bin++) {
    const end = bin === counts.length - 1 ? ascending.length : lowerBound(ascending, at(bins.edges, bin + 1), begin);
    counts[bin] = end - begin;
    begin = end;
  }
  return counts;
}

/** The bins that all rows of a table share, so that their histograms compare. */
export function commonBins(rows: readonly Operation[], most: number): Bins {
  let [shortest, longest] = [Infinity, 0];
  for (const { durations } of rows) {
    if (durations.length === 0) continue;
    shortest = Math.min(shortest, at(durations, 0));
    longest = Math.max(longest, at(durations, durations.length - 1));
  }
  return binsOf(Number.isFinite(shortest) ? shortest : 1, longest, most);
}

/** The least height of a bar, so that a single span among thousands is there. */
const BAR_MIN = 1.5;

/** The bars as one path of an SVG picture: left to right, from its lower edge up. */
export function barsPath(counts: Uint32Array, width: number, height: number, gap: number): string {
  const most = counts.reduce((largest, count) => Math.max(largest, count), 1);
  const step = width / counts.length;
  let path = '';
  for (let bin = 0; bin < counts.length; bin++) {
    const count = at(counts, bin);
    if (count === 0) continue;
    const bar = Math.max(BAR_MIN, (count / most) * height);
    path += `M${(bin * step).toFixed(1)} ${height}v${(-bar).toFixed(1)}h${Math.max(1, step - gap).toFixed(1)}v${bar.toFixed(1)}z`;
  }
  return path;
}

/** Place of a duration on the axis of a histogram, from 0 to its width. */
export function placeOf({ edges }: Bins, width: number, nanos: number): number {
  // Edges are rounded: each bin is as wide as the others, whatever its factor.
  const bin = clamp(lowerBound(edges, nanos + 1e-6) - 1, 0, edges.length - 2);
  const [low, high] = [at(edges, bin), at(edges, bin + 1)];
  const inside = clamp(Math.log(Math.max(nanos, 1) / low) / Math.log(high / low), 0, 1);
  return ((bin + inside) / (edges.length - 1)) * width;
}

/** The bin at a place of the axis. */
export function binAt(bins: Bins, width: number, x: number): number {
  return clamp(Math.floor((x / Math.max(1, width)) * binCount(bins)), 0, binCount(bins) - 1);
}

/** Bins from the first to the last, both selected. */
export interface BinRange {
  readonly first: number;
  readonly last: number;
}

export function rangeOf(a: number, b: number): BinRange {
  return { first: Math.min(a, b), last: Math.max(a, b) };
}

/** The bounds of a range; an outermost bin has none on its side. */
function boundsOf(bins: Bins, { first, last }: BinRange): { readonly from: Nanos | null; readonly to: Nanos | null } {
  return {
    from: first === 0 ? null : (at(bins.edges, first) as Nanos),
    to: last === binCount(bins) - 1 ? null : (at(bins.edges, last + 1) as Nanos),
  };
}

/** The search for the spans of an operation in these bins: `name="POST /checkout" dur>=120ms dur<1.5s`. */
export function searchOfBins(operation: Operation, bins: Bins, range: BinRange): string {
  const { from, to } = boundsOf(bins, range);
  return [
    ...conditionsOf(operation),
    ...(from === null ? [] : [`dur>=${printDuration(from, 'down')}`]),
    ...(to === null ? [] : [`dur<${printDuration(to, 'up')}`]),
  ].join(' ');
}

/** `120ms to 1.50s: 41 spans`. */
export function binsInWords(bins: Bins, counts: Uint32Array, range: BinRange): string {
  const { from, to } = boundsOf(bins, range);
  const count = counts.slice(range.first, range.last + 1).reduce((sum, part) => sum + part, 0);
  const durations =
    from === null
      ? to === null
        ? 'all durations'
        : `below ${formatDuration(to)}`
      : to === null
        ? `${formatDuration(from)} and above`
        : `${formatDuration(from)} to ${formatDuration(to)}`;
  return `${durations}: ${counted(count, 'span')}`;
}
