/** Draws the whole recording in a strip: operations in flight, the critical path, and the visible part. */

import type { PathColumns } from '../api/types.gen';
import { at } from '../base/column';
import { ratio } from '../base/math';
import type { TimeRange } from '../logic/waterfall';
import type { Palette } from './palette';

export interface MinimapScene {
  /** Operations in flight, one value per pixel of the strip. */
  readonly inFlight: Float64Array;
  readonly path: PathColumns;
  readonly full: TimeRange;
}

/** Height of the strip that shows the critical path, at the lower edge. */
const PATH_HEIGHT = 3;

export function drawMinimap(
  c: CanvasRenderingContext2D,
  scene: MinimapScene,
  range: TimeRange,
  left: number,
  height: number,
  palette: Palette,
): void {
  const { inFlight, path, full } = scene;
  const width = inFlight.length;
  const bars = height - PATH_HEIGHT - 3;
  let peak = 1;
  for (const value of inFlight) peak = Math.max(peak, value);
  c.fillStyle = palette.neutral;
  c.globalAlpha = 0.45;
  for (let x = 0; x < inFlight.length; x++) {
    const bar = ratio(at(inFlight, x), peak) * (bars - 3);
    if (bar > 0) c.fillRect(left + x, bars - bar, 1, bar);
  }
  c.globalAlpha = 1;
  const scale = width / (full.end - full.start);
  c.fillStyle = palette.path;
  let drawn = Number.NEGATIVE_INFINITY;
  for (let piece = 0; piece < path.span.length; piece++) {
    const from = Math.max(drawn, left + (at(path.startNanos, piece) - full.start) * scale);
    const to = left + (at(path.endNanos, piece) - full.start) * scale;
    if (to - from < 0.5) continue;
    c.fillRect(from, bars + 2, to - from, PATH_HEIGHT);
    drawn = to;
  }
  const viewLeft = left + (range.start - full.start) * scale;
  const viewRight = left + (range.end - full.start) * scale;
  if (viewRight - viewLeft < width - 1) {
    c.fillStyle = palette.text;
    c.globalAlpha = 0.1;
    c.fillRect(left, 0, viewLeft - left, height);
    c.fillRect(viewRight, 0, left + width - viewRight, height);
    c.globalAlpha = 1;
    c.fillStyle = palette.accent;
    c.fillRect(viewLeft, 0, 2, height);
    c.fillRect(viewRight - 2, 0, 2, height);
  }
}
