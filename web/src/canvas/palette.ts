/** The colours of style/tokens.css, resolved for a canvas. */
import type { WaitKind } from '../api/types.gen';

export interface Palette {
  readonly surface: string;
  readonly text: string;
  readonly muted: string;
  readonly border: string;
  readonly grid: string;
  readonly hover: string;
  readonly accent: string;
  readonly accentText: string;
  readonly accentSoft: string;
  readonly path: string;
  readonly pathText: string;
  readonly error: string;
  readonly neutral: string;
  readonly neutralTint: string;
  /** Edge of boxes and bars if colours are forced and there are no tints; else `null`. */
  readonly edge: string | null;
  /** Bars of services: strong for own time, tint for time in children. */
  readonly hues: readonly string[];
  readonly tints: readonly string[];
  /** Threads on a CPU, and by the kind of wait. */
  readonly onCpu: string;
  /** Ground of text where most of the time was on a CPU. */
  readonly onCpuTint: string;
  readonly waits: Readonly<Record<string, string>>;
  /** Families for text, as CSS prints them. */
  readonly sans: string;
  readonly mono: string;
}

/** The colour of each kind of wait; those of workers without work, and those that were not sampled, have none. */
const WAIT_TOKENS: readonly (readonly [WaitKind, string])[] = [
  ['lock', 'wait-lock'],
  ['queue', 'wait-lock'],
  ['join', 'wait-lock'],
  ['disk', 'wait-disk'],
  ['network', 'wait-network'],
  ['sleep', 'wait-sleep'],
  ['page_fault', 'wait-page-fault'],
  ['child', 'wait-child'],
  ['pipe', 'wait-pipe'],
  ['other', 'wait-other'],
];

/** The number of hues for services and crates; then they repeat, and the name beside each bar distinguishes them. */
export const HUES = 8;

/** Reads the tokens that apply at `element`. */
export function readPalette(element: HTMLElement): Palette {
  const probe = document.createElement('span');
  probe.hidden = true;
  element.append(probe);
  const style = getComputedStyle(probe);
  const colour = (token: string): string => {
    probe.style.color = `var(--${token})`;
    return style.color;
  };
  const family = (token: string): string => {
    probe.style.fontFamily = `var(--${token})`;
    return style.fontFamily;
  };
  const series = (prefix: string): string[] => Array.from({ length: HUES }, (_, index) => colour(`${prefix}-${index}`));
  const palette: Palette = {
    surface: colour('surface'),
    text: colour('text'),
    muted: colour('text-muted'),
    border: colour('border'),
    grid: colour('grid'),
    hover: colour('hover'),
    accent: colour('accent'),
    accentText: colour('accent-text'),
    accentSoft: colour('accent-soft'),
    path: colour('path'),
    pathText: colour('path-text'),
    error: colour('error'),
    neutral: colour('neutral'),
    neutralTint: colour('neutral-tint'),
    edge: window.matchMedia('(forced-colors: active)').matches ? colour('text') : null,
    onCpu: colour('on-cpu'),
    onCpuTint: colour('on-cpu-tint'),
    waits: Object.fromEntries(WAIT_TOKENS.map(([wait, token]) => [wait, colour(token)])),
    hues: series('hue'),
    tints: series('tint'),
    sans: family('font-sans'),
    mono: family('font-mono'),
  };
  probe.remove();
  return palette;
}

/** The hue of a service, by its number in the tree. */
export function hueOfService(service: number): number {
  return service % HUES;
}

/** The same text has the same hue in every recording. */
export function hueOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return ((hash ^ (hash >>> 15)) >>> 0) % HUES;
}
