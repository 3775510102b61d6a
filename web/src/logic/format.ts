/**
 * Numbers for people, as `longpole_model::units` writes them in the terminal: `units.gen.json` holds what it writes, and the tests compare.
 *
 * A number and its unit are one word: `4m12.3s`, `39%`, `12.4MB`. Commas group the digits of counts: `61,204 samples`.
 */

import type { Exit, NanosRange } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';

const MICRO = 1e3;
const MILLI = 1e6;
const SECOND = 1e9;
const MINUTE = 60 * SECOND;
/** The non-breaking space between a count and its noun. */
const GAP = '\u00a0';

/** The unit that numbers to compare are written in. */
type TimeUnit = 'days' | 'hours' | 'minutes' | 'seconds' | 'millis' | 'micros' | 'nanos';

/** The unit in which the largest of a column reads best. */
function timeUnitOf(largestNanos: number): TimeUnit {
  const nanos = Math.abs(largestNanos);
  if (nanos >= 100 * 60 * MINUTE) return 'days';
  if (nanos >= 100 * MINUTE) return 'hours';
  if (nanos >= MINUTE) return 'minutes';
  if (nanos >= SECOND) return 'seconds';
  if (nanos >= MILLI) return 'millis';
  return nanos === 0 || nanos >= MICRO ? 'micros' : 'nanos';
}

const two = (number: number) => String(number).padStart(2, '0');

/** `number / worth` with some decimals, halves rounded up. */
function decimal(number: number, worth: number, decimals: number): string {
  const scale = 10 ** decimals;
  const parts = Math.floor((number + worth / scale / 2) / (worth / scale));
  return decimals === 0 ? String(parts) : `${Math.floor(parts / scale)}.${String(parts % scale).padStart(decimals, '0')}`;
}

/** Shorter times would have a single digit in this unit; they are in the smaller one. */
const LEAST: Readonly<Record<TimeUnit, readonly [nanos: number, smaller: TimeUnit]>> = {
  days: [SECOND, 'seconds'],
  hours: [SECOND, 'seconds'],
  minutes: [SECOND, 'seconds'],
  seconds: [SECOND / 10, 'millis'],
  millis: [MILLI, 'micros'],
  micros: [MICRO, 'nanos'],
  nanos: [0, 'nanos'],
};

/** Times that round up to one of the next larger unit, and that one. */
const ROUNDS_UP: Partial<Record<TimeUnit, readonly [from: number, until: number, text: string]>> = {
  seconds: [59.995 * SECOND, MINUTE, '1m00.0s'],
  millis: [999.95 * MILLI, SECOND, '1.00s'],
  micros: [999.5 * MICRO, MILLI, '1.0ms'],
};

/** A time in this unit; one that would have a single digit beside exact ones, `0.01s`, in the smaller one: `13.5ms`. */
function showIn(unit: TimeUnit, signed: number): string {
  const sign = signed < 0 ? '-' : '';
  const nanos = Math.abs(Math.round(signed));
  const [least, smaller] = LEAST[unit];
  if (nanos > 0 && nanos < least) return showIn(smaller, signed);
  const roundsUp = ROUNDS_UP[unit];
  if (roundsUp !== undefined && nanos >= roundsUp[0] && nanos < roundsUp[1]) return sign + roundsUp[2];
  const seconds = Math.floor((nanos + SECOND / 2) / SECOND);
  const days = Math.floor(seconds / 86_400);
  if (unit === 'days' && days > 0) return `${sign}${days}d${two(Math.floor(seconds / 3600) % 24)}h`;
  if ((unit === 'days' || unit === 'hours') && seconds >= 3600) {
    return `${sign}${Math.floor(seconds / 3600)}h${two(Math.floor(seconds / 60) % 60)}m${two(seconds % 60)}s`;
  }
  if (unit === 'days' || unit === 'hours' || unit === 'minutes') {
    const tenths = Math.floor((nanos + SECOND / 20) / (SECOND / 10));
    const rest = tenths % 600;
    if (tenths < 600) return `${sign}${Math.floor(rest / 10)}.${rest % 10}s`;
    return `${sign}${Math.floor(tenths / 600)}m${two(Math.floor(rest / 10))}.${rest % 10}s`;
  }
  if (unit === 'seconds') return `${sign}${decimal(nanos, SECOND, 2)}s`;
  if (unit === 'millis') return `${sign}${decimal(nanos, MILLI, 1)}ms`;
  return unit === 'micros' ? `${sign}${decimal(nanos, MICRO, 0)}µs` : `${sign}${nanos}ns`;
}

/** A duration in the unit that it reads best in: `340ns`, `7µs`, `12.3ms`, `2.38s`, `4m12.3s`, `2h40m12s`, `5d03h`. */
export function formatDuration(nanos: number): string {
  return showIn(timeUnitOf(Math.round(nanos)), nanos);
}

/** The ends of a range in the unit of the high one. */
function ends(range: NanosRange): readonly [string, string] {
  const unit = timeUnitOf(range.high);
  return [showIn(unit, range.low), showIn(unit, range.high)];
}

/** A range: one number if its ends print the same, else `0.80s–2.41s`. */
export function formatRange(range: NanosRange): string {
  const [low, high] = ends(range);
  return low === high ? high : `${low}–${high}`;
}

/** A range as words inside a sentence: `2.41s`, `0.80s to 2.41s`, `up to 2.41s`. */
export function formatRangeInWords(range: NanosRange): string {
  const [low, high] = ends(range);
  if (low === high) return high;
  return range.low === 0 ? `up to ${high}` : `${low} to ${high}`;
}

/** A share between 0 and 1 in whole percent: `40%`; `<1%` where it is there but rounds to nothing. */
export function formatShare(share: number): string {
  if (!(share > 0)) return '0%';
  return share < 0.005 ? '<1%' : `${Math.floor(share * 100 + 0.5)}%`;
}

/** A number that need not be whole, such as a mean: `2.3`. */
export function formatMean(number: number): string {
  return number.toFixed(1);
}

/** The size of a change with its sign, a minus that a screen reader reads: `+1.20s`, `−3ms`. */
export function signed(change: number, size: string): string {
  return `${change < 0 ? '−' : '+'}${size}`;
}

/** `61,204`. */
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A number of bytes in decimal units: `840B`, `31.4MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes}B`;
  const [unit, worth]: [string, number] =
    bytes < 999_500 ? ['kB', 1e3] : bytes < 999_500_000 ? ['MB', 1e6] : bytes < 999_500_000_000 ? ['GB', 1e9] : ['TB', 1e12];
  return `${decimal(bytes, worth, bytes < 99.95 * worth ? 1 : 0)}${unit}`;
}

/** `1 span`, `41 spans`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)}${GAP}${count === 1 ? one : many}`;
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: 'HUP',
  2: 'INT',
  3: 'QUIT',
  4: 'ILL',
  6: 'ABRT',
  7: 'BUS',
  8: 'FPE',
  9: 'KILL',
  10: 'USR1',
  11: 'SEGV',
  12: 'USR2',
  13: 'PIPE',
  14: 'ALRM',
  15: 'TERM',
};

/** How a command ended: `exit 0`, `killed by SIGKILL`. */
export function formatExit(exit: Exit): string {
  if (exit.signal !== null) {
    const name = SIGNALS[exit.signal];
    return name === undefined ? `killed by signal ${exit.signal}` : `killed by SIG${name}`;
  }
  return exit.code === null ? 'exit unknown' : `exit ${exit.code}`;
}

/** Whether the command succeeded. */
export function succeeded(exit: Exit): boolean {
  return exit.signal === null && exit.code === 0;
}

const UNQUOTED = /^[\w@%+=:,./-]+$/;

/** A command as typed in a shell. */
export function formatCommand(command: readonly string[]): string {
  return command.map((word) => (UNQUOTED.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}

/** The short command: its program without the folder, and its arguments. */
export function shortCommand(command: readonly string[]): string {
  const [program = '', ...words] = command;
  const name = program.split('/').findLast((part) => part !== '') ?? program;
  // A script in an argument may have lines; here is one.
  return formatCommand(command.length === 0 ? [] : [name, ...words]).replaceAll(/\s+/g, ' ');
}

/** How long ago: `just now`, `8 min ago`, `3 h ago`, `yesterday`, `5 days ago`. Both times are Unix milliseconds. */
export function formatAge(thenMillis: number, nowMillis: number): string {
  const minutes = Math.floor((nowMillis - thenMillis) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes}${GAP}min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}${GAP}h ago`;
  const days = Math.floor(hours / 24);
  return days === 1 ? 'yesterday' : `${days}${GAP}days ago`;
}

/** Unix nanoseconds as milliseconds for JavaScript's dates. */
export function unixMillis(unixNano: bigint): number {
  return Number(unixNano / 1_000_000n);
}

/** Unix nanoseconds as microseconds. */
export function unixMicros(unixNano: bigint): Micros {
  return Number(unixNano / 1000n) as Micros;
}

/** The end of a long file name: `…/deploy/src/archive.rs`. */
export function shortPath(path: string, characters: number): string {
  if (path.length <= characters) return path;
  const tail = path.slice(path.length - characters + 1);
  const slash = tail.indexOf('/');
  return `…${slash > 0 && slash < tail.length - 1 ? tail.slice(slash) : tail}`;
}

/** The kept end of a name starts at the first separator in its last characters; without a separator, it is the last few characters. */
const NAME_END_MAX = 17;
const NAME_END = 10;

/** A name in two parts; the first shortens if there is no room, so both ends stay visible. */
export function splitName(name: string): readonly [string, string] {
  if (name.length <= NAME_END_MAX) return [name, ''];
  const last = name.slice(-NAME_END_MAX);
  const separator = last.search(/[\s/:.]/);
  // A space may go with the first part; other separators belong to the end.
  const place = separator < 0 ? NAME_END_MAX - NAME_END : separator + Number(/\s/.test(last[separator] ?? ''));
  const end = last.slice(place);
  return [name.slice(0, name.length - end.length), end];
}

/** The pieces of a name between which a line may break: `pulumirpc.`, `ResourceProvider/`, `Create`. */
export function breakablePieces(name: string): readonly string[] {
  return name.split(/(?<=[/.:$](?![/.:$]))/);
}

/** `src/archive.rs:42`, without the line if it is unknown. */
export function formatPlace(file: string, line: number): string {
  if (file === '') return '';
  return line > 0 ? `${file}:${line}` : file;
}

/** A JSON value on one line. */
export function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Ticks of an axis at round times: their distance is 1, 2 or 5 times a power of ten, or a round number of minutes. */
export function tickStep(spanNanos: Nanos, ticksMax: number): Nanos {
  const wanted = spanNanos / Math.max(1, ticksMax);
  if (wanted > 30 * SECOND) {
    const steps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400].map((seconds) => seconds * SECOND);
    const step = steps.find((candidate) => candidate >= wanted);
    if (step !== undefined) return step as Nanos;
  }
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= wanted) ?? 10;
  return (factor * power) as Nanos;
}

/** A time on an axis with ticks `step` apart, with just enough decimals to distinguish neighbours. */
export function formatTick(nanos: number, step: Nanos): string {
  if (nanos === 0) return '0';
  if (Math.abs(nanos) >= MINUTE && step >= SECOND) {
    const seconds = Math.round(nanos / SECOND);
    return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`;
  }
  const largest = Math.abs(nanos);
  const [unit, name] = largest >= SECOND ? [SECOND, 's'] : largest >= MILLI ? [MILLI, 'ms'] : largest >= MICRO ? [MICRO, 'µs'] : [1, 'ns'];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(nanos / unit).toFixed(Math.min(decimals, 9))}${name}`;
}
