/** Short handles: `s12` is row 11 of the tree, `p1` the first pole, `f1` the function with the largest total. */
import type { SpanIndex } from '../base/brand';

const HANDLE = /^([spf])([1-9]\d{0,9})$/;

/** Whether the text is a handle of this letter. */
export function isHandle(text: unknown, letter: 's' | 'p' | 'f'): text is string {
  return typeof text === 'string' && HANDLE.exec(text)?.[1] === letter;
}

/** The handle of a span. */
export function spanHandle(span: SpanIndex): string {
  return `s${span + 1}`;
}

/** The row of a span's handle; `null` if it names no row of a tree of `count` spans. */
export function spanOfHandle(handle: string, count: number): SpanIndex | null {
  if (!isHandle(handle, 's')) return null;
  const index = Number(handle.slice(1)) - 1;
  return index < count ? (index as SpanIndex) : null;
}
