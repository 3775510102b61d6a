/** How well a text matches what somebody types in a hurry: `cmpr bun` finds `compress_bundle`. */

/** A word that stands in the text beats one whose letters only follow each other, with few gaps: long names have all letters somewhere. */
const WHOLE = 100;
const SCATTERED = 50;
const GAPS_MAX = 3;
const AT_START = 40;
const AT_WORD = 25;

const isLetter = (character: string | undefined): boolean => character !== undefined && /[\p{L}\p{N}]/u.test(character);

/** Whether a word of the text begins here: after no letter, or with a capital after a small one. */
function isWordStart(text: string, place: number): boolean {
  const before = text[place - 1];
  const here = text[place];
  return !isLetter(before) || (before !== before?.toUpperCase() && here !== here?.toLowerCase());
}

function startOf(text: string, place: number): number {
  if (place === 0) return AT_START;
  return isWordStart(text, place) ? AT_WORD : 0;
}

/** How often the letters of a word, from this place on, leave some out inside a word of the text; infinite without a match. */
function gapsFrom(text: string, lower: string, word: string, start: number): number {
  let gaps = 0;
  let last = start;
  for (const letter of word.slice(1)) {
    const next = lower.indexOf(letter, last + 1);
    if (next < 0) return Number.POSITIVE_INFINITY;
    if (next !== last + 1 && !isWordStart(text, next)) gaps += 1;
    last = next;
  }
  return gaps;
}

/** The score of one word in lower case; `null` without a match. */
function scoreOfWord(text: string, lower: string, word: string): number | null {
  let place = lower.indexOf(word);
  if (place >= 0) {
    // The best place: at the start of a word.
    let best = startOf(text, place);
    for (; place >= 0 && best === 0; place = lower.indexOf(word, place + 1)) best = startOf(text, place);
    return WHOLE + best;
  }
  const gapsMax = Math.min(GAPS_MAX, Math.floor(word.length / 2));
  let fewest = gapsMax + 1;
  const first = word[0] ?? '';
  for (let start = lower.indexOf(first); start >= 0; start = lower.indexOf(first, start + 1)) {
    fewest = Math.min(fewest, gapsFrom(text, lower, word, start));
  }
  return fewest > gapsMax ? null : SCATTERED - 10 * fewest;
}

/** The score of a text, larger for a better match; `null` if a word of the query is not in it. Each text matches an empty query. */
export function fuzzyScore(query: string, text: string): number | null {
  const lower = text.toLowerCase();
  let score = 0;
  for (const word of query.toLowerCase().split(/\s+/)) {
    if (word === '') continue;
    const ofWord = scoreOfWord(text, lower, word);
    if (ofWord === null) return null;
    score += ofWord;
  }
  // The shorter of two equal matches has less beside it.
  return score - Math.min(text.length, 200) / 100;
}

/** The best `limit` of a list for a query, best first; equal ones keep their order. */
export function bestMatches<T>(query: string, list: readonly T[], textOf: (entry: T) => string, limit: number): readonly Match<T>[] {
  const found: Match<T>[] = [];
  for (const entry of list) {
    const score = fuzzyScore(query, textOf(entry));
    if (score !== null) found.push({ entry, score });
  }
  return query.trim() === '' ? found.slice(0, limit) : found.sort((a, b) => b.score - a.score).slice(0, limit);
}

export interface Match<T> {
  readonly entry: T;
  readonly score: number;
}
