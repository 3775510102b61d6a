/**
 * Draws a flame graph downwards. The origin of the code sets a box's colour, or where there are waits the state of its time; boxes of the selected
 * function are highlighted.
 */

import type { NodeIndex } from '../base/brand';
import { at } from '../base/column';
import { ratio } from '../base/math';
import type { DrawnFlame } from '../logic/drawn-flame';
import { type FlameLevels, type FlameView, LEVEL_HEIGHT, levelOf, visitBoxes } from '../logic/flame-graph';
import { ranShare, showsStates, waitOfNode } from '../logic/flame-legend';
import { foldedRun } from '../logic/foreign-runs';
import { formatShare } from '../logic/format';
import { originOfPlaced, shorterNamesOfPlaced } from '../logic/placed-function';
import { hueOf, type Palette } from './palette';
import { stateFill } from './state-fill';
import type { SurfaceSize } from './surface';
import { fitOneOf, widthOf } from './text';

export interface FlameScene {
  readonly graph: FlameLevels;
  /** Node that fills the width; its callers are fainter. */
  readonly zoomed: NodeIndex;
  /** Boxes to highlight: those of the selected function, or of functions that were searched for. */
  readonly selected: ReadonlySet<number>;
}

/** Narrower boxes merge into one. */
const BOX_WIDTH_MIN = 1;
const LABEL_WIDTH_MIN = 24;
const FONT_SIZE = 11.5;
/** Height of the strip of states at the lower edge of a box. */
const STRIP_HEIGHT = 5;

/** The look of a function's boxes, computed once per function of a graph. */
interface FrameLook {
  readonly hue: number | null;
  readonly hatched: boolean;
  readonly names: readonly string[];
}

const looks = new WeakMap<FlameLevels, (FrameLook | undefined)[]>();

function lookOf(graph: FlameLevels, frame: number): FrameLook {
  let known = looks.get(graph);
  if (known === undefined) {
    known = [];
    looks.set(graph, known);
  }
  const found = known[frame];
  if (found !== undefined) return found;
  const entry = graph.flame.frames[frame];
  const placed = entry ?? { function: '', file: '', line: 0 };
  const origin = originOfPlaced(placed);
  const look: FrameLook = {
    hue: origin.kind === 'crate' ? hueOf(origin.name) : null,
    hatched: entry?.reason !== null && entry?.reason !== undefined,
    names: shorterNamesOfPlaced(placed),
  };
  known[frame] = look;
  return look;
}

/** The label of a folded run, from long to short. */
function namesOfRun({ flame, boxes }: FlameLevels, first: NodeIndex): readonly string[] {
  const { whose, frames } = foldedRun(flame, boxes, first);
  return [`${whose} · ${frames} ▸`, `${frames} ▸`, '▸'];
}

/** Slanting lines: no function name here. */
function hatch(c: CanvasRenderingContext2D, x: number, y: number, width: number, palette: Palette): void {
  c.save();
  c.beginPath();
  c.rect(x, y, width, LEVEL_HEIGHT - 1);
  c.clip();
  c.strokeStyle = palette.border;
  c.lineWidth = 1;
  c.beginPath();
  for (let step = x - LEVEL_HEIGHT; step < x + width; step += 5) {
    c.moveTo(step, y + LEVEL_HEIGHT);
    c.lineTo(step + LEVEL_HEIGHT, y);
  }
  c.stroke();
  c.restore();
}

function groundOf(hue: number | null, palette: Palette): string {
  return hue === null ? palette.neutralTint : (palette.tints[hue] ?? palette.neutralTint);
}

/** The ground of a box by what most of its time was. */
function stateGround(flame: DrawnFlame, node: NodeIndex, palette: Palette): string {
  return ranShare(flame, node) > 0.5 ? palette.onCpuTint : palette.neutralTint;
}

/** The strip of states: time on a CPU on the left, then the waits as what most of them were for. */
function drawStates(
  c: CanvasRenderingContext2D,
  flame: DrawnFlame,
  node: NodeIndex,
  x: number,
  y: number,
  width: number,
  palette: Palette,
): void {
  const wait = waitOfNode(flame, node);
  const ran = wait === null ? width : ranShare(flame, node) * width;
  c.fillStyle = stateFill(c, 'on_cpu', palette);
  c.fillRect(x, y, ran, STRIP_HEIGHT);
  if (wait === null) return;
  c.fillStyle = stateFill(c, wait, palette);
  c.fillRect(x + ran, y, width - ran, STRIP_HEIGHT);
}

export function drawFlameGraph(c: CanvasRenderingContext2D, scene: FlameScene, view: FlameView, size: SurfaceSize, palette: Palette): void {
  const { graph, zoomed, selected } = scene;
  const { flame } = graph;
  const zoomLevel = levelOf(graph, zoomed);
  const whole = at(flame.nodes.totalNanos, 0);
  const hasStates = showsStates(flame);
  c.textBaseline = 'middle';
  visitBoxes(graph, view, size.width, size.height, BOX_WIDTH_MIN, (node, x, y, width) => {
    const frame = at(flame.nodes.frame, node);
    const isSelected = selected.has(node);
    const isRun = graph.boxes.folded.has(node);
    const look = frame >= 0 && !isRun ? lookOf(graph, frame) : null;
    const isCaller = levelOf(graph, node) < zoomLevel;
    const hue = look?.hue ?? null;
    c.globalAlpha = isCaller ? 0.55 : 1;
    c.fillStyle = isSelected ? palette.accent : hasStates ? stateGround(flame, node, palette) : groundOf(hue, palette);
    const boxWidth = Math.max(width - (width > 3 ? 1 : 0), BOX_WIDTH_MIN);
    c.fillRect(x, y, boxWidth, LEVEL_HEIGHT - 1);
    if (hasStates) drawStates(c, flame, node, x, y + LEVEL_HEIGHT - 1 - STRIP_HEIGHT, boxWidth, palette);
    else if (width > 3) {
      // The tint alone is too pale to be seen on the surface: a line below the box, and all around it where colours are forced.
      c.strokeStyle = palette.edge ?? (hue === null ? palette.neutral : (palette.hues[hue] ?? palette.neutral));
      c.lineWidth = 1;
      if (palette.edge !== null) c.strokeRect(x + 0.5, y + 0.5, boxWidth - 1, LEVEL_HEIGHT - 2);
      else c.strokeRect(x + 0.5, y + LEVEL_HEIGHT - 1.5, boxWidth - 1, 0);
    }
    if (look?.hatched === true && width > 4) hatch(c, x, y, boxWidth, palette);
    c.globalAlpha = 1;
    if (width < LABEL_WIDTH_MIN) return;
    c.fillStyle = isSelected ? palette.accentText : palette.text;
    const middle = y + (LEVEL_HEIGHT - (hasStates ? STRIP_HEIGHT : 0)) / 2;
    let room = width - 9;
    c.font = `${FONT_SIZE - 1}px ${palette.sans}`;
    const share = formatShare(ratio(at(flame.nodes.totalNanos, node), whole));
    const shareWidth = widthOf(c, share);
    if (room > shareWidth + 90) {
      c.globalAlpha = 0.75;
      c.fillText(share, x + width - 6 - shareWidth, middle);
      c.globalAlpha = 1;
      room -= shareWidth + 8;
    }
    c.font = `${frame < 0 ? '600 ' : ''}${FONT_SIZE}px ${look === null ? palette.sans : palette.mono}`;
    const label = fitOneOf(c, look?.names ?? (isRun ? namesOfRun(graph, node) : [flame.title]), room);
    if (label !== '') c.fillText(label, x + 4, middle + 0.5);
  });
}

/** Outlines the box under the pointer and the one with the keyboard focus. */
export function drawFlamePointer(
  c: CanvasRenderingContext2D,
  scene: FlameScene,
  view: FlameView,
  hovered: NodeIndex | null,
  focused: NodeIndex | null,
  size: SurfaceSize,
  palette: Palette,
): void {
  const { flame, boxes } = scene.graph;
  const scale = size.width / (view.endNanos - view.startNanos);
  const outline = (shown: NodeIndex, colour: string, lineWidth: number): void => {
    const node = at(boxes.boxOf, shown) as NodeIndex;
    const left = Math.max(0, (at(flame.nodes.offsetNanos, node) - view.startNanos) * scale);
    const right = Math.min(size.width, (at(flame.nodes.offsetNanos, node) + at(flame.nodes.totalNanos, node) - view.startNanos) * scale);
    const y = levelOf(scene.graph, node) * LEVEL_HEIGHT - view.top;
    c.strokeStyle = colour;
    c.lineWidth = lineWidth;
    c.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 2), LEVEL_HEIGHT - 2);
  };
  if (hovered !== null) outline(hovered, palette.text, 1);
  if (focused !== null) outline(focused, palette.accent, 2);
}
