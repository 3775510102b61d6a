/** The search for traces: from the address of the page to the request. */

/** Search parameters of the list of traces. */
export interface TracesSearch {
  readonly service?: string;
  readonly operation?: string;
  /** Pairs `key=value`, separated by spaces; a value with spaces stands in quotes. */
  readonly tags?: string;
  readonly minDuration?: string;
  readonly maxDuration?: string;
  readonly sort?: 'longest' | '';
}

const CHARACTERS_MAX = 400;
const TEXTS = ['service', 'operation', 'tags', 'minDuration', 'maxDuration'] as const;
const DURATION = /^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/;

/** Reads the search parameters of the list of traces, without invalid ones. */
export function readTracesSearch(search: Readonly<Record<string, unknown>>): TracesSearch {
  const texts = TEXTS.flatMap((name) => {
    const value = search[name];
    // The router turns words that look like numbers into numbers.
    const text = typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, CHARACTERS_MAX) : '';
    return text === '' ? [] : [[name, text] as const];
  });
  return { ...Object.fromEntries(texts), ...(search.sort === 'longest' ? { sort: 'longest' as const } : {}) };
}

/** `a=1 b="two words"` as pairs; `null` if a word is no pair. */
export function readTags(text: string): ReadonlyMap<string, string> | null {
  const pairs = new Map<string, string>();
  const words = text.match(/[^\s=]+=("[^"]*"|\S*)|\S+/g) ?? [];
  for (const word of words) {
    const at = word.indexOf('=');
    if (at < 1) return null;
    pairs.set(word.slice(0, at), word.slice(at + 1).replace(/^"(.*)"$/, '$1'));
  }
  return pairs;
}

/** The parameters of the request, or what is wrong with the search. */
export function requestOf(search: TracesSearch): { readonly parameters: Readonly<Record<string, string>>; readonly wrong: string | null } {
  const tags = readTags(search.tags ?? '');
  const durations = [search.minDuration, search.maxDuration].filter((text) => text !== undefined && text !== '');
  const badDuration = durations.find((text) => !DURATION.test(text ?? ''));
  const wrong =
    tags === null
      ? 'Write attributes as key=value, with spaces between them.'
      : badDuration !== undefined
        ? `${badDuration} is no duration: write 100ms, 1.5s or 2m.`
        : null;
  const { service = '', operation = '', minDuration = '', maxDuration = '' } = search;
  const all = {
    service,
    operation,
    minDuration,
    maxDuration,
    tags: tags === null || tags.size === 0 ? '' : JSON.stringify(Object.fromEntries(tags)),
    limit: search.sort === 'longest' ? '1000' : '100',
  };
  return { parameters: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')), wrong };
}
