/** Geometry of the trace's rows: time to pixels and back, rows to pixels and back. Sizes in CSS pixels. */

import type { Tree } from '../api/types.gen';
import type { Nanos, Pixels, RowIndex, SpanIndex } from '../base/brand';
import { at } from '../base/column';
import { clamp } from '../base/math';
import { tickStep } from './format';

/** Height of a row, and the least size of a click target (ux.md, Accessibility). */
export const ROW_HEIGHT = 24;
export const RULER_HEIGHT = 24;
export const INDENT = 14;
/** Share of the name column for indentation; deeper rows do not indent further, aria-level still has their depth. */
const INDENT_SHARE_MAX = 0.4;
/** The shortest time range of the zoom. */
const SPAN_NANOS_MIN = 100;

/** The time range on the screen. */
export interface TimeRange {
  readonly start: Nanos;
  readonly end: Nanos;
}

/** The part of the rows on the screen. */
export interface WaterfallView {
  readonly range: TimeRange;
  /** The row at the top edge, with its hidden fraction. */
  readonly topRow: number;
}

/** The box of the rows. */
export interface WaterfallBox {
  readonly width: number;
  readonly height: number;
  /** Width of the column of names, left of the time axis. */
  readonly nameWidth: number;
}

/** The whole recording, from its first span to its last end. */
export function fullRange(tree: Tree): TimeRange {
  let start = 0;
  let end: number = tree.wallNanos;
  for (let span = 0; span < tree.spans.parent.length; span++) {
    start = Math.min(start, at(tree.spans.startNanos, span));
    end = Math.max(end, at(tree.spans.startNanos, span) + at(tree.spans.durationNanos, span));
  }
  return { start: start as Nanos, end: Math.max(end, start + SPAN_NANOS_MIN) as Nanos };
}

/** `range`, moved and shrunk until it lies in `full`. */
export function clampRange(range: TimeRange, full: TimeRange): TimeRange {
  const length = clamp(range.end - range.start, SPAN_NANOS_MIN, full.end - full.start);
  const start = clamp(range.start, full.start, full.end - length);
  return { start: start as Nanos, end: (start + length) as Nanos };
}

/** `range` made `factor` times as long, with the time at `anchor` (0 left edge, 1 right edge) staying where it is. */
export function zoomed(range: TimeRange, full: TimeRange, factor: number, anchor: number): TimeRange {
  const length = clamp((range.end - range.start) * factor, SPAN_NANOS_MIN, full.end - full.start);
  const pivot = range.start + (range.end - range.start) * anchor;
  const start = pivot - length * anchor;
  return clampRange({ start: start as Nanos, end: (start + length) as Nanos }, full);
}

/** `range` moved by a fraction of its length. */
export function panned(range: TimeRange, full: TimeRange, fraction: number): TimeRange {
  const shift = (range.end - range.start) * fraction;
  return clampRange({ start: (range.start + shift) as Nanos, end: (range.end + shift) as Nanos }, full);
}

/** The range that shows a span with a margin. */
export function rangeOfSpan(tree: Tree, span: SpanIndex, full: TimeRange): TimeRange {
  const start = at(tree.spans.startNanos, span);
  const duration = at(tree.spans.durationNanos, span);
  const air = Math.max(duration * 0.06, SPAN_NANOS_MIN / 2);
  return clampRange({ start: (start - air) as Nanos, end: (start + duration + air) as Nanos }, full);
}

/** The range moved so that a span is in it, as far as it fits; `null` if some of the span is in it already. */
export function rangeShowing(tree: Tree, span: SpanIndex, range: TimeRange, full: TimeRange): TimeRange | null {
  const start = at(tree.spans.startNanos, span);
  const end = start + at(tree.spans.durationNanos, span);
  if (start <= range.end && end >= range.start) return null;
  const length = range.end - range.start;
  const from = start - Math.max(0, length - (end - start)) / 2;
  return clampRange({ start: from as Nanos, end: (from + length) as Nanos }, full);
}

/** Horizontal place of a time. */
export function xOf(box: WaterfallBox, range: TimeRange, nanos: number): Pixels {
  return (box.nameWidth + ((nanos - range.start) / (range.end - range.start)) * (box.width - box.nameWidth)) as Pixels;
}

/** Time at a horizontal place. */
export function timeAt(box: WaterfallBox, range: TimeRange, x: number): Nanos {
  return (range.start + ((x - box.nameWidth) / (box.width - box.nameWidth)) * (range.end - range.start)) as Nanos;
}

/** Vertical place of the upper edge of a row. */
export function yOf(view: WaterfallView, row: RowIndex): Pixels {
  return (RULER_HEIGHT + (row - view.topRow) * ROW_HEIGHT) as Pixels;
}

/** The number of whole rows that fit. */
export function rowsThatFit(box: WaterfallBox): number {
  return Math.max(1, Math.floor((box.height - RULER_HEIGHT) / ROW_HEIGHT));
}

/** The largest top row: the last row then stands at the lower edge. */
export function topRowMax(box: WaterfallBox, rows: number): number {
  return Math.max(0, rows - (box.height - RULER_HEIGHT) / ROW_HEIGHT);
}

/** The first row on the screen and the one after the last, including partly visible rows. */
export function rowsOnScreen(view: WaterfallView, box: WaterfallBox, rows: number): readonly [RowIndex, RowIndex] {
  const first = clamp(Math.floor(view.topRow), 0, rows);
  const last = clamp(Math.ceil(view.topRow + (box.height - RULER_HEIGHT) / ROW_HEIGHT), first, rows);
  return [first as RowIndex, last as RowIndex];
}

/** The top row that brings a row onto the screen with the least movement, two rows away from the edges. */
export function topRowShowing(view: WaterfallView, box: WaterfallBox, rows: number, row: RowIndex): number {
  const fit = rowsThatFit(box);
  const margin = Math.min(2, Math.floor((fit - 1) / 2));
  const lowest = row - fit + 1 + margin;
  const highest = row - margin;
  return clamp(clamp(view.topRow, lowest, highest), 0, topRowMax(box, rows));
}

/** Left edge of the fold mark of a span. */
export function indentOf(depth: number, nameWidth: number): Pixels {
  const levels = Math.floor((nameWidth * INDENT_SHARE_MAX) / INDENT);
  return (8 + Math.min(depth, levels) * INDENT) as Pixels;
}

/** The item under a point. */
export type WaterfallHit =
  | { readonly zone: 'ruler' }
  | { readonly zone: 'fold' | 'name' | 'timeline'; readonly row: RowIndex; readonly span: SpanIndex }
  | { readonly zone: 'nothing' };

/** Finds the item under a point of the box. */
export function hitWaterfall(tree: Tree, rows: Uint32Array, view: WaterfallView, box: WaterfallBox, x: number, y: number): WaterfallHit {
  if (x < 0 || y < 0 || x >= box.width || y >= box.height) return { zone: 'nothing' };
  if (y < RULER_HEIGHT) return x < box.nameWidth ? { zone: 'nothing' } : { zone: 'ruler' };
  const row = Math.floor(view.topRow + (y - RULER_HEIGHT) / ROW_HEIGHT);
  if (row < 0 || row >= rows.length) return { zone: 'nothing' };
  const span = at(rows, row) as SpanIndex;
  const found = { row: row as RowIndex, span };
  if (x >= box.nameWidth) return { zone: 'timeline', ...found };
  const mark = indentOf(at(tree.spans.depth, span), box.nameWidth);
  const onMark = at(tree.spans.subtree, span) > 0 && x >= mark - 4 && x < mark + INDENT + 4;
  return { zone: onMark ? 'fold' : 'name', ...found };
}

/** The times of the axis' ticks inside the range, and their distance. */
export function ticksOf(range: TimeRange, width: number): { readonly step: Nanos; readonly times: readonly Nanos[] } {
  // A label needs about 64 pixels.
  const step = tickStep((range.end - range.start) as Nanos, Math.max(1, Math.floor(width / 64)));
  const times: Nanos[] = [];
  // Count from the first tick: for a narrow range 56 years away, a tick's number plus one rounds to the same number.
  const first = Math.ceil(range.start / step);
  for (let tick = 0; tick <= (range.end - range.start) / step && (first + tick) * step <= range.end; tick++) {
    times.push(((first + tick) * step) as Nanos);
  }
  return { step, times };
}

/**
 * The pixels of the time axis that children of a span cover: `coverage[x]` is how many children are open at pixel `x`.
 *
 * Each child adds a difference (+1 at its start, -1 at its end), and one pass sums them, so a parent of 100,000 children costs one
 * step a child and one a pixel, whatever their widths.
 */
export function childCoverage(tree: Tree, span: SpanIndex, range: TimeRange, coverage: Int32Array): void {
  coverage.fill(0);
  const width = coverage.length - 1;
  const scale = width / (range.end - range.start);
  const end = span + at(tree.spans.subtree, span) + 1;
  for (let child = span + 1; child < end; child += at(tree.spans.subtree, child) + 1) {
    const start = at(tree.spans.startNanos, child);
    const left = (start - range.start) * scale;
    const right = (start + at(tree.spans.durationNanos, child) - range.start) * scale;
    if (right <= 0 || left >= width) continue;
    const from = Math.max(0, Math.round(left));
    const to = Math.min(width, Math.round(right));
    coverage[from] = at(coverage, from) + 1;
    coverage[to] = at(coverage, to) - 1;
  }
  for (let x = 1; x <= width; x++) coverage[x] = at(coverage, x) + at(coverage, x - 1);
}

/**
 * The average number of operations without children in flight, for each of `width` slices of the range.
 * Partial slices count in proportion, so that zooming only changes the resolution.
 */
export function operationsInFlight(tree: Tree, range: TimeRange, width: number): Float64Array {
  // `slope` holds differences at starts and ends for whole slices, `part` the coverage of partial ones.
  const slope = new Float64Array(width + 1);
  const part = new Float64Array(width + 1);
  const scale = width / (range.end - range.start);
  for (let span = 0; span < tree.spans.parent.length; span++) {
    if (at(tree.spans.subtree, span) > 0) continue;
    const left = clamp((at(tree.spans.startNanos, span) - range.start) * scale, 0, width);
    const right = clamp((at(tree.spans.startNanos, span) + at(tree.spans.durationNanos, span) - range.start) * scale, 0, width);
    const from = Math.floor(left);
    const to = Math.floor(right);
    if (from === to) {
      part[from] = at(part, from) + right - left;
      continue;
    }
    part[from] = at(part, from) + from + 1 - left;
    part[to] = at(part, to) + right - to;
    slope[from + 1] = at(slope, from + 1) + 1;
    slope[to] = at(slope, to) - 1;
  }
  const inFlight = new Float64Array(width);
  let open = 0;
  for (let x = 0; x < width; x++) {
    open += at(slope, x);
    inFlight[x] = open + at(part, x);
  }
  return inFlight;
}
