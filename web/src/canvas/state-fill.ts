/** Fills of states on a canvas, with the colours and patterns of the state bars (views/parts/parts.module.css). */
import type { FlameState } from '../logic/flame-legend';
import type { Palette } from './palette';

/** Side of the square that repeats. */
const TILE = 6;

type Stripes = 'slash' | 'backslash' | 'upright' | 'level';
type Look =
  | { readonly kind: 'solid' }
  | { readonly kind: Stripes; readonly width: number }
  | { readonly kind: 'dots' }
  | { readonly kind: 'squares' };

const LOOKS: Readonly<Record<FlameState, Look>> = {
  on_cpu: { kind: 'solid' },
  lock: { kind: 'solid' },
  queue: { kind: 'slash', width: 3 },
  join: { kind: 'slash', width: 1.2 },
  network: { kind: 'backslash', width: 2.6 },
  disk: { kind: 'upright', width: 4 },
  sleep: { kind: 'level', width: 1.5 },
  page_fault: { kind: 'squares' },
  child: { kind: 'slash', width: 3 },
  pipe: { kind: 'level', width: 3 },
  idle: { kind: 'upright', width: 1.5 },
  other: { kind: 'dots' },
};

const fills = new WeakMap<Palette, Map<FlameState, string | CanvasPattern>>();

/** The fill of a state. */
export function stateFill(c: CanvasRenderingContext2D, state: FlameState, palette: Palette): string | CanvasPattern {
  const known = fills.get(palette) ?? new Map<FlameState, string | CanvasPattern>();
  fills.set(palette, known);
  const fill = known.get(state) ?? patternOf(c, state, palette);
  known.set(state, fill);
  return fill;
}

function patternOf(c: CanvasRenderingContext2D, state: FlameState, palette: Palette): string | CanvasPattern {
  const colour = state === 'on_cpu' ? palette.onCpu : (palette.waits[state] ?? palette.neutral);
  const look = LOOKS[state];
  const tile = document.createElement('canvas');
  tile.width = TILE;
  tile.height = TILE;
  const t = tile.getContext('2d');
  if (look.kind === 'solid' || t === null) return colour;
  t.fillStyle = palette.surface;
  t.fillRect(0, 0, TILE, TILE);
  t.fillStyle = colour;
  t.strokeStyle = colour;
  drawLook(t, look);
  return c.createPattern(tile, 'repeat') ?? colour;
}

function drawLook(t: CanvasRenderingContext2D, look: Exclude<Look, { readonly kind: 'solid' }>): void {
  switch (look.kind) {
    case 'dots':
      t.fillRect(0, 0, 2, 2);
      t.fillRect(TILE / 2, TILE / 2, 2, 2);
      return;
    case 'squares':
      t.fillRect(0, 0, TILE / 2, TILE / 2);
      t.fillRect(TILE / 2, TILE / 2, TILE / 2, TILE / 2);
      return;
    case 'upright':
      t.fillRect(0, 0, look.width, TILE);
      return;
    case 'level':
      t.fillRect(0, 0, TILE, look.width);
      return;
    default:
      t.lineWidth = look.width;
      t.beginPath();
      // One line through the tile, and those that reach into its corners.
      for (const shift of [-TILE, 0, TILE]) {
        t.moveTo(shift - TILE, look.kind === 'slash' ? 2 * TILE : -TILE);
        t.lineTo(shift + 2 * TILE, look.kind === 'slash' ? -TILE : 2 * TILE);
      }
      t.stroke();
  }
}
