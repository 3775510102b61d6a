/** Numbers for people: each with its unit and three significant digits. */

import type { Exit, NanosRange } from '../api/types.gen';
import type { Nanos } from '../base/brand';

const MICRO = 1e3;
const MILLI = 1e6;
const SECOND = 1e9;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The non-breaking space between a number and its unit. */
const GAP = '\u00a0';

function threeDigits(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** `340 ns`, `12.3 µs`, `184 ms`, `2.41 s`, `1m51.4s`, `2h05m`. */
export function formatDuration(nanos: number): string {
  if (nanos < 0) return `−${formatDuration(-nanos)}`;
  if (nanos === 0) return `0${GAP}s`;
  if (nanos < MICRO) return `${Math.round(nanos)}${GAP}ns`;
  // Each limit lies where rounding would print 1000 of the smaller unit.
  if (nanos < 999.5 * MICRO) return `${threeDigits(nanos / MICRO)}${GAP}µs`;
  if (nanos < 999.5 * MILLI) return `${threeDigits(nanos / MILLI)}${GAP}ms`;
  if (nanos < 59.95 * SECOND) return `${threeDigits(nanos / SECOND)}${GAP}s`;
  if (nanos < HOUR - 0.05 * SECOND) {
    const tenths = Math.round(nanos / (SECOND / 10));
    return `${Math.floor(tenths / 600)}m${((tenths % 600) / 10).toFixed(1).padStart(4, '0')}s`;
  }
  const minutes = Math.round(nanos / MINUTE);
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, '0')}m`;
}

function unitOf(text: string): string | null {
  const parts = text.split(GAP);
  return parts.length === 2 ? (parts[1] ?? null) : null;
}

/** A range: one number if its ends print the same, else `0.80–2.41 s`. */
export function formatRange(range: NanosRange): string {
  const low = formatDuration(range.low);
  const high = formatDuration(range.high);
  if (low === high) return high;
  const unit = unitOf(high);
  if (range.low === 0) return `0–${high}`;
  return unit !== null && unit === unitOf(low) ? `${low.split(GAP)[0]}–${high}` : `${low}–${high}`;
}

/** A range as words inside a sentence: `2.41 s`, `0.80 to 2.41 s`, `up to 2.41 s`. */
export function formatRangeInWords(range: NanosRange): string {
  const low = formatDuration(range.low);
  const high = formatDuration(range.high);
  if (low === high) return high;
  if (range.low === 0) return `up to ${high}`;
  const unit = unitOf(high);
  return unit !== null && unit === unitOf(low) ? `${low.split(GAP)[0]} to ${high}` : `${low} to ${high}`;
}

/** A share between 0 and 1: `40 %`, `3.2 %`, `<0.1 %`. Never rounds to 0 % or 100 %, except for exactly 0 or 1. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent <= 0) return `0${GAP}%`;
  if (percent < 0.1) return `<0.1${GAP}%`;
  if (percent < 9.95) return `${percent.toFixed(1).replace(/\.0$/, '')}${GAP}%`;
  if (percent > 99.5 && percent < 100) return `>99${GAP}%`;
  return `${percent.toFixed(0)}${GAP}%`;
}

/** `61,204`. */
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `840 B`, `31.4 MB`: decimal units, as in the terminal. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : threeDigits(value)}${GAP}${units[unit]}`;
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
  return formatCommand(command.length === 0 ? [] : [name, ...words]);
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
  return `${(nanos / unit).toFixed(Math.min(decimals, 9))}${GAP}${name}`;
}
