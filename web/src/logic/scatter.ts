/** Geometry of the plot of traces: start to the right, duration upwards. Sizes in CSS pixels. */
import type { TraceRow } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';
import { clamp } from '../base/math';
import { formatDuration, formatTick, tickStep } from './format';
import { startOf, type TracesBox } from './traces-search';

/** The room for labels around the dots. */
export const MARGIN = { left: 54, right: 14, top: 10, bottom: 22 } as const;

export interface PlotSize {
  readonly width: number;
  readonly height: number;
}

/** What the axes show. */
export interface Scatter {
  readonly from: Micros;
  readonly to: Micros;
  readonly low: Nanos;
  readonly high: Nanos;
  /** Whether durations stand on a log scale. */
  readonly isLog: boolean;
}

/** A wider range of durations stands on a log scale: on a linear one, more than half of the traces would lie on the lowest 5%. */
const LINEAR_RATIO_MAX = 20;
/** Shorter traces lie on the lower edge: their decades would take the room of all others. */
const SHORTEST: number = 1000;
/** Air between the outermost dots and the edges, as a share of the axis. */
const AIR = 0.04;
const TIME_MICROS_MIN = 1e6;

/** How far the traces reach: the smallest box that holds all. Without traces it has no bounds. */
export function extentOf(traces: readonly TraceRow[]): TracesBox {
  if (traces.length === 0) return { start: null, end: null, min: null, max: null };
  let [start, end, min, max] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const trace of traces) {
    start = Math.min(start, startOf(trace));
    end = Math.max(end, startOf(trace));
    min = Math.min(min, trace.wallNanos);
    max = Math.max(max, trace.wallNanos);
  }
  return { start: start as Micros, end: end as Micros, min: min as Nanos, max: max as Nanos };
}

/** Axes over all traces; where a rectangle is selected, over the rectangle. */
export function scatterOf(traces: readonly TraceRow[], box: TracesBox): Scatter {
  const extent = extentOf(traces);
  const [from, to] = timeAxis(box.start ?? extent.start ?? 0, box.end ?? extent.end ?? 0, box);
  const low = Math.max(box.min ?? extent.min ?? 0, SHORTEST);
  const high = Math.max(box.max ?? extent.max ?? 0, low * 1.1);
  const isLog = high / low > LINEAR_RATIO_MAX;
  const [bottom, top] = isLog ? padded(Math.log(low), Math.log(high), box.min, box.max) : padded(low, high, box.min, box.max);
  return {
    from: from as Micros,
    to: to as Micros,
    low: Math.max(0, isLog ? Math.exp(bottom) : bottom) as Nanos,
    high: (isLog ? Math.exp(top) : top) as Nanos,
    isLog,
  };
}

/** At least a second, unless the rectangle is shorter. */
function timeAxis(from: number, to: number, { start, end }: TracesBox): readonly [number, number] {
  const missing = Math.max(0, TIME_MICROS_MIN - (to - from));
  const [low, high] = [from - (start === null ? missing / 2 : 0), to + (end === null ? missing / 2 : 0)];
  return padded(low, Math.max(high, low + 1), start, end);
}

/** A range with air at the ends that no rectangle bounds. */
function padded(low: number, high: number, lowBound: number | null, highBound: number | null): [number, number] {
  const air = (high - low) * AIR;
  return [low - (lowBound === null ? air : 0), high + (highBound === null ? air : 0)];
}

const innerWidth = (size: PlotSize) => Math.max(1, size.width - MARGIN.left - MARGIN.right);
const innerHeight = (size: PlotSize) => Math.max(1, size.height - MARGIN.top - MARGIN.bottom);

/** Horizontal place of a start. */
export function xOf(plot: Scatter, size: PlotSize, start: number): number {
  return MARGIN.left + ((start - plot.from) / (plot.to - plot.from)) * innerWidth(size);
}

/** Vertical place of a duration; one off the axis lies on its end. */
export function yOf(plot: Scatter, size: PlotSize, nanos: number): number {
  const on = clamp(nanos, plot.low, plot.high);
  const share = plot.isLog ? Math.log(on / plot.low) / Math.log(plot.high / plot.low) : (on - plot.low) / (plot.high - plot.low);
  return MARGIN.top + (1 - share) * innerHeight(size);
}

function startAt(plot: Scatter, size: PlotSize, x: number): Micros {
  return (plot.from + ((x - MARGIN.left) / innerWidth(size)) * (plot.to - plot.from)) as Micros;
}

function durationAt(plot: Scatter, size: PlotSize, y: number): Nanos {
  const share = 1 - (y - MARGIN.top) / innerHeight(size);
  return (plot.isLog ? plot.low * (plot.high / plot.low) ** share : plot.low + share * (plot.high - plot.low)) as Nanos;
}

/** A trace in the plot. */
export interface Dot {
  readonly trace: TraceRow;
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

const RADIUS_MAX = 8;

/** The area of a dot grows with the digits of its number of spans. */
function radiusOf(spans: number): number {
  return Math.min(RADIUS_MAX, 2.6 + 1.5 * Math.log10(Math.max(1, spans)));
}

/** The dots; those with errors come last, so that they lie on top. */
export function dotsOf(traces: readonly TraceRow[], plot: Scatter, size: PlotSize): readonly Dot[] {
  const dots = traces.map((trace) => ({
    trace,
    x: xOf(plot, size, startOf(trace)),
    y: yOf(plot, size, trace.wallNanos),
    radius: radiusOf(trace.spans),
  }));
  return [...dots.filter(({ trace }) => trace.errors === 0), ...dots.filter(({ trace }) => trace.errors > 0)];
}

/** A pointer this close to the edge of a dot means it: the least size of a target is 24 pixels. */
const REACH = 9;

/** The dot under the pointer; of several, the one whose edge is nearest. */
export function dotAt(dots: readonly Dot[], x: number, y: number): Dot | null {
  let [best, least] = [null as Dot | null, REACH];
  for (const dot of dots) {
    const distance = Math.max(0, Math.hypot(dot.x - x, dot.y - y) - dot.radius);
    if (distance <= least) [best, least] = [dot, distance];
  }
  return best;
}

/** A pressed pointer, from where to where. */
export interface Drag {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}

/** A drag that moves less than this along an axis does not mean that axis. */
const DRAG_MIN = 6;

/** The rectangle of a drag in the plot: an axis that it does not mean is covered whole. `null` if it means none. */
export function rectangleOf(drag: Drag, size: PlotSize): Drag | null {
  const edges = { x0: MARGIN.left, x1: MARGIN.left + innerWidth(size), y0: MARGIN.top, y1: MARGIN.top + innerHeight(size) };
  const isTime = Math.abs(drag.x1 - drag.x0) >= DRAG_MIN;
  const isDuration = Math.abs(drag.y1 - drag.y0) >= DRAG_MIN;
  if (!isTime && !isDuration) return null;
  const along = (a: number, b: number, low: number, high: number) =>
    [clamp(Math.min(a, b), low, high), clamp(Math.max(a, b), low, high)] as const;
  const [x0, x1] = isTime ? along(drag.x0, drag.x1, edges.x0, edges.x1) : [edges.x0, edges.x1];
  const [y0, y1] = isDuration ? along(drag.y0, drag.y1, edges.y0, edges.y1) : [edges.y0, edges.y1];
  // A drag in the margin alone.
  return x1 - x0 < 1 || y1 - y0 < 1 ? null : { x0, y0, x1, y1 };
}

/** What a rectangle selects. A side on the edge of the plot keeps the bound that it had, or has none. */
export function boxOfRectangle({ x0, y0, x1, y1 }: Drag, plot: Scatter, size: PlotSize, before: TracesBox): TracesBox {
  const isAt = (place: number, edge: number) => Math.abs(place - edge) < 1;
  return {
    start: isAt(x0, MARGIN.left) ? before.start : (Math.floor(startAt(plot, size, x0)) as Micros),
    end: isAt(x1, MARGIN.left + innerWidth(size)) ? before.end : (Math.ceil(startAt(plot, size, x1)) as Micros),
    min: isAt(y1, MARGIN.top + innerHeight(size)) ? before.min : durationAt(plot, size, y1),
    max: isAt(y0, MARGIN.top) ? before.max : durationAt(plot, size, y0),
  };
}

/** A line across the plot, with its label. */
export interface Tick {
  readonly place: number;
  readonly label: string;
}

const MICRO = 1e3;
const MILLI = 1e6;
const SECOND = 1e9;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Round durations of a log scale, and those to add if there is room. Above a second they are those of a clock. */
const UNITS: readonly (readonly [string, number, readonly number[], readonly number[]])[] = [
  ['µs', MICRO, [1, 10, 100], [2, 5, 20, 50, 200, 500]],
  ['ms', MILLI, [1, 10, 100], [2, 5, 20, 50, 200, 500]],
  ['s', SECOND, [1, 10], [2, 5, 20]],
  ['m', MINUTE, [1, 10], [2, 5, 20]],
  ['h', HOUR, [1, 10], [2, 5, 20]],
];
/** The least room for a line: on a log scale, few durations are round, and they lie at uneven distances. */
const TICK_HEIGHT = { log: 22, linear: 36 } as const;

/** Lines at round durations. */
export function durationTicks(plot: Scatter, size: PlotSize): readonly Tick[] {
  const most = Math.max(2, Math.floor(innerHeight(size) / (plot.isLog ? TICK_HEIGHT.log : TICK_HEIGHT.linear)));
  if (!plot.isLog) {
    const step = tickStep((plot.high - plot.low) as Nanos, most);
    const first = Math.ceil(plot.low / step);
    const count = Math.max(0, Math.floor(plot.high / step) - first + 1);
    return Array.from({ length: count }, (_, index) => (first + index) * step).map((nanos) => ({
      place: yOf(plot, size, nanos),
      label: formatTick(nanos, step),
    }));
  }
  const round = (hasFine: boolean) =>
    UNITS.flatMap(([unit, worth, coarse, fine]) =>
      (hasFine ? [...coarse, ...fine] : coarse).map((count) => ({ nanos: count * worth, label: `${count}${unit}` })),
    ).filter(({ nanos }) => nanos >= plot.low && nanos <= plot.high);
  const all = round(true).sort((a, b) => a.nanos - b.nanos);
  const chosen = all.length <= most ? all : round(false);
  const every = Math.ceil(chosen.length / most);
  return chosen.filter((_, index) => index % every === 0).map(({ nanos, label }) => ({ place: yOf(plot, size, nanos), label }));
}

const SECOND_MICROS = 1e6;
const MINUTE_MICROS = 60 * SECOND_MICROS;
const DAY_MICROS = 86_400 * SECOND_MICROS;
const TIME_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((millis) => millis * 1000),
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND_MICROS),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * MINUTE_MICROS),
  ...[1, 2, 5, 10, 30, 90, 365].map((days) => days * DAY_MICROS),
];
/** The room for a label of the axis: hours and minutes, seconds, milliseconds. */
const tickWidth = (step: number): number => (step >= MINUTE_MICROS ? 60 : step >= SECOND_MICROS ? 76 : 96);

/** Lines at round times of the clock that is `zoneMinutes` behind UTC, as `Date.getTimezoneOffset` has it. */
export function timeTicks(plot: Scatter, size: PlotSize, zoneMinutes: number): readonly Tick[] {
  const zone = zoneMinutes * MINUTE_MICROS;
  const pixel = (plot.to - plot.from) / innerWidth(size);
  const step = TIME_STEPS.find((candidate) => candidate >= pixel * tickWidth(candidate)) ?? 1000 * DAY_MICROS;
  const first = Math.ceil((plot.from - zone) / step);
  const count = Math.max(0, Math.floor((plot.to - zone) / step) - first + 1);
  return Array.from({ length: count }, (_, index) => ((first + index) * step + zone) as Micros).map((micros) => ({
    place: xOf(plot, size, micros),
    label: formatClock(micros, zoneMinutes, step),
  }));
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A moment among others `step` microseconds apart: `14:05`, `14:05:09`, `14:05:09.250`, and `28 Nov` at midnight. */
export function formatClock(micros: Micros, zoneMinutes: number, step: number): string {
  const date = new Date((micros - zoneMinutes * MINUTE_MICROS) / 1000);
  const clock = date.toISOString().slice(11, 23);
  if (step >= MINUTE_MICROS && clock === '00:00:00.000') return formatDay(micros, zoneMinutes);
  if (step >= MINUTE_MICROS) return clock.slice(0, 5);
  return step >= SECOND_MICROS ? clock.slice(0, 8) : clock;
}

/** `28 Nov`. */
export function formatDay(micros: Micros, zoneMinutes: number): string {
  const date = new Date((micros - zoneMinutes * MINUTE_MICROS) / 1000);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** Shorter ranges are written with milliseconds. */
const SHORT_RANGE_MICROS = 20 * SECOND_MICROS;

/** A range of starts in words: `28 Nov 14:05:09–14:06:30`, `since 28 Nov 14:05:09`. */
export function startsInWords({ start, end }: Pick<TracesBox, 'start' | 'end'>, zoneMinutes: number): string {
  const step = start !== null && end !== null && end - start < SHORT_RANGE_MICROS ? 1 : SECOND_MICROS;
  const whole = (micros: Micros) => `${formatDay(micros, zoneMinutes)} ${formatClock(micros, zoneMinutes, step)}`;
  if (start === null) return end === null ? 'at any time' : `until ${whole(end)}`;
  if (end === null) return `since ${whole(start)}`;
  const isOneDay = formatDay(start, zoneMinutes) === formatDay(end, zoneMinutes);
  return `${whole(start)}–${isOneDay ? formatClock(end, zoneMinutes, step) : whole(end)}`;
}

/** A range of durations in words: `204ms–1.52s`, `at least 204ms`. */
export function durationsInWords({ min, max }: Pick<TracesBox, 'min' | 'max'>): string {
  if (min === null) return max === null ? 'any duration' : `at most ${formatDuration(max)}`;
  return max === null ? `at least ${formatDuration(min)}` : `${formatDuration(min)}–${formatDuration(max)}`;
}
