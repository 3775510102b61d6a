/** Draws the rows of a trace. It visits only visible rows, and within a row draws pieces narrower than a pixel once. */
import { SPAN_FLAG } from '../api/checks';
import type { Pole, Tree } from '../api/types.gen';
import type { RowIndex, SpanIndex } from '../base/brand';
import { at } from '../base/column';
import { isWorthwhile } from '../logic/answer';
import { type CriticalPath, piecesOf } from '../logic/critical-path';
import { counted, formatDuration, formatRange, formatShare, formatTick } from '../logic/format';
import { spanHandle } from '../logic/handles';
import { type Fold, isFolded, isMarked, markedBelow, rowOf } from '../logic/rows';
import { serviceOfSpan } from '../logic/span-words';
import {
  childCoverage,
  INDENT,
  indentOf,
  ROW_HEIGHT,
  RULER_HEIGHT,
  rowsOnScreen,
  ticksOf,
  type WaterfallBox,
  type WaterfallView,
  xOf,
  yOf,
} from '../logic/waterfall';
import { drawBand } from './draw-lanes';
import { hueOfService, type Palette } from './palette';
import { fit, widthOf } from './text';

/** The content to draw, independent of its visible part. */
export interface WaterfallScene {
  readonly tree: Tree;
  readonly path: CriticalPath;
  readonly rows: Uint32Array;
  readonly fold: Fold;
  readonly selected: SpanIndex | null;
  /** Spans in which the selected function ran, ascending, and the share of their samples that contain it. */
  readonly marked: Uint32Array;
  readonly shareOf: ReadonlyMap<number, number>;
  readonly poleOf: ReadonlyMap<number, Pole>;
  readonly selectedPole: string | null;
  /** What the first row stands for. */
  readonly rootTag: 'process' | 'trace' | 'file';
}

const BAR_TOP = 5;
const BAR_HEIGHT = 11;
const PATH_TOP = 18;
const PATH_HEIGHT = 3;
/** Least width of a bar, so that the shortest span is visible. */
const BAR_WIDTH_MIN = 2;
/** Least width of the column for tags beside a name. */
const NAME_ROOM_MIN = 150;
/** Least width of the column for a function's share, which the bar's frame shows too. */
const SHARE_ROOM_MIN = 110;
/** Length of the critical path's line towards a row off the screen. */
const STUB = 7;
/** Lines of one row closer than this merge. */
const CONNECTION_GAP = 4;
const FONT_SIZE = 12;
const SMALL_SIZE = 11;

type Context = CanvasRenderingContext2D;

// Grows to the widest screen; holds one row at a time.
let coverage = new Int32Array(0);

function coverageOf(width: number): Int32Array {
  if (coverage.length < width + 1) coverage = new Int32Array(width + 1);
  return coverage.subarray(0, width + 1);
}

function drawAxis(c: Context, view: WaterfallView, box: WaterfallBox, palette: Palette): void {
  const { step, times } = ticksOf(view.range, box.width - box.nameWidth);
  c.fillStyle = palette.grid;
  for (const time of times) {
    const x = Math.round(xOf(box, view.range, time));
    if (x >= box.nameWidth) c.fillRect(x, RULER_HEIGHT - 5, 1, box.height);
  }
  c.font = `${SMALL_SIZE}px ${palette.sans}`;
  c.fillStyle = palette.muted;
  c.textBaseline = 'middle';
  for (const time of times) {
    const label = formatTick(time, step);
    const x = Math.round(xOf(box, view.range, time)) + 4;
    if (x >= box.nameWidth && x + widthOf(c, label) < box.width - 2) c.fillText(label, x, RULER_HEIGHT / 2 - 1);
  }
  c.fillStyle = palette.border;
  c.fillRect(0, RULER_HEIGHT - 1, box.width, 1);
}

function drawFoldMark(c: Context, x: number, middle: number, folded: boolean, palette: Palette): void {
  c.fillStyle = palette.muted;
  c.beginPath();
  if (folded) {
    c.moveTo(x + 2, middle - 4);
    c.lineTo(x + 7, middle);
    c.lineTo(x + 2, middle + 4);
  } else {
    c.moveTo(x, middle - 2.5);
    c.lineTo(x + 8, middle - 2.5);
    c.lineTo(x + 4, middle + 3);
  }
  c.fill();
}

/** A small label in a frame with its right edge at `right`. Returns the right edge for the next one to the left. */
function drawPill(c: Context, right: number, middle: number, text: string, ink: string, fill: string | null, palette: Palette): number {
  c.font = `600 10px ${palette.sans}`;
  const width = Math.ceil(widthOf(c, text)) + 10;
  const left = right - width;
  c.beginPath();
  c.roundRect(left + 0.5, middle - 7.5, width - 1, 15, 4);
  if (fill !== null) {
    c.fillStyle = fill;
    c.fill();
  } else {
    c.strokeStyle = ink;
    c.lineWidth = 1;
    c.stroke();
  }
  c.fillStyle = ink;
  c.fillText(text, left + 5, middle + 0.5);
  return left - 4;
}

/** The mark of a failed span: a cross in a disc. */
function drawErrorMark(c: Context, x: number, middle: number, palette: Palette): void {
  c.fillStyle = palette.error;
  c.beginPath();
  c.arc(x + 6, middle, 6, 0, 2 * Math.PI);
  c.fill();
  c.strokeStyle = palette.surface;
  c.lineWidth = 1.5;
  c.beginPath();
  c.moveTo(x + 3.5, middle - 2.5);
  c.lineTo(x + 8.5, middle + 2.5);
  c.moveTo(x + 8.5, middle - 2.5);
  c.lineTo(x + 3.5, middle + 2.5);
  c.stroke();
}

/** Lines from a parent down to its children; dashed if the parent is inferred. */
function drawBranch(c: Context, tree: Tree, span: SpanIndex, y: number, nameWidth: number, palette: Palette): void {
  const depth = at(tree.spans.depth, span);
  if (depth === 0) return;
  const x = indentOf(depth - 1, nameWidth) + 4.5;
  const end = indentOf(depth, nameWidth) - 2;
  if (end - x < 4) return;
  c.strokeStyle = palette.border;
  c.lineWidth = 1;
  if ((at(tree.spans.flags, span) & SPAN_FLAG.parentInferred) !== 0) {
    c.strokeStyle = palette.muted;
    c.setLineDash([2, 2]);
  }
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x, y + ROW_HEIGHT / 2);
  c.lineTo(end, y + ROW_HEIGHT / 2);
  c.stroke();
  c.setLineDash([]);
  // The lines of ancestors that have more children below.
  c.strokeStyle = palette.border;
  for (let above = at(tree.spans.parent, span), child = span as number; above >= 0; child = above, above = at(tree.spans.parent, above)) {
    const last = child + at(tree.spans.subtree, child) === above + at(tree.spans.subtree, above);
    const lineX = indentOf(at(tree.spans.depth, above), nameWidth) + 4.5;
    // All levels beyond the last indented one share one line, which belongs to none of them.
    if (last || lineX >= indentOf(at(tree.spans.depth, above) + 1, nameWidth)) continue;
    c.beginPath();
    c.moveTo(lineX, y);
    c.lineTo(lineX, y + ROW_HEIGHT);
    c.stroke();
  }
}

/** Short words for the unusual facts about a span, for a row. */
function tagsOf(flags: number, process: string): readonly string[] {
  const tags: string[] = [];
  if ((flags & SPAN_FLAG.process) !== 0) tags.push(process);
  if ((flags & SPAN_FLAG.orphan) !== 0) tags.push('orphan');
  if ((flags & SPAN_FLAG.cycle) !== 0) tags.push('cycle');
  if ((flags & SPAN_FLAG.clamped) !== 0) tags.push('≈ times');
  return tags;
}

function drawName(c: Context, scene: WaterfallScene, span: SpanIndex, y: number, box: WaterfallBox, palette: Palette): void {
  const { tree } = scene;
  const flags = at(tree.spans.flags, span);
  const middle = y + ROW_HEIGHT / 2;
  drawBranch(c, tree, span, y, box.nameWidth, palette);
  const mark = indentOf(at(tree.spans.depth, span), box.nameWidth);
  let right = box.nameWidth - 8;
  const pole = scene.poleOf.get(span);
  const share = scene.shareOf.get(span);
  if (pole !== undefined) {
    const chosen = pole.handle === scene.selectedPole;
    right = drawPill(c, right, middle, pole.handle, chosen ? palette.pathText : palette.path, chosen ? palette.path : null, palette);
  }
  if (share !== undefined && right - mark > SHARE_ROOM_MIN)
    right = drawPill(c, right, middle, formatShare(share), palette.accentText, palette.accent, palette);
  const folded = at(tree.spans.subtree, span) > 0 && isFolded(scene.fold, span);
  if (folded) {
    const hidden = markedBelow(tree, scene.marked, span);
    if (hidden > 0) right = drawPill(c, right, middle, `${hidden} inside`, palette.accent, null, palette);
    right = drawPill(c, right, middle, `+${at(tree.spans.subtree, span)}`, palette.muted, null, palette);
  }
  // In a narrow column the name comes first; tooltip and treegrid have the tags, too.
  for (const tag of tagsOf(flags, span === 0 ? scene.rootTag : 'process')) {
    if (right - mark > NAME_ROOM_MIN) right = drawPill(c, right, middle, tag, palette.muted, null, palette);
  }
  if (at(tree.spans.subtree, span) > 0) drawFoldMark(c, mark, middle, folded, palette);
  let left = mark + INDENT;
  const isProcess = (flags & SPAN_FLAG.process) !== 0;
  c.fillStyle = isProcess ? palette.neutral : strongOf(palette, at(tree.spans.service, span));
  c.beginPath();
  c.roundRect(left, middle - 5, 3, 10, 1.5);
  c.fill();
  left += 8;
  if ((flags & SPAN_FLAG.error) !== 0) {
    drawErrorMark(c, left, middle, palette);
    left += 16;
  }
  const onPath = at(tree.spans.onPathNanos, span) > 0;
  c.font = `${onPath ? '600 ' : ''}${FONT_SIZE}px ${isProcess ? palette.mono : palette.sans}`;
  c.fillStyle = palette.text;
  const name = fit(c, tree.names[at(tree.spans.name, span)] ?? '', right - left);
  c.fillText(name, left, middle + 0.5);
  // The service name appears where it changes; its coloured mark continues below.
  const above = at(tree.spans.parent, span);
  const service = serviceOfSpan(tree, span);
  if (
    service === '' ||
    (above >= 0 && at(tree.spans.service, above) === at(tree.spans.service, span)) ||
    service === tree.names[at(tree.spans.name, span)]
  )
    return;
  left += widthOf(c, name) + 7;
  c.font = `${SMALL_SIZE}px ${palette.sans}`;
  c.fillStyle = palette.muted;
  c.fillText(fit(c, service, right - left), left, middle + 0.5);
}

function strongOf(palette: Palette, service: number): string {
  return palette.hues[hueOfService(service)] ?? palette.neutral;
}

function tintOf(palette: Palette, service: number): string {
  return palette.tints[hueOfService(service)] ?? palette.neutralTint;
}

/** The place of a row's bar on the screen. */
interface Bar {
  readonly span: SpanIndex;
  readonly from: number;
  readonly to: number;
  readonly middle: number;
}

/** The bar: strong for the span's own time, light where a child covers it. `null` if it is not on the screen. */
function drawBar(
  c: Context,
  scene: WaterfallScene,
  view: WaterfallView,
  box: WaterfallBox,
  span: SpanIndex,
  y: number,
  palette: Palette,
): Bar | null {
  const { tree } = scene;
  const start = at(tree.spans.startNanos, span);
  const end = start + at(tree.spans.durationNanos, span);
  const left = xOf(box, view.range, start);
  const right = Math.max(xOf(box, view.range, end), left + BAR_WIDTH_MIN);
  const middle = y + ROW_HEIGHT / 2 - 1;
  if (right <= box.nameWidth || left >= box.width) {
    drawElsewhere(c, left >= box.width, middle, box, palette);
    return null;
  }
  const isProcess = (at(tree.spans.flags, span) & SPAN_FLAG.process) !== 0;
  const service = at(tree.spans.service, span);
  const strong = isProcess ? palette.neutral : strongOf(palette, service);
  const from = Math.max(box.nameWidth, left);
  const to = Math.min(box.width, right);
  const top = y + BAR_TOP;
  c.fillStyle = isProcess ? palette.surface : tintOf(palette, service);
  c.fillRect(from, top, to - from, BAR_HEIGHT);
  c.fillStyle = strong;
  if (at(tree.spans.subtree, span) === 0) {
    if (!isProcess) c.fillRect(from, top, to - from, BAR_HEIGHT);
  } else {
    const width = Math.ceil(box.width - box.nameWidth);
    const covered = coverageOf(width);
    childCoverage(tree, span, view.range, covered);
    const last = Math.min(width, Math.round(to - box.nameWidth));
    // A process is an outline, so its own time is a thin line inside.
    const inset = isProcess ? 4 : 0;
    for (let x = Math.max(0, Math.round(from - box.nameWidth)); x < last; ) {
      const isCovered = at(covered, x) > 0;
      let run = x + 1;
      while (run < last && at(covered, run) > 0 === isCovered) run += 1;
      if (!isCovered) c.fillRect(box.nameWidth + x, top + inset, run - x, BAR_HEIGHT - 2 * inset);
      x = run;
    }
  }
  // The tint alone is too pale to be seen on the surface.
  c.strokeStyle = palette.edge ?? strong;
  c.lineWidth = 1;
  c.strokeRect(from + 0.5, top + 0.5, Math.max(1, to - from - 1), BAR_HEIGHT - 1);
  if (isMarked(scene.marked, span)) {
    c.strokeStyle = palette.accent;
    c.lineWidth = 2;
    c.strokeRect(from - 1, top - 1, to - from + 2, BAR_HEIGHT + 2);
  }
  return { span, from, to, middle };
}

/** An arrow towards a span outside the time range. */
function drawElsewhere(c: Context, isRight: boolean, middle: number, box: WaterfallBox, palette: Palette): void {
  c.fillStyle = palette.muted;
  const x = isRight ? box.width - 6 : box.nameWidth + 6;
  const step = isRight ? -5 : 5;
  c.beginPath();
  c.moveTo(x, middle);
  c.lineTo(x + step, middle - 3.5);
  c.lineTo(x + step, middle + 3.5);
  c.fill();
}

/** The saving of a pole, on its row that is longest on the path: each of the others has the handle of the pole beside its name. */
function savesOnRow(pole: Pole, span: SpanIndex): string {
  if (pole.count > 1 && pole.spans[0] !== spanHandle(span)) return '';
  const others = pole.count > 1 ? ` with ${counted(pole.count - 1, 'other')}` : '';
  return `${pole.evidence === 'declared' ? '◆' : '◇'} saves ${formatRange(pole.savesIfZeroNanos)}${others}`;
}

/** Duration and saving, beside the bar and above the lines of the critical path that cross the row. */
function drawBarLabel(c: Context, scene: WaterfallScene, { span, from, to, middle }: Bar, box: WaterfallBox, palette: Palette): void {
  const { tree } = scene;
  c.font = `${SMALL_SIZE}px ${palette.sans}`;
  const duration = formatDuration(at(tree.spans.durationNanos, span));
  const pole = scene.poleOf.get(span);
  const saves = pole === undefined || !isWorthwhile(pole.savesIfZeroNanos, tree.wallNanos) ? '' : savesOnRow(pole, span);
  const durationWidth = widthOf(c, duration);
  const savesWidth = saves === '' ? 0 : widthOf(c, saves) + 8;
  const width = durationWidth + savesWidth;
  let x = to + 6;
  let ink = palette.muted;
  let ground = span === scene.selected ? palette.accentSoft : palette.surface;
  if (x + width > box.width - 4) {
    x = from - 6 - width;
    if (x < box.nameWidth + 4) {
      // No room on either side: the label is on the bar, on its own plate to be readable on any colour.
      x = to - width - 12;
      if (x < from + 4) return;
      c.fillStyle = palette.surface;
      c.beginPath();
      c.roundRect(x - 4, middle - 8, width + 8, 16, 3);
      c.fill();
      ink = palette.text;
      ground = palette.surface;
    }
  }
  drawOnGround(c, duration, x, middle + 0.5, ink, ground);
  if (saves !== '') {
    drawOnGround(c, saves, x + durationWidth + 8, middle + 0.5, palette.path, ground);
  }
}

/** Text with an outline in the background colour, so that no line runs through its letters. */
function drawOnGround(c: Context, text: string, x: number, y: number, ink: string, ground: string): void {
  c.strokeStyle = ground;
  c.lineWidth = 3;
  c.lineJoin = 'round';
  c.strokeText(text, x, y);
  c.fillStyle = ink;
  c.fillText(text, x, y);
}

/** The line from the end of a piece to the next row of the path. */
function drawConnection(c: Context, x: number, y: number, nextY: number, box: WaterfallBox): void {
  const from = y + PATH_TOP + PATH_HEIGHT / 2;
  const whole = nextY + PATH_TOP + PATH_HEIGHT / 2;
  // A line to a row off the screen would cross all others and lead nowhere.
  const isOnScreen = whole > RULER_HEIGHT && whole < box.height;
  const to = isOnScreen ? whole : from + Math.sign(whole - from) * STUB;
  c.globalAlpha = 0.55;
  c.fillRect(Math.round(x) - 0.5, Math.min(from, to), 1, Math.abs(to - from));
  c.globalAlpha = 1;
}

/** The pieces of the critical path in a row, including those of folded descendants, and the lines to the next rows of the path. */
function drawPath(
  c: Context,
  scene: WaterfallScene,
  view: WaterfallView,
  box: WaterfallBox,
  span: SpanIndex,
  row: RowIndex,
  y: number,
  palette: Palette,
): void {
  const { tree, path, rows, fold } = scene;
  const folded = at(tree.spans.subtree, span) > 0 && isFolded(fold, span);
  const [first, last] = piecesOf(path, tree, span, folded);
  if (first === last) return;
  const width = Math.ceil(box.width - box.nameWidth);
  const covered = coverageOf(width);
  covered.fill(0);
  let connected = Number.NEGATIVE_INFINITY;
  c.fillStyle = palette.path;
  for (let piece = first; piece < last; piece++) {
    const start = xOf(box, view.range, at(path.start, piece)) - box.nameWidth;
    const end = xOf(box, view.range, at(path.end, piece)) - box.nameWidth;
    if (end < 0 || start >= width) continue;
    const left = Math.max(0, Math.floor(start));
    const right = Math.min(width, Math.max(left + 1, Math.round(end)));
    covered[left] = at(covered, left) + 1;
    covered[right] = at(covered, right) - 1;
    const next = at(path.next, piece);
    if (next < 0 || end > width || Math.abs(end - connected) < CONNECTION_GAP) continue;
    const nextRow = rowOf(rows, next as SpanIndex);
    if (nextRow === row) continue;
    connected = end;
    drawConnection(c, box.nameWidth + end, y, yOf(view, nextRow), box);
  }
  let open = 0;
  let from = 0;
  for (let x = 0; x <= width; x++) {
    const before = open;
    open += at(covered, x);
    if (before === 0 && open > 0) from = x;
    else if (before > 0 && open === 0) c.fillRect(box.nameWidth + from, y + PATH_TOP, x - from, PATH_HEIGHT);
  }
}

/** Draws axis, names, bars and the critical path. */
export function drawWaterfall(c: Context, scene: WaterfallScene, view: WaterfallView, box: WaterfallBox, palette: Palette): void {
  const [first, last] = rowsOnScreen(view, box, scene.rows.length);
  c.save();
  c.beginPath();
  c.rect(0, RULER_HEIGHT, box.width, box.height - RULER_HEIGHT);
  c.clip();
  c.textBaseline = 'middle';
  for (let row = first; row < last; row++) {
    const span = at(scene.rows, row) as SpanIndex;
    const y = yOf(view, row);
    const inPole = scene.selectedPole !== null && scene.poleOf.get(span)?.handle === scene.selectedPole;
    if (span !== scene.selected && !inPole) continue;
    c.fillStyle = span === scene.selected ? palette.accentSoft : palette.hover;
    c.fillRect(0, y, box.width, ROW_HEIGHT);
    c.fillStyle = palette.accent;
    if (span === scene.selected) c.fillRect(0, y, 3, ROW_HEIGHT);
  }
  c.restore();
  drawAxis(c, view, box, palette);
  const bars: Bar[] = [];
  c.save();
  c.beginPath();
  c.rect(0, RULER_HEIGHT, box.width, box.height - RULER_HEIGHT);
  c.clip();
  for (let row = first; row < last; row++) {
    const span = at(scene.rows, row) as SpanIndex;
    const y = yOf(view, row as RowIndex);
    const bar = drawBar(c, scene, view, box, span, y, palette);
    if (bar !== null) bars.push(bar);
    drawPath(c, scene, view, box, span, row as RowIndex, y, palette);
  }
  for (const bar of bars) drawBarLabel(c, scene, bar, box, palette);
  c.beginPath();
  c.rect(0, RULER_HEIGHT, box.nameWidth, box.height - RULER_HEIGHT);
  c.clip();
  for (let row = first; row < last; row++) {
    drawName(c, scene, at(scene.rows, row) as SpanIndex, yOf(view, row as RowIndex), box, palette);
  }
  c.restore();
  c.fillStyle = palette.border;
  c.fillRect(box.nameWidth - 1, 0, 1, box.height);
}

/** The state of pointer and keyboard, on its own canvas so that the rows need no redraw. */
export interface WaterfallPointer {
  /** Row under the pointer. */
  readonly row: RowIndex | null;
  /** The pointer's position, if it is over the time axis. */
  readonly x: number | null;
  /** Row with the keyboard focus. */
  readonly focus: RowIndex | null;
  /** Time range that the reader is dragging on the ruler, in pixels. */
  readonly drag: readonly [number, number] | null;
}

/** Draws hover, focus, the time under the pointer and the selected range (`band`, in pixels). */
export function drawWaterfallPointer(
  c: Context,
  pointer: WaterfallPointer,
  band: readonly [number, number] | null,
  view: WaterfallView,
  box: WaterfallBox,
  time: string | null,
  palette: Palette,
): void {
  if (band !== null) drawBand(c, band[0], band[1], box.height, palette);
  c.save();
  c.beginPath();
  c.rect(0, RULER_HEIGHT, box.width, box.height - RULER_HEIGHT);
  c.clip();
  if (pointer.row !== null) {
    c.fillStyle = palette.text;
    c.globalAlpha = 0.05;
    c.fillRect(0, yOf(view, pointer.row), box.width, ROW_HEIGHT);
    c.globalAlpha = 1;
  }
  if (pointer.focus !== null) {
    c.strokeStyle = palette.accent;
    c.lineWidth = 2;
    c.strokeRect(1, yOf(view, pointer.focus) + 1, box.width - 2, ROW_HEIGHT - 2);
  }
  c.restore();
  if (pointer.x === null || time === null) return;
  c.fillStyle = palette.muted;
  c.fillRect(Math.round(pointer.x), RULER_HEIGHT - 4, 1, box.height);
  c.font = `600 ${SMALL_SIZE}px ${palette.sans}`;
  c.textBaseline = 'middle';
  const width = widthOf(c, time) + 10;
  const x = Math.min(Math.max(pointer.x - width / 2, box.nameWidth), box.width - width);
  c.fillStyle = palette.surface;
  c.fillRect(x - 2, 2, width + 4, RULER_HEIGHT - 6);
  c.fillStyle = palette.text;
  c.fillText(time, x + 5, RULER_HEIGHT / 2 - 1);
}
