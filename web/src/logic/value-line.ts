/** Values of profiles over time: the points of a line, in words and on the axes of `scatter.ts`. */
import type { ProfileValues } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';
import { formatBytes, formatCount, formatDuration, unixMicros } from './format';
import { type Drag, formatClock, formatDay, MARGIN, type PlotSize, rectangleOf, type Scatter, xOf } from './scatter';

/** How values of a type are written. */
export interface ValueWords {
  /** Beside the axis. */
  readonly short: (value: number) => string;
  /** In a sentence. */
  readonly whole: (value: number) => string;
  /** What stands behind the name of the type: `, in CPUs`. */
  readonly behind: string;
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
/** From here on, the axis has no room for all digits. */
const COMPACT_MIN = 1e5;
const WHOLE_MIN = 100;
/** Numbers below the first have one digit; those below the second have no room. */
const SHORT_MIN = 1e-3;
const SHOWN_MIN = 1e-4;

/** `1.2M`, `12,345`, `3.25`, `0.042`. */
function formatNumber(value: number): string {
  if (value >= COMPACT_MIN) return COMPACT.format(value);
  if (value >= WHOLE_MIN) return formatCount(value);
  if (value > 0 && value < SHOWN_MIN) return `<${SHOWN_MIN}`;
  return String(Number(value.toPrecision(value < SHORT_MIN ? 1 : value < 1 ? 2 : 3)));
}

/** A state has its unit; CPU time of a second is a number of CPUs; all others are so much a second. */
export function valueWords({ sampleType, unit, isState }: Pick<ProfileValues, 'sampleType' | 'unit' | 'isState'>): ValueWords {
  const isTime = unit === 'nanoseconds';
  if (isTime && !isState && sampleType === 'cpu') {
    const whole = (value: number) => `${formatNumber(value)} CPU${formatNumber(value) === '1' ? '' : 's'}`;
    return { short: formatNumber, whole, behind: ', in CPUs' };
  }
  const nanos = isState ? 1 : 1e9;
  const ofTime = (value: number) => formatDuration(value * nanos);
  const short = isTime ? ofTime : unit === 'bytes' ? (value: number) => formatBytes(Math.round(value)) : formatNumber;
  return isState ? { short, whole: short, behind: '' } : { short, whole: (value) => `${short(value)} a second`, behind: ', per second' };
}

/** A step that has a value. */
export interface ValuePoint {
  /** When the step begins, and its middle. */
  readonly begin: Micros;
  readonly middle: Micros;
  readonly value: number;
}

/** Fewer distances do not show which one is usual. */
const DISTANCES_MIN = 3;
/** Steps further apart than this many usual distances have a gap between them. Profiles that come each step and a half are one or two apart. */
const GAP = 2;

/** SDKs send a profile every 15 seconds, so a step that ends now lacks one. Only in shorter steps, that one is a part that shows. */
const UNFINISHED_NANOS_MAX = 300e9;

/** Without what an unfinished step has so far: it would look like a drop. States are averages, which lack nothing. */
export function finished(values: ProfileValues, endsNow: boolean): ProfileValues {
  const { isState, fromUnixNano, toUnixNano, stepNanos, step, value } = values;
  const lastStep = Math.ceil(Number(toUnixNano - fromUnixNano) / stepNanos) - 1;
  if (!endsNow || isState || stepNanos > UNFINISHED_NANOS_MAX || step.at(-1) !== lastStep) return values;
  return { ...values, step: step.slice(0, -1), value: value.slice(0, -1) };
}

/** The points of the line, in pieces: between two pieces there are no profiles. Profiles may come less often than in each step. */
export function piecesOf({ fromUnixNano, stepNanos, step, value }: ProfileValues): readonly (readonly ValuePoint[])[] {
  const from = unixMicros(fromUnixNano);
  const length = stepNanos / 1000;
  const distances = step.slice(1).map((number, index) => number - (step[index] ?? 0));
  const usual = distances.length < DISTANCES_MIN ? 1 : ([...distances].sort((a, b) => a - b)[distances.length >> 1] ?? 1);
  const pieces: ValuePoint[][] = [];
  step.forEach((number, index) => {
    const begin = from + number * length;
    const point = { begin: begin as Micros, middle: (begin + length / 2) as Micros, value: value[index] ?? 0 };
    const piece = pieces.at(-1);
    if (piece === undefined || (distances[index - 1] ?? 0) > GAP * usual) pieces.push([point]);
    else piece.push(point);
  });
  return pieces;
}

/** A state that varies by a smaller part of itself is steady, and one that varies by a larger one needs no closer look. */
const CLOSER_MIN = 0.02;
const CLOSER_MAX = 0.5;

/** The axes: the whole time, and values from 0 to the highest. States that vary little show only the upper end, so that a leak is seen. */
export function axesOf({ fromUnixNano, toUnixNano, value, isState }: ProfileValues): Scatter {
  const high = Math.max(0, ...value) || 1;
  const varies = high - Math.min(...value);
  const isCloser = isState && varies >= CLOSER_MIN * high && varies * 2 <= CLOSER_MAX * high;
  const low = isCloser ? high - 2 * varies : 0;
  return { from: unixMicros(fromUnixNano), to: unixMicros(toUnixNano), low: low as Nanos, high: high as Nanos, isLog: false };
}

/** Place in `points` of the one that is nearest to a horizontal place. */
export function pointAt(points: readonly ValuePoint[], plot: Scatter, size: PlotSize, x: number): number {
  let [best, least] = [0, Infinity];
  points.forEach(({ middle }, index) => {
    const distance = Math.abs(xOf(plot, size, middle) - x);
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

/** A line where a version begins. */
export interface VersionMark {
  readonly x: number;
  /** The label; empty if it would lie on the one before. */
  readonly label: string;
  /** On which side of the line the label lies. */
  readonly side: 'left' | 'right';
}

/** Room for a character of a label, and beside it. */
const CHARACTER_WIDTH = 6.8;
const LABEL_GAP = 5;

/** The versions that begin in the time, with their labels where there is room. */
export function versionMarks(versions: ProfileValues['versions'], plot: Scatter, size: PlotSize): readonly VersionMark[] {
  let taken = 0;
  return versions.map(({ label, firstUnixNano }) => {
    const x = xOf(plot, size, unixMicros(firstUnixNano));
    const room = label.length * CHARACTER_WIDTH + 2 * LABEL_GAP;
    const side = x + room <= size.width || x - room < 0 ? 'right' : 'left';
    const [begin, end] = side === 'right' ? [x, x + room] : [x - room, x];
    if (begin < taken) return { x, label: '', side };
    taken = end;
    return { x, label, side };
  });
}

const MINUTE_MICROS = 60e6;

/** `28 Nov 14:05`, with seconds among moments less than a minute apart. */
export function momentInWords(micros: Micros, zoneMinutes: number, apartMicros: number): string {
  const clock = formatClock(micros, zoneMinutes, 1e6);
  return `${formatDay(micros, zoneMinutes)} ${apartMicros < MINUTE_MICROS ? clock : clock.slice(0, 5)}`;
}

/** A point in words: `28 Nov 14:05: 1.2 CPUs`. */
export function pointInWords({ begin, value }: ValuePoint, values: ProfileValues, zoneMinutes: number): string {
  return `${momentInWords(begin, zoneMinutes, values.stepNanos / 1000)}: ${valueWords(values).whole(value)}`;
}

/** What the line shows, for those who do not see it. */
export function lineInWords(what: string, points: readonly ValuePoint[], values: ProfileValues, zoneMinutes: number): string {
  const moment = (micros: Micros) => momentInWords(micros, zoneMinutes, values.stepNanos / 1000);
  const { whole } = valueWords(values);
  const highest = points.reduce<ValuePoint | undefined>(
    (best, point) => (best === undefined || point.value > best.value ? point : best),
    undefined,
  );
  const latest = points.at(-1);
  return [
    `${what} from ${moment(unixMicros(values.fromUnixNano))} to ${moment(unixMicros(values.toUnixNano))}`,
    ...(highest === undefined ? [] : [`highest ${whole(highest.value)} on ${moment(highest.begin)}`]),
    ...(latest === undefined ? [] : [`latest ${whole(latest.value)} on ${moment(latest.begin)}`]),
    ...values.versions.map(({ label, firstUnixNano }) => `${label} since ${moment(unixMicros(firstUnixNano))}`),
  ].join(', ');
}

/** What a drag from one horizontal place to another selects: the full height; `null` if it is too short. */
export function stripeOf(x0: number, x1: number, size: PlotSize): Drag | null {
  return rectangleOf({ x0, x1, y0: MARGIN.top, y1: MARGIN.top }, size);
}
