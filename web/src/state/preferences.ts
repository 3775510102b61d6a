/** Preferences of the reader, stored in the browser and not in the URL. */
import { createAtom } from './store';

export type ThemeChoice = 'system' | 'light' | 'dark';

const THEME_KEY = 'longpole.theme';
const LANES_KEY = 'longpole.lanes';
const PANEL_KEY = 'longpole.panel-share';

// Storage can be off; then a choice holds until the page closes.
function load(key: string): string | null {
  try {
    return window.localStorage.getItem(key);
  } catch {
    return null;
  }
}

function save(key: string, value: string): void {
  try {
    window.localStorage.setItem(key, value);
  } catch {
    // The choice holds for this page.
  }
}

function loadTheme(): ThemeChoice {
  const stored = load(THEME_KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export const themeAtom = createAtom<ThemeChoice>(loadTheme());

/** Increments when the colours on the screen change, so that canvases redraw. */
export const paletteAtom = createAtom(0);

function applyTheme(): void {
  const choice = themeAtom.get();
  if (choice === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.setAttribute('data-theme', choice);
  paletteAtom.set(paletteAtom.get() + 1);
}

/** Applies the stored theme and follows the system's changes. */
export function startThemes(): void {
  applyTheme();
  themeAtom.watch(() => {
    save(THEME_KEY, themeAtom.get());
    applyTheme();
  });
  for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
    window.matchMedia(query).addEventListener('change', () => paletteAtom.set(paletteAtom.get() + 1));
  }
}

/** Whether the page shows what threads did. */
export const lanesAtom = createAtom(load(LANES_KEY) !== 'off');

/** Keeps that choice for the next visit. */
export function startLanes(): void {
  lanesAtom.watch(() => save(LANES_KEY, lanesAtom.get() ? 'on' : 'off'));
}

/** The selection panel's share of the width. */
const PANEL_SHARE_DEFAULT = 0.45;
export const PANEL_SHARE_MIN = 0.25;
export const PANEL_SHARE_MAX = 0.7;

function loadPanelShare(): number {
  const stored = Number(load(PANEL_KEY) ?? Number.NaN);
  return stored >= PANEL_SHARE_MIN && stored <= PANEL_SHARE_MAX ? stored : PANEL_SHARE_DEFAULT;
}

export const panelShareAtom = createAtom(loadPanelShare());

/** Keeps the width of the panel for the next visit. */
export function startPanelShare(): void {
  panelShareAtom.watch(() => save(PANEL_KEY, panelShareAtom.get().toFixed(3)));
}
