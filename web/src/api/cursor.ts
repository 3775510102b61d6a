/**
 * The only place where `unknown` becomes typed: the generated decoder reads a document through these. A document that is not what
 * docs/formats/http-api.md says is refused with the path of the first thing that is wrong.
 */
import type { Nanos } from '../base/brand';
import type { Column } from '../base/column';
import { shown } from '../base/shown';

/** A JSON value of an attribute. */
export type AttributeValue = string | number | boolean | null | readonly unknown[] | Readonly<Record<string, unknown>>;

/** From the least to the most that can be; both are equal where what a span waited for is declared. */
export interface NanosRange {
  readonly low: Nanos;
  readonly high: Nanos;
}

/**
 * More than any number of a document, which have 64 bits, also when it was rounded up. Beyond 2^53 (104 days) the last nanoseconds are
 * lost, which nothing shows: one span that says no start stands 56 years before the others.
 */
const ANY_NUMBER = 2 ** 65;

/** A document is not what the contract says. */
export class DecodeError extends Error {
  constructor(
    readonly path: string,
    problem: string,
  ) {
    super(`${path}: ${problem}`);
    this.name = 'DecodeError';
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The texts of a value, however deep they lie; the server limits how deep that is. */
function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return shown(value);
  if (Array.isArray(value)) return value.map(shownValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [shown(key), shownValue(inner)]));
}

/** A place inside a document, which knows its path. */
export class Cursor {
  constructor(
    readonly value: unknown,
    readonly path: string,
  ) {}

  private fail(expected: string): never {
    throw new DecodeError(this.path, `expected ${expected}, found ${kindOf(this.value)}`);
  }

  field(name: string): Cursor {
    const { value } = this;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) this.fail('an object');
    return new Cursor((value as Record<string, unknown>)[name], `${this.path}.${name}`);
  }

  /** Every text of a document, and so every name, comes through here. */
  string(): string {
    return typeof this.value === 'string' ? shown(this.value) : this.fail('a string');
  }

  number(): number {
    return typeof this.value === 'number' && Number.isFinite(this.value) ? this.value : this.fail('a number');
  }

  count(): number {
    const value = this.number();
    if (!Number.isInteger(value) || value < 0 || value >= ANY_NUMBER) throw new DecodeError(this.path, `expected a count, found ${value}`);
    return value;
  }

  nanos(): Nanos {
    return this.number() as Nanos;
  }

  boolean(): boolean {
    return typeof this.value === 'boolean' ? this.value : this.fail('true or false');
  }

  unixNano(): bigint {
    const text = this.string();
    if (!/^-?\d{1,20}$/.test(text)) throw new DecodeError(this.path, `expected nanoseconds in digits, found "${text}"`);
    return BigInt(text);
  }

  /** `[low, high]`. */
  range(): NanosRange {
    const [low, high, ...rest] = this.list((item) => item.nanos());
    if (low === undefined || high === undefined || rest.length > 0 || low > high) {
      throw new DecodeError(this.path, 'expected [low, high]');
    }
    return { low, high };
  }

  /** One of a few words. */
  oneOf<Word extends string>(words: readonly Word[]): Word {
    const found = this.string();
    const word = words.find((known) => known === found);
    if (word !== undefined) return word;
    throw new DecodeError(this.path, `expected ${words.slice(0, -1).join(', ')} or ${words.at(-1)}, found "${found}"`);
  }

  any(): AttributeValue {
    if (this.value === undefined) this.fail('a value');
    return shownValue(this.value) as AttributeValue;
  }

  orNull<T>(read: (cursor: Cursor) => T): T | null {
    return this.value === null || this.value === undefined ? null : read(this);
  }

  list<T>(read: (cursor: Cursor) => T): readonly T[] {
    if (!Array.isArray(this.value)) this.fail('a list');
    return (this.value as unknown[]).map((item, index) => read(new Cursor(item, `${this.path}[${index}]`)));
  }

  /** A list of two. */
  pair<T>(read: (cursor: Cursor) => T): readonly [T, T] {
    const [first, second, ...rest] = this.list(read);
    if (first === undefined || second === undefined || rest.length > 0) throw new DecodeError(this.path, 'expected two values');
    return [first, second];
  }

  /** Columns of one table, which have one length. */
  columns<T extends Readonly<Record<string, Column>>>(columns: T): T {
    const [first] = Object.values(columns);
    for (const [name, column] of Object.entries(columns)) {
      if (column.length === first?.length) continue;
      const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      throw new DecodeError(`${this.path}.${key}`, `has ${column.length} rows instead of ${first?.length}`);
    }
    return columns;
  }

  /** A column of indices, -1 for none. */
  indices(): Int32Array {
    return this.column((length) => new Int32Array(length), -1, 2 ** 31);
  }

  counts(): Uint32Array {
    return this.column((length) => new Uint32Array(length), 0, 2 ** 32);
  }

  floats(): Float64Array {
    return this.column((length) => new Float64Array(length), -ANY_NUMBER, ANY_NUMBER);
  }

  /** Numbers into a typed column. `low` and `high` bound each value; `high` is not included. */
  private column<C extends Column>(column: (length: number) => C, low: number, high: number): C {
    if (!Array.isArray(this.value)) this.fail('a list');
    const source = this.value as unknown[];
    const target = column(source.length);
    for (let index = 0; index < source.length; index++) {
      const value = source[index];
      if (typeof value !== 'number' || !(value >= low && value < high)) {
        throw new DecodeError(
          `${this.path}[${index}]`,
          typeof value === 'number' ? `${value} is out of range` : `expected a number, found ${kindOf(value)}`,
        );
      }
      target[index] = value;
    }
    return target;
  }
}

/** The body of a refused request; `null` where it is not ours. */
export function decodeRefusal(document: unknown): { readonly code: string; readonly message: string } | null {
  try {
    const error = new Cursor(document, 'error').field('error');
    return { code: error.field('code').string(), message: error.field('message').string() };
  } catch {
    return null;
  }
}
