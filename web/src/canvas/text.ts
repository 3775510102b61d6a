/** Text that fits. Measuring is the slowest operation of a canvas, so this caches widths and shortened texts. */

// A screen holds about 200 labels; a session of scrolling some ten thousand.
const ENTRIES_MAX = 20_000;
const widths = new Map<string, number>();
const cuts = new Map<string, string>();

function remember<T>(cache: Map<string, T>, key: string, value: T): T {
  if (cache.size >= ENTRIES_MAX) cache.clear();
  cache.set(key, value);
  return value;
}

/** Width of a text in the current font. */
export function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font}\n${text}`;
  return widths.get(key) ?? remember(widths, key, context.measureText(text).width);
}

/** With fewer letters, the start alone says more than both ends. */
const BOTH_ENDS_MIN = 8;

/** `letters` letters from both ends of a text, because the end distinguishes names with the same start. */
function shortened(text: string, letters: number): string {
  if (letters < BOTH_ENDS_MIN) return `${text.slice(0, letters).trimEnd()}…`;
  const head = letters >> 1;
  return `${text.slice(0, head).trimEnd()}…${text.slice(text.length - (letters - head)).trimStart()}`;
}

/** The text, with an ellipsis in its middle if it is wider than `width`; empty if fewer than two letters fit. */
export function fit(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (width < 12) return '';
  if (widthOf(context, text) <= width) return text;
  // Widths that differ by a few pixels share an entry.
  const room = Math.floor(width / 4) * 4;
  const key = `${context.font}\n${room}\n${text}`;
  const known = cuts.get(key);
  if (known !== undefined) return known;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (context.measureText(shortened(text, middle)).width <= room) low = middle;
    else high = middle - 1;
  }
  return remember(cuts, key, low < 2 ? '' : shortened(text, low));
}

/** The first of the texts, from long to short, that fits whole; else the shortest, shortened further. */
export function fitOneOf(context: CanvasRenderingContext2D, texts: readonly string[], width: number): string {
  for (const text of texts) {
    if (widthOf(context, text) <= width) return text;
  }
  return fit(context, texts[texts.length - 1] ?? '', width);
}
