/**
 * Finds rows of a trace: `checkout service=cart dur>100ms status=error`. Words are parts of the name, the service or the resource, in any case; all
 * parts must hold. `service!=cart` is every other service. Quotes hold spaces; two quotes inside them stand for one.
 */
import { SPAN_FLAG } from '../api/checks';
import type { Tree } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { at } from '../base/column';
import { NANOS_OF } from './duration';

type Text = 'name' | 'service';
type Comparison = '>' | '>=' | '<' | '<=';

type Part =
  | { readonly kind: 'word'; readonly word: string }
  | { readonly kind: Text; readonly text: string; readonly sign: '=' | '!=' | '~' }
  | { readonly kind: 'dur' | 'path'; readonly comparison: Comparison; readonly nanos: number }
  | { readonly kind: 'status'; readonly isError: boolean };

/** What a search asks for, or what is wrong with its text. */
export type Find = { readonly parts: readonly Part[]; readonly wrong: null } | { readonly parts: null; readonly wrong: string };

const WORD = /"(?:[^"]|"")*"|[^\s"]+(?:"(?:[^"]|"")*"[^\s"]*)?/g;
const QUOTED = /"((?:[^"]|"")*)"/g;
const COMPARED = /^([\w.]+)(>=|<=|!=|>|<|=|~)(.*)$/;
const DURATION = /^(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)$/;

const wrong = (text: string): Find => ({ parts: null, wrong: text });

/** The words of a search, as they are written. */
export function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(WORD)].map(([word]) => word);
}

/** A duration in nanoseconds. The product of two decimal numbers may miss a whole one by its last bits. */
function nanosOf(number: string, unit: string): number {
  return Number((Number(number) * (NANOS_OF[unit] ?? 1)).toPrecision(15));
}

/** A text without the quotes around it. */
function unquoted(text: string): string {
  return text.replace(QUOTED, (_, inner: string) => inner.replaceAll('""', '"'));
}

/** A condition as a search writes it: `service=cart`, `name="POST /checkout"`. */
export function conditionOf(key: Text, sign: '=' | '!=' | '~', text: string): string {
  return /^[^\s"]+$/.test(text) ? `${key}${sign}${text}` : `${key}${sign}"${text.replaceAll('"', '""')}"`;
}

/** Reads a search. An empty one has no parts. */
export function readFind(text: string): Find {
  const parts: Part[] = [];
  for (const written of wordsOf(text)) {
    const compared = written.startsWith('"') ? null : COMPARED.exec(written);
    if (compared === null) {
      parts.push({ kind: 'word', word: unquoted(written).toLowerCase() });
      continue;
    }
    const [, key = '', sign = '', rest = ''] = compared;
    const value = unquoted(rest);
    if (key === 'name' || key === 'service') {
      if (sign !== '=' && sign !== '!=' && sign !== '~') return wrong(`${key} takes =, != or ~, as in ${key}~cart`);
      parts.push({ kind: key, text: value.toLowerCase(), sign });
    } else if (key === 'dur' || key === 'path') {
      const [, number, unit = ''] = DURATION.exec(value) ?? [];
      if (number === undefined || sign === '=' || sign === '!=' || sign === '~')
        return wrong(`${key} takes a duration, as in ${key}>100ms`);
      parts.push({ kind: key, comparison: sign as Comparison, nanos: nanosOf(number, unit) });
    } else if (key === 'status') {
      if (sign !== '=' || !['error', 'ok'].includes(value)) return wrong('status takes =error or =ok');
      parts.push({ kind: 'status', isError: value === 'error' });
    } else {
      return wrong(`unknown key ${key}: name, service, dur, path and status can be searched; "${written}" in quotes is a word`);
    }
  }
  return { parts, wrong: null };
}

function compares(value: number, comparison: Comparison, nanos: number): boolean {
  switch (comparison) {
    case '>':
      return value > nanos;
    case '>=':
      return value >= nanos;
    case '<':
      return value < nanos;
    case '<=':
      return value <= nanos;
  }
}

/** For each text of a list whether it matches. */
const matchesOf = (texts: readonly string[], isMatch: (text: string) => boolean): readonly boolean[] =>
  texts.map((text) => isMatch(text.toLowerCase()));

/** Whether a row matches a part. Texts are compared once, not for each row. */
function testOf(tree: Tree, part: Part): (span: number) => boolean {
  const { spans } = tree;
  switch (part.kind) {
    case 'word': {
      const has = (text: string): boolean => text.includes(part.word);
      const names = matchesOf(tree.names, has);
      const services = matchesOf(tree.services, has);
      const resources = matchesOf(tree.resources, has);
      return (span) =>
        names[at(spans.name, span)] === true || services[at(spans.service, span)] === true || resources[at(spans.resource, span)] === true;
    }
    case 'name':
    case 'service': {
      const [texts, column] = part.kind === 'name' ? [tree.names, spans.name] : [tree.services, spans.service];
      const isMatch = {
        '=': (text: string) => text === part.text,
        '!=': (text: string) => text !== part.text,
        '~': (text: string) => text.includes(part.text),
      };
      const known = matchesOf(texts, isMatch[part.sign]);
      return (span) => known[at(column, span)] === true;
    }
    case 'dur':
      return (span) => compares(at(spans.durationNanos, span), part.comparison, part.nanos);
    case 'path':
      return (span) => compares(at(spans.onPathNanos, span), part.comparison, part.nanos);
    case 'status':
      return (span) => ((at(spans.flags, span) & SPAN_FLAG.error) !== 0) === part.isError;
  }
}

/** The rows that match, ascending. Without parts nothing does. */
export function foundSpans(tree: Tree, find: Find): Uint32Array {
  if (find.parts === null || find.parts.length === 0) return new Uint32Array(0);
  const tests = find.parts.map((part) => testOf(tree, part));
  const found: number[] = [];
  for (let span = 0; span < tree.spans.parent.length; span++) if (tests.every((test) => test(span))) found.push(span);
  return Uint32Array.from(found);
}

/** The rows that match or have such a row below them, among the visible ones. */
export function rowsWith(tree: Tree, rows: Uint32Array, found: Uint32Array): Uint32Array {
  let next = 0;
  return rows.filter((span) => {
    while (next < found.length && at(found, next) < span) next++;
    return next < found.length && at(found, next) <= span + at(tree.spans.subtree, span);
  });
}

/** What the rows come to: their time on the critical path, which counts no moment twice. */
export function onPathOf(tree: Tree, found: Uint32Array): Nanos {
  return found.reduce((sum, span) => sum + at(tree.spans.onPathNanos, span), 0) as Nanos;
}
