/** The answer of a recording: what to fix first, what it saves, and which code is behind it. */
import type { Answer, NanosRange, Pole, TopFrame } from '../api/types';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

/** The context that tells a pole from others of its name; `null` where it would only repeat the name. */
export function contextOf(pole: { readonly name: string; readonly context: string | null }): string | null {
  return pole.context === pole.name || pole.context === '' ? null : pole.context;
}

/** Whether fixing it gains anything that can be seen: a thousandth of the run. */
export function isWorthwhile(range: NanosRange, wallNanos: Nanos): boolean {
  return range.high > 0 && ratio(range.high, wallNanos) >= 0.001;
}

/** The wall time left when a saving has come true. */
export function wallAfter(range: NanosRange, wallNanos: Nanos): NanosRange {
  return {
    low: Math.max(0, wallNanos - range.high) as Nanos,
    high: Math.max(0, wallNanos - range.low) as Nanos,
  };
}

/** Why a pole is long, with the function that is named in it, if there is one, as a piece of its own. */
export interface ReasonPieces {
  readonly before: string;
  readonly frame: TopFrame | null;
  readonly after: string;
}

/** Takes the sentence apart where it names the function that stands first among those of the pole. */
export function reasonPieces(pole: Pole): ReasonPieces {
  const { text } = pole.reason;
  const first = pole.topFrames[0];
  const place = first === undefined ? -1 : text.indexOf(first.function);
  if (first === undefined || place < 0) return { before: text, frame: null, after: '' };
  return { before: text.slice(0, place), frame: first, after: text.slice(place + first.function.length) };
}

/** Whether a recording has an answer worth a line of its own. */
export function hasAnswer(answer: Answer | null, wallNanos: Nanos): answer is Answer {
  return answer !== null && isWorthwhile(answer.savesIfZero, wallNanos);
}
