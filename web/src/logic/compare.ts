/** Two runs of one command: which to compare, and the words for it. */
import type { Diff, OperationDiff, Recording, StateDiff } from '../api/types.gen';
import { formatDuration, formatMean, signed } from './format';

/** Whether the list has the end of a run. */
const hasEnded = ({ state, wallNanos }: Recording): boolean => state === 'sealed' && wallNanos > 0;

const sameCommand = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((word, index) => word === b[index]);

/** The runs of the same command, the oldest first; the recording itself is among them. */
export function runsOfCommand(recordings: readonly Recording[], recording: string): readonly Recording[] {
  const own = recordings.find((other) => other.recording === recording);
  if (own === undefined) return [];
  const same = recordings.filter((other) => hasEnded(other) && sameCommand(other.command, own.command));
  return [...same].sort((a, b) => (a.startUnixNano < b.startUnixNano ? -1 : 1));
}

/** The run of the same command before this one; `null` if there is none. */
export function runBefore(recordings: readonly Recording[], recording: string): Recording | null {
  const runs = runsOfCommand(recordings, recording);
  const place = runs.findIndex((other) => other.recording === recording);
  return place > 0 ? (runs[place - 1] ?? null) : null;
}

/** How the wall time of a run compares with those of the other runs of its command: whether a difference may be chance. */
export function placeAmongRuns(runs: readonly Recording[], recording: string): string {
  const own = runs.find((run) => run.recording === recording)?.wallNanos;
  const others = runs.filter((run) => run.recording !== recording).map(({ wallNanos }) => wallNanos as number);
  if (own === undefined || others.length < 2) return '';
  const [least, most] = [Math.min(...others), Math.max(...others)];
  const range = `${formatDuration(least)} to ${formatDuration(most)}`;
  if (own > most) return `${recording} took longer than all other runs (${range})`;
  return own < least
    ? `${recording} took less time than all other runs (${range})`
    : `${recording} is within the range of the other runs (${range})`;
}

/** From this factor on, a change is shown as a factor. */
const FACTOR_MIN = 10;

/** `+16.0%` of the time before, or `36× as long`. */
export function changeInWords(delta: number, before: number): string {
  if (before <= 0) return '';
  const factor = (before + delta) / before;
  if (factor >= FACTOR_MIN) return `${Math.round(factor)}× as long`;
  const percent = (delta / before) * 100;
  return signed(percent, `${formatMean(Math.abs(percent))}%`);
}

/** `+1.20s`, `−3ms`. */
export function signedDuration(nanos: number): string {
  return signed(nanos, formatDuration(Math.abs(nanos)));
}

/** `longer` or `shorter`; the difference as a length. */
export function differenceInWords(delta: number): string {
  if (delta === 0) return 'as long as';
  return `${formatDuration(Math.abs(delta))} ${delta > 0 ? 'longer' : 'shorter'} than`;
}

/** `more` or `less` than the other has; the difference as a length. */
export function sampledInWords(delta: number): string {
  if (delta === 0) return 'as much as';
  return `${formatDuration(Math.abs(delta))} ${delta > 0 ? 'more' : 'less'} than`;
}

/** What an operation is called: with its service where another one has an operation of the same name. */
export function nameOfOperation(operation: OperationDiff, all: readonly OperationDiff[]): string {
  const same = all.filter((other) => other.name === operation.name && other.resource === operation.resource);
  const resource = operation.resource === null ? '' : ` ${operation.resource}`;
  return same.length > 1 && operation.service !== ''
    ? `${operation.name}${resource} · ${operation.service}`
    : `${operation.name}${resource}`;
}

/** `×3 → ×4`, `new`, `gone`: what became of it beside its time. */
export function fateInWords({ fate, a, b }: OperationDiff): string {
  const times = (count: number): string => `×${count}`;
  const counts = [
    ...(a.count > 0 && b.count > 0 && a.count !== b.count ? [`${times(a.count)} → ${times(b.count)}`] : []),
    ...(fate !== 'kept' && a.count + b.count > 1 ? [times(a.count + b.count)] : []),
    ...(a.count === b.count && a.count > 1 ? [times(a.count)] : []),
  ];
  const word = fate === 'added' ? ['new'] : fate === 'removed' ? ['gone'] : [];
  return [...counts, ...word].join(' ');
}

/** `on-CPU +40.0ms in compress`. */
export function stateInWords({ text, deltaNanos, function: code }: StateDiff): string {
  return `${text} ${signedDuration(deltaNanos)}${code === null ? '' : ` in ${code}`}`;
}

/** The largest change, which the bars are drawn to. */
export function largestChange({ operations, truncated }: Diff): number {
  const changes = [...operations.map(({ deltaNanos }) => Math.abs(deltaNanos)), Math.abs(truncated.deltaNanos), 1];
  return Math.max(...changes);
}
