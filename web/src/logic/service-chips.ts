/** The services of a trace as chips: its legend, and a filter written as a search (`service=cart`, `service!=cart`). */
import { SPAN_FLAG } from '../api/checks';
import type { Tree } from '../api/types.gen';
import { at } from '../base/column';
import { conditionOf, wordsOf } from './find';
import { namedService } from './span-words';

/** A service with spans. */
export interface Service {
  /** Its number in the tree, on which its colour depends. */
  readonly number: number;
  readonly name: string;
  /** Name for people; programs may send none. */
  readonly label: string;
  readonly spans: number;
}

/** The services of spans that programs sent, those with the most spans first. Processes have none. */
export function servicesOf(tree: Tree): readonly Service[] {
  const spans = new Uint32Array(tree.services.length);
  for (let span = 0; span < tree.spans.parent.length; span++) {
    if ((at(tree.spans.flags, span) & SPAN_FLAG.process) !== 0) continue;
    const service = at(tree.spans.service, span);
    spans[service] = at(spans, service) + 1;
  }
  return tree.services
    .map((name, number) => ({ number, name, label: namedService(name) || 'no service', spans: at(spans, number) }))
    .filter((service) => service.spans > 0)
    .sort((a, b) => b.spans - a.spans || a.number - b.number);
}

/** Whether the trace shows a service: only it, not it, or it among others. */
export type Visibility = 'only' | 'hidden' | 'shown';

const KEY = /^service(=|!=|~)/i;

const written = (sign: '=' | '!=', name: string): string => conditionOf('service', sign, name);

const isWord = (sign: '=' | '!=', name: string) => (word: string) => word.toLowerCase() === written(sign, name).toLowerCase();

/** How a search treats a service. */
export function visibilityIn(text: string, isOnly: boolean, name: string): Visibility {
  const words = isOnly ? wordsOf(text) : [];
  if (words.some(isWord('=', name))) return 'only';
  return words.some(isWord('!=', name)) ? 'hidden' : 'shown';
}

/** Whether a chip can filter by a name: one without a name stands for services with none. */
export function canFilter(name: string): boolean {
  return name !== '';
}

/** The search with only this service, or without that condition if it has it. Other words stay, other conditions of services do not. */
export function togglingOnly(text: string, isOnly: boolean, name: string): string {
  const rest = wordsOf(text).filter((word) => !KEY.test(word));
  return (visibilityIn(text, isOnly, name) === 'only' ? rest : [...rest, written('=', name)]).join(' ');
}

/** The search without this service, or with it again. */
export function togglingHidden(text: string, isOnly: boolean, name: string): string {
  const isHidden = visibilityIn(text, isOnly, name) === 'hidden';
  // A search for one service has none to hide.
  const rest = wordsOf(text).filter((word) => !/^service[=~]/i.test(word) && !isWord('!=', name)(word));
  return (isHidden ? rest : [...rest, written('!=', name)]).join(' ');
}
