/** Contrast of the colours, in light and in dark: 4.5 for text, 3 for marks (WCAG 2.2, 1.4.3 and 1.4.11). */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8').split('@media')[0] ?? '';
const declared = new Map([...css.matchAll(/--([\w-]+):\s*([^;]+);/g)].map(([, name = '', value = '']) => [name, value.trim()]));

/** The six digits behind a token. */
function colour(token: string, dark: boolean): string {
  const value = declared.get(token);
  if (value === undefined) throw new Error(`no token --${token}`);
  const halves = /^light-dark\((.+), (.+)\)$/.exec(value);
  const half = halves === null ? value : ((dark ? halves[2] : halves[1]) ?? '');
  const reference = /^var\(--([\w-]+)\)$/.exec(half)?.[1];
  return reference === undefined ? half : colour(reference, dark);
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((from) => {
    const part = Number.parseInt(hex.slice(from, from + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ['surface', 'page', 'hover', 'accent-soft'];
const TINTS = Array.from({ length: 8 }, (_, index) => `tint-${index}`);
const HUES = Array.from({ length: 8 }, (_, index) => `hue-${index}`);
const TEXT: readonly (readonly [string, readonly string[]])[] = [
  ['text', [...GROUNDS, 'sunken', 'warn-soft', 'neutral-tint', ...TINTS]],
  ['text-muted', [...GROUNDS, 'sunken']],
  ['accent', GROUNDS],
  ['path', GROUNDS],
  ['error', GROUNDS],
  ['good', GROUNDS],
  ['warn', [...GROUNDS, 'warn-soft']],
  ['accent-text', ['accent']],
  ['path-text', ['path']],
];
const MARKS: readonly (readonly [string, readonly string[]])[] = [...HUES, 'neutral', 'on-cpu', 'path', 'accent'].map((mark) => [
  mark,
  ['surface', 'hover', 'accent-soft'],
]);

describe.each([
  ['light', false],
  ['dark', true],
])('%s', (_, dark) => {
  const faults = (pairs: typeof TEXT, least: number) =>
    pairs.flatMap(([ink, grounds]) =>
      grounds
        .map((ground) => ({ ground, ratio: contrast(colour(ink, dark), colour(ground, dark)) }))
        .filter(({ ratio }) => ratio < least)
        .map(({ ground, ratio }) => `${ink} on ${ground}: ${ratio.toFixed(2)}`),
    );
  it('text can be read', () => expect(faults(TEXT, 4.5)).toEqual([]));
  it('marks can be seen', () => expect(faults(MARKS, 3)).toEqual([]));
});
