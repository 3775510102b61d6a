/**
 * The drawing of a map of services: callers to the left of callees, few lines that cross. Sizes in CSS pixels.
 *
 *     ┌──────┐          ┌──────┐              ┌────────┐      a column is a layer: one more than that of the
 *     │ shop ├─────────►│ cart ├─────────────►│ prices │      last caller
 *     └──────┘╲         └──────┘        ╱────►└────────┘
 *              ╲────────·──────·───────╱                      a line across a column has a bend on both sides of it
 *
 * In a circle of calls one is taken for its opposite; its line has the head of the arrow at the left.
 */
import type { MappedService, ServiceCalls, ServiceMap } from '../api/types.gen';
import { clamp, ratio } from '../base/math';
import { formatCount, formatDuration } from './format';
import { errorShare } from './service-map';

/** A service. */
export const BOX = { width: 176, height: 62, padding: 11 } as const;
/** Between columns, where the lines and their labels are: four columns fit into a window of 1280 pixels. */
const COLUMN_GAP = 162;
const EDGE = 14;
/** Above and below: a label may stand there. */
const TOP = 20;
/** The least distance between the edges of boxes of a column, and between a line and anything else. */
const BOX_GAP = 22;
const LINE_GAP = 12;
const LINE_HEIGHT = 8;

/** Services and calls that are drawn, those with the most requests: the tables have all. A picture of more is a thicket. */
export const SERVICES_DRAWN_MAX = 150;
const CALLS_DRAWN_MAX = 600;

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Rectangle extends Point {
  readonly width: number;
  readonly height: number;
}

/** A service in the drawing; `x` and `y` are its upper left corner. */
export interface ServiceBox extends Point {
  readonly service: MappedService;
  readonly column: number;
}

/** What stands on a line, around its centre. */
export interface LineLabel extends Rectangle {
  /** Whether there is room for it; if not, it is shown while somebody points at the line. */
  readonly fits: boolean;
}

/** Calls in the drawing. */
export interface CallLine {
  readonly calls: ServiceCalls;
  /** The boxes at its ends. */
  readonly left: number;
  readonly right: number;
  /** From the caller to the callee: a curve from each even one to the next, a straight line from each odd one. */
  readonly points: readonly Point[];
  readonly width: number;
  readonly label: LineLabel;
}

/** The drawing. */
export interface MapLayout {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly ServiceBox[];
  readonly lines: readonly CallLine[];
  /** Services that are not drawn. */
  readonly omitted: number;
}

/** An arrow between two numbered things, from the left to the right. */
interface Edge {
  readonly from: number;
  readonly to: number;
}

/** The edges that a walk from these starts finds to close a circle: without them there is none. */
function closing(edgesOf: readonly (readonly number[])[], edges: readonly Edge[], starts: readonly number[]): ReadonlySet<number> {
  const found = new Set<number>();
  const state = new Uint8Array(edgesOf.length);
  const [UNSEEN, OPEN, DONE] = [0, 1, 2];
  for (const start of starts) {
    if (state[start] !== UNSEEN) continue;
    const stack = [{ node: start, next: 0 }];
    state[start] = OPEN;
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const edge = edgesOf[top.node]?.[top.next];
      top.next += 1;
      const to = edge === undefined ? undefined : edges[edge]?.to;
      if (edge === undefined || to === undefined) {
        state[top.node] = DONE;
        stack.pop();
      } else if (state[to] === OPEN) {
        found.add(edge);
      } else if (state[to] === UNSEEN) {
        state[to] = OPEN;
        stack.push({ node: to, next: 0 });
      }
    }
  }
  return found;
}

/** The length of the longest way to each node. There is no circle. */
function longestWays(count: number, edges: readonly Edge[]): number[] {
  const ways = new Array<number>(count).fill(0);
  const into = new Array<number>(count).fill(0);
  const out: number[][] = Array.from({ length: count }, () => []);
  for (const { from, to } of edges) {
    out[from]?.push(to);
    into[to] = (into[to] ?? 0) + 1;
  }
  const ready = into.flatMap((callers, node) => (callers === 0 ? [node] : []));
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    for (const to of out[node] ?? []) {
      ways[to] = Math.max(ways[to] ?? 0, (ways[node] ?? 0) + 1);
      into[to] = (into[to] ?? 0) - 1;
      if (into[to] === 0) ready.push(to);
    }
  }
  return ways;
}

/** Services and bends by columns, and how they are tied to the column before and behind. */
interface Columns {
  readonly columnOf: number[];
  /** Neighbours in the next column to the left, and to the right. */
  readonly left: number[][];
  readonly right: number[][];
  /** For each edge what it goes through, from its left end to its right end. */
  readonly chains: readonly (readonly number[])[];
}

function columnsOf(count: number, edges: readonly Edge[]): Columns {
  const columnOf = longestWays(count, edges);
  const left: number[][] = columnOf.map(() => []);
  const right: number[][] = columnOf.map(() => []);
  const chains = edges.map(({ from, to }) => {
    const chain = [from];
    for (let column = (columnOf[from] ?? 0) + 1; column < (columnOf[to] ?? 0); column += 1) {
      chain.push(columnOf.length);
      columnOf.push(column);
      left.push([]);
      right.push([]);
    }
    chain.push(to);
    chain.forEach((node, place) => {
      const next = chain[place + 1];
      if (next === undefined) return;
      right[node]?.push(next);
      left[next]?.push(node);
    });
    return chain;
  });
  return { columnOf, left, right, chains };
}

/** How many lines cross between columns, where each column is in this order. */
export function crossings(order: readonly (readonly number[])[], right: readonly (readonly number[])[]): number {
  let count = 0;
  for (let column = 0; column + 1 < order.length; column += 1) {
    const place = new Map(order[column + 1]?.map((node, index) => [node, index]));
    // Two lines whose left ends are in order cross if their right ends are not.
    const ends: number[] = [];
    for (const node of order[column] ?? []) {
      const next = (right[node] ?? []).map((to) => place.get(to) ?? 0).sort((a, b) => a - b);
      for (const end of next) count += ends.length - placeAfter(ends, end);
      for (const end of next) ends.splice(placeAfter(ends, end), 0, end);
    }
  }
  return count;
}

/** The place behind all that are not above `value`. */
function placeAfter(ascending: readonly number[], value: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The largest; `Math.max` does not take as many as there may be. */
const largest = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** More sweeps change little, as a rule. */
const SWEEPS = 12;

/**
 * An order of each column with few crossings: each node goes to the barycentre of its neighbours, from one side and from the other in turns. Nodes
 * with the same one change places in every other pair of sweeps: a tie often stands between two better orders.
 */
function ordered({ columnOf, left, right }: Columns, starts: readonly number[]): readonly (readonly number[])[] {
  let order: number[][] = Array.from({ length: largest(columnOf) + 1 }, () => []);
  // First in the order of a walk, so that a tree has no crossing.
  const seen = new Set<number>();
  for (const start of starts) {
    const stack = [start];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (seen.has(node)) continue;
      seen.add(node);
      order[columnOf[node] ?? 0]?.push(node);
      stack.push(...(right[node] ?? []).toReversed());
    }
  }
  let best = order;
  let least = crossings(order, right);
  for (let sweep = 0; sweep < SWEEPS && least > 0; sweep += 1) {
    const isForth = sweep % 2 === 0;
    const [neighbours, first, step] = isForth ? [left, 1, 1] : [right, order.length - 2, -1];
    order = [...order];
    for (let column = first; column >= 0 && column < order.length; column += step) {
      const place = new Map(order[column - step]?.map((node, index) => [node, index]));
      const nodes = order[column] ?? [];
      const middle = new Map(
        nodes.map((node, index) => {
          const places = (neighbours[node] ?? []).map((other) => place.get(other) ?? 0);
          return [node, places.length === 0 ? index : mean(places)];
        }),
      );
      const tied = sweep % 4 < 2 ? [...nodes] : nodes.toReversed();
      order[column] = tied.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0));
    }
    const now = crossings(order, right);
    if (now < least) [best, least] = [order, now];
  }
  return best;
}

/**
 * Places in ascending order, each at least `distances[i]` behind the one before, and all together as near to the wanted ones as can be (least
 * squares). Those that would overlap are pushed from their mean.
 */
export function spread(wanted: readonly number[], distances: readonly number[]): readonly number[] {
  const pools: { sum: number; count: number }[] = [];
  let offset = 0;
  const offsets = wanted.map((_, index) => {
    offset += index === 0 ? 0 : (distances[index] ?? 0);
    return offset;
  });
  wanted.forEach((place, index) => {
    let pool = { sum: place - (offsets[index] ?? 0), count: 1 };
    for (let last = pools.at(-1); last !== undefined && last.sum / last.count >= pool.sum / pool.count; last = pools.at(-1)) {
      pool = { sum: last.sum + pool.sum, count: last.count + pool.count };
      pools.pop();
    }
    pools.push(pool);
  });
  const bases = pools.flatMap(({ sum, count }) => new Array<number>(count).fill(sum / count));
  return bases.map((base, index) => base + (offsets[index] ?? 0));
}

const PLACE_SWEEPS = 4;

/** The vertical centre of each node: near to those of its neighbours. */
function centres(columns: Columns, order: readonly (readonly number[])[], services: number): readonly number[] {
  const { columnOf, left, right } = columns;
  const isBox = (node: number) => node < services;
  const height = (node: number) => (isBox(node) ? BOX.height : LINE_HEIGHT);
  const distances = order.map((nodes) =>
    nodes.map((node, index) => {
      const before = nodes[index - 1];
      if (before === undefined) return 0;
      return (height(before) + height(node)) / 2 + (isBox(before) && isBox(node) ? BOX_GAP : LINE_GAP);
    }),
  );
  const centre = new Array<number>(columnOf.length).fill(0);
  order.forEach((nodes, column) => {
    let at = 0;
    nodes.forEach((node, index) => {
      at += distances[column]?.[index] ?? 0;
      centre[node] = at;
    });
  });
  const place = (column: number, wantedOf: (node: number) => readonly number[]): void => {
    const nodes = order[column] ?? [];
    const wanted = nodes.map((node) => {
      const others = wantedOf(node);
      return others.length > 0 ? mean(others.map((other) => centre[other] ?? 0)) : (centre[node] ?? 0);
    });
    spread(wanted, distances[column] ?? []).forEach((at, index) => {
      const node = nodes[index];
      if (node !== undefined) centre[node] = at;
    });
  };
  const around = (node: number, near: number[][], far: number[][]): readonly number[] =>
    (near[node] ?? []).length > 0 ? (near[node] ?? []) : (far[node] ?? []);
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep += 1) {
    for (const column of order.keys()) place(column, (node) => around(node, left, right));
    for (const column of [...order.keys()].toReversed()) place(column, (node) => around(node, right, left));
  }
  // A service that calls nobody goes back to its callers, if others pushed them.
  for (const column of order.keys()) place(column, (node) => ((right[node] ?? []).length > 0 ? [] : (left[node] ?? [])));
  const top = -largest(centre.map((place, node) => height(node) / 2 - place));
  return centre.map((place) => place - top + TOP);
}

const xOfColumn = (column: number): number => EDGE + column * (BOX.width + COLUMN_GAP);

/** Lines grow with the digits of their number of calls. */
function widthOf(calls: number): number {
  return clamp(1.25 + 1.1 * Math.log10(Math.max(1, calls)), 1.25, 7);
}

const WIDTH_MIN = 0.75;
/** The share of the side of a box that its lines may cover: with more of them, all are thinner. */
const COVERED_MAX = 0.5;

/** The widths of lines, which have room side by side at both of their ends. */
function widths(counts: readonly number[], edges: readonly Edge[]): readonly number[] {
  const wanted = counts.map(widthOf);
  const [leaving, coming] = [new Map<number, number>(), new Map<number, number>()];
  edges.forEach(({ from, to }, line) => {
    leaving.set(from, (leaving.get(from) ?? 0) + (wanted[line] ?? 0));
    coming.set(to, (coming.get(to) ?? 0) + (wanted[line] ?? 0));
  });
  return edges.map(({ from, to }, line) => {
    const covered = Math.max(leaving.get(from) ?? 0, coming.get(to) ?? 0);
    return Math.max(WIDTH_MIN, (wanted[line] ?? 0) * Math.min(1, (COVERED_MAX * BOX.height) / covered));
  });
}

/** The length of the head of an arrow on a line of this width. */
export function headLength(width: number): number {
  return 5 + 1.6 * width;
}

const halfHead = (width: number): number => 3 + width * 0.8;

/** Where the lines of a box meet one of its sides, in the order of their other ends. */
function ports(ends: readonly { readonly line: number; readonly other: number }[], centre: number): ReadonlyMap<number, number> {
  const inOrder = [...ends].sort((a, b) => a.other - b.other || a.line - b.line);
  const step = BOX.height / (inOrder.length + 1);
  return new Map(inOrder.map(({ line }, index) => [line, centre - BOX.height / 2 + step * (index + 1)]));
}

/** The drawing of a map. */
export function layoutOf(map: Pick<ServiceMap, 'services' | 'calls'>): MapLayout {
  const byRequests = [...map.services].sort((a, b) => b.requests.count - a.requests.count);
  const services = byRequests.slice(0, SERVICES_DRAWN_MAX);
  const indexOf = new Map(services.map(({ name }, index) => [name, index]));
  const calls = [...map.calls]
    .filter(({ caller, callee }) => caller !== callee && indexOf.has(caller) && indexOf.has(callee))
    .sort((a, b) => b.requests.count - a.requests.count)
    .slice(0, CALLS_DRAWN_MAX);
  const arrows = calls.map(({ caller, callee }) => ({ from: indexOf.get(caller) ?? 0, to: indexOf.get(callee) ?? 0 }));

  // First the services that people or timers call.
  const uncalled = services.map(({ requests }) => requests.count);
  const arrowsOf: number[][] = services.map(() => []);
  arrows.forEach(({ from, to }, arrow) => {
    uncalled[to] = (uncalled[to] ?? 0) - (calls[arrow]?.requests.count ?? 0);
    arrowsOf[from]?.push(arrow);
  });
  const starts = [...services.keys()].sort((a, b) => (uncalled[b] ?? 0) - (uncalled[a] ?? 0));
  const backwards = closing(arrowsOf, arrows, starts);
  const edges = arrows.map((arrow, index) => (backwards.has(index) ? { from: arrow.to, to: arrow.from } : arrow));

  const columns = columnsOf(services.length, edges);
  const sources = starts.filter((node) => columns.left[node]?.length === 0);
  const order = ordered(columns, sources);
  const centre = centres(columns, order, services.length);
  const at = (node: number): number => centre[node] ?? 0;
  const boxes = services.map((service, node) => {
    const column = columns.columnOf[node] ?? 0;
    return { service, column, x: xOfColumn(column), y: at(node) - BOX.height / 2 };
  });

  const rightPorts = new Map(services.map((_, node) => [node, ports(endsAt(columns.chains, node, 'right', at), at(node))]));
  const leftPorts = new Map(services.map((_, node) => [node, ports(endsAt(columns.chains, node, 'left', at), at(node))]));
  const widthsOfLines = widths(
    calls.map(({ requests }) => requests.count),
    edges,
  );
  const lines = calls.map((call, line): Omit<CallLine, 'label'> => {
    const chain = columns.chains[line] ?? [];
    const [left = 0, right = 0] = [chain[0], chain.at(-1)];
    const points = chain.flatMap((node, place): readonly Point[] => {
      const x = xOfColumn(columns.columnOf[node] ?? 0);
      if (place === 0) return [{ x: x + BOX.width, y: rightPorts.get(node)?.get(line) ?? at(node) }];
      if (place === chain.length - 1) return [{ x, y: leftPorts.get(node)?.get(line) ?? at(node) }];
      return [
        { x, y: at(node) },
        { x: x + BOX.width, y: at(node) },
      ];
    });
    return {
      calls: call,
      left,
      right,
      points: backwards.has(line) ? points.toReversed() : points,
      width: widthsOfLines[line] ?? WIDTH_MIN,
    };
  });
  const labels = labelled(lines);
  const bottom = largest(centre.map((place, node) => place + (node < services.length ? BOX.height : LINE_HEIGHT) / 2));
  return {
    width: xOfColumn(Math.max(0, order.length - 1)) + BOX.width + EDGE,
    height: bottom + TOP,
    boxes,
    lines: lines.map((line, index) => ({ ...line, label: labels[index] ?? { x: 0, y: 0, width: 0, height: 0, fits: false } })),
    omitted: byRequests.length - services.length,
  };
}

/** The lines that meet a side of a box, and where they come from. */
function endsAt(chains: Columns['chains'], node: number, side: 'left' | 'right', at: (node: number) => number) {
  return chains.flatMap((chain, line) => {
    const [end, other] = side === 'right' ? [chain[0], chain[1]] : [chain.at(-1), chain.at(-2)];
    return end === node && other !== undefined ? [{ line, other: at(other) }] : [];
  });
}

/** A point of the curve between two points, which is horizontal at both. */
function curveAt(from: Point, to: Point, t: number): Point {
  const middle = (from.x + to.x) / 2;
  const mix = (a: number, b: number, c: number, d: number) =>
    a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t ** 2 * (1 - t) + d * t ** 3;
  return { x: mix(from.x, middle, middle, to.x), y: mix(from.y, from.y, to.y, to.y) };
}

/** The path of a line, which ends where the head of its arrow begins. */
export function pathOf({ points, width }: Pick<CallLine, 'points' | 'width'>): string {
  const [first, ...rest] = points;
  if (first === undefined) return '';
  let [before, path] = [first, `M${first.x} ${round(first.y)}`];
  rest.forEach((point, index) => {
    const isEnd = index === rest.length - 1;
    const x = isEnd ? point.x - Math.sign(point.x - before.x) * headLength(width) : point.x;
    const middle = (before.x + x) / 2;
    path += index % 2 === 0 ? `C${round(middle)} ${round(before.y)} ${round(middle)} ${round(point.y)} ` : 'L';
    path += `${round(x)} ${round(point.y)}`;
    before = point;
  });
  return path;
}

/** The head of its arrow. */
export function headOf({ points, width }: Pick<CallLine, 'points' | 'width'>): string {
  const [before, tip] = points.slice(-2);
  if (before === undefined || tip === undefined) return '';
  const back = tip.x - Math.sign(tip.x - before.x) * headLength(width);
  const half = halfHead(width);
  return `M${tip.x} ${round(tip.y)}L${round(back)} ${round(tip.y - half)}V${round(tip.y + half)}Z`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

/** Texts of a label: calls and p99, and below them the errors if there are any. */
export function labelTexts({ requests }: ServiceCalls): readonly [string, string] {
  const { count, errors, p99Nanos } = requests;
  return [
    `${formatCount(count)} · p99 ${formatDuration(p99Nanos)}`,
    errors === 0 ? '' : `${formatCount(errors)} failed, ${errorShare(requests)}`,
  ];
}

export const LABEL_LINE_HEIGHT = 14;
const LABEL_SIZE = 11.5;
/** Where on a curve a label may stand, the best first. */
const PLACES = [0.5, 0.6, 0.4, 0.68, 0.32, 0.75, 0.25, 0.82, 0.18];

/** Whether a label stands on its line (0), above it (-1) or below (1): the two lines of services that call each other lie between their labels. */
function shifts(lines: readonly Omit<CallLine, 'label'>[]): readonly number[] {
  const key = (caller: string, callee: string) => `${caller}\n${callee}`;
  const heights = new Map(lines.map(({ calls, points }) => [key(calls.caller, calls.callee), mean(points.map(({ y }) => y))]));
  return lines.map(({ calls: { caller, callee } }) => {
    const [own, opposite] = [heights.get(key(caller, callee)), heights.get(key(callee, caller))];
    if (own === undefined || opposite === undefined) return 0;
    return own < opposite ? -1 : 1;
  });
}

type Curve = readonly [Point, Point];

/** The curves of a line, and where each begins at the left: with others of the same place it shares a gap between columns. */
const curvesOf = (points: readonly Point[]): readonly Curve[] =>
  points.flatMap((from, place): readonly Curve[] => {
    const to = points[place + 1];
    return place % 2 === 0 && to !== undefined ? [[from, to]] : [];
  });
const gapOf = ([from, to]: Curve): number => Math.min(from.x, to.x);

/** Points of a curve that tell whether a label covers it. */
const SAMPLES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/** They are looked up by bands: a label lies in two or three. */
const BAND = 32;
/** The curves of a line on which its label is tried, from the callee. */
const CURVES_MAX = 2;

/**
 * A place for each label, on its line and beside the other labels: the one that covers the least of other lines. The lines with the most calls
 * choose first.
 */
function labelled(lines: readonly Omit<CallLine, 'label'>[]): readonly LineLabel[] {
  const taken: Rectangle[] = [];
  const shiftOf = shifts(lines);
  const samples = new Map<string, { readonly line: number; readonly at: Point }[]>();
  const bandOf = (gap: number, y: number): string => `${gap} ${Math.floor(y / BAND)}`;
  lines.forEach(({ points }, line) => {
    for (const curve of curvesOf(points)) {
      for (const at of SAMPLES.map((t) => curveAt(...curve, t))) {
        const band = bandOf(gapOf(curve), at.y);
        const known = samples.get(band);
        if (known === undefined) samples.set(band, [{ line, at }]);
        else known.push({ line, at });
      }
    }
  });
  return lines.map(({ calls, points, width: thickness }, index) => {
    const texts = labelTexts(calls);
    const width = Math.max(...texts.map((text) => textWidth(text, LABEL_SIZE))) + 6;
    const height = LABEL_LINE_HEIGHT * (texts[1] === '' ? 1 : 2) + 2;
    const shift = (shiftOf[index] ?? 0) * (height / 2 + halfHead(thickness) + 1);
    const around = ({ x, y }: Point) => ({ x: x - width / 2, y: y - height / 2 + shift, width, height });
    const covered = (label: Rectangle, gap: number): number => {
      let count = 0;
      for (let y = label.y; y < label.y + label.height + BAND; y += BAND) {
        for (const { line, at } of samples.get(bandOf(gap, y)) ?? []) {
          if (line !== index && overlap(label, { ...at, width: 0, height: 0 })) count += 1;
        }
      }
      return count;
    };
    // The last curve first: there the lines of a caller have parted.
    const curves = curvesOf(points).toReversed().slice(0, CURVES_MAX);
    let [best, least] = [null as Rectangle | null, Infinity];
    for (const curve of curves) {
      const gap = gapOf(curve);
      const [low, high] = [gap + width / 2 + 2, gap + COLUMN_GAP - width / 2 - 2];
      for (const place of PLACES.map((t) => curveAt(...curve, t))) {
        if (place.x < low || place.x > high || least === 0) continue;
        const candidate = around(place);
        if (taken.some((other) => overlap(candidate, other))) continue;
        const now = covered(candidate, gap);
        if (now < least) [best, least] = [candidate, now];
      }
    }
    const [last] = curves;
    if (best === null) return { ...around(last === undefined ? { x: 0, y: 0 } : curveAt(...last, 0.5)), fits: false };
    taken.push(best);
    return { ...best, fits: true };
  });
}

/** Whether two rectangles share a point. */
export function overlap(a: Rectangle, b: Rectangle): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

const NARROW = /[\sijlftr.,:;|!'`()[\]{}/\\-]/;
const WIDE = /[A-Zmw@%&]/;

/** About how wide a text is, in pixels: a little more than in most sans-serif fonts. */
export function textWidth(text: string, size: number): number {
  let ems = 0;
  for (const character of text) {
    ems += character > '\u2e80' ? 1.05 : NARROW.test(character) ? 0.38 : WIDE.test(character) ? 0.82 : 0.57;
  }
  return ems * size;
}

/** A text that fits into this width: without its middle if it is too long, for both ends of a name tell it from others. */
export function fitted(text: string, size: number, width: number): string {
  if (textWidth(text, size) <= width) return text;
  const characters = [...text];
  const room = (width - textWidth('…', size)) / 2;
  let [start, end] = [0, characters.length];
  for (let used = 0; start < end; start += 1) {
    used += textWidth(characters[start] ?? '', size);
    if (used > room) break;
  }
  for (let used = 0; end > start; end -= 1) {
    used += textWidth(characters[end - 1] ?? '', size);
    if (used > room) break;
  }
  return `${characters.slice(0, start).join('')}…${characters.slice(end).join('')}`;
}

/** Where the reader is in the map: a box, or a line. */
export interface Place {
  readonly kind: 'box' | 'line';
  readonly index: number;
}

const isEarlier = (a: Point, b: Point): number => a.x - b.x || a.y - b.y;
const middleOf = ({ points }: CallLine): Point => ({
  x: ((points[0]?.x ?? 0) + (points.at(-1)?.x ?? 0)) / 2,
  y: ((points[0]?.y ?? 0) + (points.at(-1)?.y ?? 0)) / 2,
});

/** The first box: where the keyboard enters the map. */
export function firstPlace({ boxes }: MapLayout): Place | null {
  const [first] = [...boxes.keys()].sort((a, b) => isEarlier(boxes[a] ?? { x: 0, y: 0 }, boxes[b] ?? { x: 0, y: 0 }));
  return first === undefined ? null : { kind: 'box', index: first };
}

/**
 * Where an arrow key leads: from a box along its line with the most calls, from a line to the box at its end; up and down to the next of the
 * same kind in the same column. `null` if there is nothing.
 */
export function stepFrom({ boxes, lines }: MapLayout, { kind, index }: Place, key: string): Place | null {
  const side = key === 'ArrowRight' ? 'right' : key === 'ArrowLeft' ? 'left' : null;
  const down = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0;
  if (kind === 'box') {
    if (side !== null) {
      // They stand in the order of their calls.
      const line = lines.findIndex((candidate) => (side === 'right' ? candidate.left : candidate.right) === index);
      return line < 0 ? null : { kind: 'line', index: line };
    }
    const column = [...boxes.keys()].filter((other) => boxes[other]?.column === boxes[index]?.column);
    return neighbour(column, index, down, kind, (other) => boxes[other]?.y ?? 0);
  }
  const line = lines[index];
  if (line === undefined) return null;
  if (side !== null) return { kind: 'box', index: side === 'right' ? line.right : line.left };
  const columnOf = (of: CallLine) => boxes[of.left]?.column;
  const column = [...lines.keys()].filter((other) => columnOf(lines[other] ?? line) === columnOf(line));
  return neighbour(column, index, down, kind, (other) => middleOf(lines[other] ?? line).y);
}

function neighbour(
  among: readonly number[],
  index: number,
  down: number,
  kind: Place['kind'],
  yOf: (other: number) => number,
): Place | null {
  if (down === 0) return null;
  const inOrder = [...among].sort((a, b) => yOf(a) - yOf(b) || a - b);
  const next = inOrder[inOrder.indexOf(index) + down];
  return next === undefined ? null : { kind, index: next };
}

/** Whether the calls of a line are of note because they fail: one in a hundred does. */
const FAILING_SHARE = 0.01;
export function isFailing({ requests }: ServiceCalls): boolean {
  return ratio(requests.errors, requests.count) >= FAILING_SHARE;
}
