/** Draws what threads did: how much of each piece of time on a CPU, and below it what they waited for. */
import type { Lane, Lanes } from '../api/types.gen';
import { type TimeRange, type WaterfallBox, xOf } from '../logic/waterfall';
import type { Palette } from './palette';

export const LANE_HEIGHT = 22;

/** The bar of a lane that is on a CPU all the time. */
const BAR_HEIGHT = 13;
const BAR_TOP = 2;
/** The line of waits below it. */
const WAIT_TOP = BAR_TOP + BAR_HEIGHT + 1;
const WAIT_HEIGHT = 4;

type Context = CanvasRenderingContext2D;

/** The horizontal edges of the pieces on the screen. */
function edgesOf(lanes: Lanes, range: TimeRange, box: WaterfallBox): (bin: number) => number {
  const length = (lanes.toNanos - lanes.fromNanos) / lanes.bins;
  return (bin) => Math.min(box.width, Math.max(box.nameWidth, xOf(box, range, lanes.fromNanos + bin * length)));
}

function drawLane(c: Context, lane: Lane, lanes: Lanes, edge: (bin: number) => number, y: number, palette: Palette): void {
  for (let bin = 0; bin < lanes.bins; bin++) {
    const left = edge(bin);
    const right = edge(bin + 1);
    if (right <= left) continue;
    const onCpu = (BAR_HEIGHT * (lane.onCpu[bin] ?? 0)) / 1_000;
    const runnable = (BAR_HEIGHT * (lane.runnable[bin] ?? 0)) / 1_000;
    // A full pixel beyond the edge, or the surface shows through between two pieces.
    const width = right - left + 0.5;
    c.fillStyle = palette.onCpu;
    if (onCpu > 0) c.fillRect(left, y + BAR_TOP + BAR_HEIGHT - onCpu, width, onCpu);
    if (runnable > 0) {
      c.globalAlpha = 0.4;
      c.fillRect(left, y + BAR_TOP + BAR_HEIGHT - onCpu - runnable, width, runnable);
      c.globalAlpha = 1;
    }
    const state = lanes.states[lane.rest[bin] ?? -1];
    if (state === undefined) continue;
    const colour = palette.waits[state];
    c.fillStyle = colour ?? palette.neutral;
    if (colour === undefined) c.fillRect(left, y + WAIT_TOP + WAIT_HEIGHT - 1, width, 1);
    else c.fillRect(left, y + WAIT_TOP, width, WAIT_HEIGHT);
  }
}

/** The selected or dragged range, over the whole height. */
export function drawBand(c: Context, from: number, to: number, height: number, palette: Palette): void {
  c.fillStyle = palette.accent;
  c.globalAlpha = 0.15;
  c.fillRect(from, 0, to - from, height);
  c.globalAlpha = 1;
  c.fillRect(from, 0, 1, height);
  c.fillRect(to - 1, 0, 1, height);
}

/** Where a range is on the time axis; `null` if it is not on the screen. */
export function bandOf(box: WaterfallBox, range: TimeRange, chosen: TimeRange): readonly [number, number] | null {
  const from = Math.max(box.nameWidth, xOf(box, range, chosen.start));
  const to = Math.min(box.width, xOf(box, range, chosen.end));
  return to <= box.nameWidth || from >= box.width ? null : [from, Math.max(to, from + 2)];
}

export interface LanesScene {
  readonly lanes: Lanes;
  /** Number of the selected thread. */
  readonly thread: number | null;
}

/** Draws all lanes; names are elements beside the canvas. */
export function drawLanes(
  c: Context,
  { lanes, thread }: LanesScene,
  range: TimeRange,
  box: WaterfallBox,
  band: readonly [number, number] | null,
  height: number,
  palette: Palette,
): void {
  const edge = edgesOf(lanes, range, box);
  for (const [row, lane] of lanes.threads.entries()) {
    const y = row * LANE_HEIGHT;
    if (lane.tid === thread) {
      c.fillStyle = palette.accentSoft;
      c.fillRect(0, y, box.width, LANE_HEIGHT);
    }
    c.fillStyle = palette.grid;
    c.fillRect(0, y + LANE_HEIGHT - 1, box.width, 1);
    drawLane(c, lane, lanes, edge, y, palette);
  }
  c.fillStyle = palette.border;
  c.fillRect(box.nameWidth - 1, 0, 1, height);
  if (band !== null) drawBand(c, band[0], band[1], height, palette);
}
