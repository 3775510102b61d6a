/** The search for the spans of an operation, in the words of `find.ts`. */
import { conditionOf } from './find';
import type { Operation } from './operations';

/** Longer names are found by their beginning: an address holds a search of 200 characters. */
const NAME_CHARACTERS_MAX = 110;
const SERVICE_CHARACTERS_MAX = 40;

function condition(key: 'name' | 'service', text: string | null, most: number): readonly string[] {
  if (text === null) return [];
  return [text.length > most ? conditionOf(key, '~', text.slice(0, most)) : conditionOf(key, '=', text)];
}

/** `name="POST /checkout"`, `service=shop`: the conditions that its spans meet. */
export function conditionsOf({ name, service }: Operation): readonly string[] {
  return [...condition('name', name, NAME_CHARACTERS_MAX), ...condition('service', service, SERVICE_CHARACTERS_MAX)];
}

/** The search that shows only the spans of an operation. */
export function searchOf(operation: Operation): string {
  return conditionsOf(operation).join(' ');
}
