/** Contrast of the colours, in light and in dark: 4.5 for text, 3 for marks (WCAG 2.2, 1.4.3 and 1.4.11). */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { STATE_CLASSES } from '../testing/state-classes';

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8').split('@media')[0] ?? '';
const declared = new Map([...css.matchAll(/--([\w-]+):\s*([^;]+);/g)].map(([, name = '', value = '']) => [name, value.trim()]));

/** The six digits of a token. */
function colour(token: string, dark: boolean): string {
  const value = declared.get(token);
  if (value === undefined) throw new Error(`no token --${token}`);
  const halves = /^light-dark\((.+), (.+)\)$/.exec(value);
  const half = halves === null ? value : ((dark ? halves[2] : halves[1]) ?? '');
  const reference = /^var\(--([\w-]+)\)$/.exec(half)?.[1];
  return reference === undefined ? half : colour(reference, dark);
}

/** Red, green and blue as amounts of light. */
function linear(hex: string): readonly number[] {
  return [1, 3, 5].map((from) => {
    const part = Number.parseInt(hex.slice(from, from + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = linear(hex);
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
  ['text', [...GROUNDS, 'sunken', 'warn-soft', 'neutral-tint', 'on-cpu-tint', ...TINTS]],
  ['text-muted', [...GROUNDS, 'sunken']],
  ['accent', GROUNDS],
  ['path', GROUNDS],
  ['error', GROUNDS],
  ['good', GROUNDS],
  ['warn', [...GROUNDS, 'warn-soft']],
  ['accent-text', ['accent']],
  ['path-text', ['path']],
];
const WAITS = ['lock', 'network', 'disk', 'sleep', 'page-fault', 'child', 'pipe', 'other'].map((kind) => `wait-${kind}`);
const MARKS: readonly (readonly [string, readonly string[]])[] = [...HUES, ...WAITS, 'neutral', 'on-cpu', 'path', 'accent'].map((mark) => [
  mark,
  ['surface', 'hover', 'accent-soft'],
]);

/** Colours as seen without one kind of cones: Machado, Oliveira and Fernandes 2009, severity 1, on linear red, green and blue. */
const EYES: Readonly<Record<string, readonly number[]>> = {
  'all cones': [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};

/** A colour as such an eye sees it, in OKLab, whose distances match perception. */
function seen(hex: string, eye: readonly number[]): readonly number[] {
  const cones = times(eye, linear(hex)).map((part) => Math.max(0, part));
  const response = times(
    [0.4122214708, 0.5363325363, 0.0514459929, 0.2119034982, 0.6806995451, 0.1073969566, 0.0883024619, 0.2817188376, 0.6299787005],
    cones,
  );
  return times(
    [0.2104542553, 0.793617785, -0.0040720468, 1.9779984951, -2.428592205, 0.4505937099, 0.0259040371, 0.7827717662, -0.808675766],
    response.map(Math.cbrt),
  );
}

function times(matrix: readonly number[], vector: readonly number[]): readonly number[] {
  return [0, 3, 6].map((row) => vector.reduce((sum, part, column) => sum + (matrix[row + column] ?? 0) * part, 0));
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.hypot(...a.map((part, index) => part - (b[index] ?? 0)));
}

/** The states in the style sheet: a token, and its pattern. */
const sheet = readFileSync(new URL('../views/parts/parts.module.css', import.meta.url), 'utf8');
const STATES = STATE_CLASSES.map((state) => {
  const background = new RegExp(`^\\.${state} \\{\\n  background: ([^;]+);`, 'm').exec(sheet)?.[1] ?? '';
  const token = /var\(--([\w-]+)\)/.exec(background)?.[1] ?? '';
  return { token, pattern: background.replaceAll(`var(--${token})`, '') };
});

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
  it.each(Object.entries(EYES))('states of a time differ in colour or pattern: %s', (_, eye) => {
    const alike = STATES.flatMap((a, index) =>
      STATES.slice(index + 1)
        .filter((b) => a.pattern === b.pattern && distance(seen(colour(a.token, dark), eye), seen(colour(b.token, dark), eye)) < 0.1)
        .map((b) => `${a.token} ${b.token}`),
    );
    expect(alike).toEqual([]);
  });
});
