/** Spans by their name, for people who look for one: a trace of a million spans has some thousand names. */
import type { Tree } from '../api/types.gen';
import type { SpanIndex } from '../base/brand';
import { at } from '../base/column';
import { counted } from './format';
import { bestMatches, type Match } from './fuzzy';
import { spanHandle, spanOfHandle } from './handles';
import { namedService } from './span-words';

/** The longest span of a name. */
export interface NamedSpan {
  readonly span: SpanIndex;
  /** `s12 checkout in cart, longest of 31`. */
  readonly words: string;
}

/** For each name of a tree, its longest span and their number. */
interface Names {
  readonly longest: Int32Array;
  readonly counts: Uint32Array;
}

const known = new WeakMap<Tree, Names>();

function namesOf(tree: Tree): Names {
  const found = known.get(tree);
  if (found !== undefined) return found;
  const names: Names = { longest: new Int32Array(tree.names.length).fill(-1), counts: new Uint32Array(tree.names.length) };
  for (let span = 0; span < tree.spans.parent.length; span++) {
    const name = at(tree.spans.name, span);
    const longest = at(names.longest, name);
    names.counts[name] = at(names.counts, name) + 1;
    if (longest < 0 || at(tree.spans.durationNanos, span) > at(tree.spans.durationNanos, longest)) names.longest[name] = span;
  }
  known.set(tree, names);
  return names;
}

function wordsOfSpan(tree: Tree, span: SpanIndex, count: number): string {
  const service = namedService(tree.services[at(tree.spans.service, span)] ?? '');
  const of = count > 1 ? `, longest of ${counted(count, 'span')}` : '';
  return `${spanHandle(span)} ${tree.names[at(tree.spans.name, span)] ?? ''}${service === '' ? '' : ` in ${service}`}${of}`;
}

/** The spans whose name matches, one for each name, best first; a handle finds its span. */
export function spansNamed(tree: Tree, query: string, limit: number): readonly Match<NamedSpan>[] {
  const { longest, counts } = namesOf(tree);
  const handle = spanOfHandle(query.trim().toLowerCase(), tree.spans.parent.length);
  const exact = handle === null ? [] : [{ entry: { span: handle, words: wordsOfSpan(tree, handle, 1) }, score: Number.MAX_VALUE }];
  if (query.trim() === '') return [];
  const names = bestMatches(query, [...tree.names.keys()], (name) => tree.names[name] ?? '', limit);
  return [
    ...exact,
    ...names
      .filter(({ entry: name }) => at(longest, name) >= 0 && at(longest, name) !== handle)
      .map(({ entry: name, score }) => {
        const span = at(longest, name) as SpanIndex;
        return { entry: { span, words: wordsOfSpan(tree, span, at(counts, name)) }, score };
      }),
  ];
}
