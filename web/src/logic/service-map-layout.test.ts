import { describe, expect, it } from 'vitest';
import type { MappedService, Requests, ServiceCalls } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import {
  BOX,
  type CallLine,
  crossings,
  firstPlace,
  fitted,
  headLength,
  isFailing,
  layoutOf,
  type MapLayout,
  overlap,
  pathOf,
  type Rectangle,
  SERVICES_DRAWN_MAX,
  spread,
  stepFrom,
  textWidth,
} from './service-map-layout';

const requests = (count: number, errors = 0): Requests => ({
  count,
  errors,
  medianNanos: 12e6 as Nanos,
  p95Nanos: 21e6 as Nanos,
  p99Nanos: 40.1e6 as Nanos,
});
const call = (caller: string, callee: string, count = 10, errors = 0): ServiceCalls => ({
  caller,
  callee,
  requests: requests(count, errors),
});

/** The map of calls such as `shop>cart`; the services are called as often as their callers say, `shop` by people. */
function mapOf(...calls: readonly (string | ServiceCalls)[]) {
  const all = calls.map((each) => {
    const [caller = '', callee = ''] = typeof each === 'string' ? each.split('>') : [];
    return typeof each === 'string' ? call(caller, callee) : each;
  });
  const names = [...new Set(all.flatMap(({ caller, callee }) => [caller, callee]))].sort();
  const called = (name: string) => all.filter(({ callee }) => callee === name).reduce((sum, { requests: { count } }) => sum + count, 0);
  const services = names.map((name): MappedService => ({ name, requests: requests(called(name) + (name === 'shop' ? 1000 : 0)) }));
  return { services, calls: all };
}

const draw = (...calls: readonly (string | ServiceCalls)[]) => layoutOf(mapOf(...calls));
const columnsOf = (layout: MapLayout) => Object.fromEntries(layout.boxes.map(({ service, column }) => [service.name, column]));
const lineOf = (layout: MapLayout, caller: string, callee: string): CallLine => {
  const line = layout.lines.find(({ calls }) => calls.caller === caller && calls.callee === callee);
  if (line === undefined) throw new Error(`no line from ${caller} to ${callee}`);
  return line;
};
const isForward = ({ points }: CallLine) => (points.at(-1)?.x ?? 0) > (points[0]?.x ?? 0);
const boxOf = (layout: MapLayout, name: string): Rectangle => {
  const box = layout.boxes.find(({ service }) => service.name === name);
  if (box === undefined) throw new Error(`no box ${name}`);
  return { x: box.x, y: box.y, width: BOX.width, height: BOX.height };
};

describe('a map of services', () => {
  it('has each service to the right of its last caller', () => {
    expect(columnsOf(draw('shop>cart', 'cart>prices', 'shop>prices', 'shop>mail'))).toEqual({ shop: 0, cart: 1, mail: 1, prices: 2 });
  });

  it('of one service is its box', () => {
    const layout = layoutOf({ services: [{ name: 'shop', requests: requests(5) }], calls: [] });
    expect(layout).toMatchObject({ width: BOX.width + 28, height: BOX.height + 40, lines: [], omitted: 0 });
    expect(firstPlace(layout)).toEqual({ kind: 'box', index: 0 });
    expect(stepFrom(layout, { kind: 'box', index: 0 }, 'ArrowRight')).toBeNull();
    expect(layoutOf({ services: [], calls: [] })).toMatchObject({ boxes: [], lines: [] });
  });

  it('of a service that calls itself through another has a line there and a line back', () => {
    const layout = draw(call('shop', 'cart', 30), call('cart', 'shop', 20));
    expect(columnsOf(layout)).toEqual({ shop: 0, cart: 1 });
    const [there, back] = [lineOf(layout, 'shop', 'cart'), lineOf(layout, 'cart', 'shop')];
    expect([isForward(there), isForward(back)]).toEqual([true, false]);
    // Side by side, and neither on the other.
    const heights = (line: CallLine) => line.points.map(({ y }) => y);
    expect(new Set(heights(there)).size).toBe(1);
    const [upper, lower] = heights(there)[0] === Math.min(...heights(there), ...heights(back)) ? [there, back] : [back, there];
    expect(heights(upper)[0]).toBeLessThan((heights(lower)[0] ?? 0) - 8);
    expect(upper.label.y + upper.label.height).toBeLessThan(heights(upper)[0] ?? 0);
    expect(lower.label.y).toBeGreaterThan(heights(lower)[0] ?? 0);
    expect([upper.label.fits, lower.label.fits]).toEqual([true, true]);
  });

  it('breaks circles where they close', () => {
    const layout = draw('shop>a', 'a>b', 'b>c', 'c>a');
    expect(columnsOf(layout)).toEqual({ shop: 0, a: 1, b: 2, c: 3 });
    expect(layout.lines.filter((line) => !isForward(line)).map(({ calls }) => calls.caller)).toEqual(['c']);
  });

  it('leaves out calls to the same service', () => {
    expect(draw('shop>cart', 'shop>shop').lines).toHaveLength(1);
  });

  it('of a tree has no crossing, and a caller stands at the middle of its callees', () => {
    const layout = draw('shop>a', 'shop>b', 'shop>c', 'c>x', 'a>y', 'b>z', 'a>w');
    expect(crossingsOf(layout)).toBe(0);
    const middle = (name: string) => boxOf(layout, name).y;
    expect(middle('a')).toBeCloseTo((middle('w') + middle('y')) / 2, 0);
  });

  it('turns its columns so that few lines cross', () => {
    expect(crossingsOf(draw('shop>a', 'shop>b', 'shop>c', 'a>z', 'b>y', 'c>x', 'a>x', 'b>z'))).toBe(0);
  });

  it('draws the services with the most requests if there are too many', () => {
    const many = Array.from({ length: 200 }, (_, index) => call('shop', `s${index}`, index + 1));
    const layout = draw(...many);
    expect(layout.boxes).toHaveLength(SERVICES_DRAWN_MAX);
    expect(layout.omitted).toBe(201 - SERVICES_DRAWN_MAX);
    expect(layout.lines.every(({ calls }) => calls.requests.count > 200 - SERVICES_DRAWN_MAX)).toBe(true);
  });

  it('has wider lines for more calls, and a sign for calls that fail', () => {
    const layout = draw(call('shop', 'a', 10), call('shop', 'b', 10_000), call('a', 'c', 200, 1), call('a', 'd', 200, 2));
    expect(lineOf(layout, 'shop', 'b').width).toBeGreaterThan(lineOf(layout, 'shop', 'a').width);
    expect(layout.lines.filter(({ calls }) => isFailing(calls)).map(({ calls }) => calls.callee)).toEqual(['d']);
  });

  it('has lines that end where the head of the arrow begins', () => {
    const points = [
      { x: 10, y: 20 },
      { x: 110, y: 60 },
    ];
    expect(pathOf({ points, width: 2.5 })).toBe('M10 20C55.5 20 55.5 60 101 60');
    expect(pathOf({ points: points.toReversed(), width: 2.5 })).toBe('M110 60C64.5 60 64.5 20 19 20');
    expect(headLength(2.5)).toBe(9);
  });
});

describe('the keys of the map', () => {
  const layout = draw(call('shop', 'cart', 50), call('shop', 'mail', 10), call('cart', 'prices', 40));
  const walk = (...keys: readonly string[]) => {
    let place = firstPlace(layout);
    for (const key of keys) place = (place === null ? null : stepFrom(layout, place, key)) ?? place;
    if (place === null) return null;
    const line = layout.lines[place.index]?.calls;
    return place.kind === 'box' ? layout.boxes[place.index]?.service.name : `${line?.caller}>${line?.callee}`;
  };

  it('follow the line with the most calls, and lead up and down', () => {
    expect(walk()).toBe('shop');
    expect(walk('ArrowRight')).toBe('shop>cart');
    expect(walk('ArrowRight', 'ArrowRight')).toBe('cart');
    expect(walk('ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight')).toBe('prices');
    expect(walk('ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft')).toBe('shop');
    const other = ['ArrowUp', 'ArrowDown'].map((key) => walk('ArrowRight', key));
    expect(other.toSorted()).toEqual(['shop>cart', 'shop>mail']);
    expect(walk('Tab')).toBe('shop');
  });
});

describe('places side by side', () => {
  it('are the wanted ones where there is room', () => {
    expect(spread([0, 50, 100], [0, 20, 20])).toEqual([0, 50, 100]);
  });

  it('are pushed from their middle where there is none', () => {
    expect(spread([10, 10, 10], [0, 20, 20])).toEqual([-10, 10, 30]);
    expect(spread([30, 0, 100], [0, 10, 10])).toEqual([10, 20, 100]);
  });
});

describe('a text in a box', () => {
  it('keeps both ends', () => {
    expect(fitted('cart', 13, 150)).toBe('cart');
    const name = 'payments-gateway-production-eu-west-1';
    const short = fitted(name, 13, 150);
    expect(short).toMatch(/^payments.*….*west-1$/);
    expect(textWidth(short, 13)).toBeLessThanOrEqual(150);
    expect(textWidth(fitted('服务服务服务服务服务服务服务', 13, 100), 13)).toBeLessThanOrEqual(100);
  });
});

/** Numbers that look random, the same each time: xorshift. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function crossingsOf({ boxes, lines }: MapLayout): number {
  // Only of lines between neighbours: these maps have no others.
  const order: number[][] = [];
  for (const index of boxes.keys()) {
    const column = boxes[index]?.column ?? 0;
    order[column] = [...(order[column] ?? []), index].sort((a, b) => (boxes[a]?.y ?? 0) - (boxes[b]?.y ?? 0));
  }
  return crossings(
    order,
    boxes.map((_, index) => lines.filter(({ left }) => left === index).map(({ right }) => right)),
  );
}

describe.each(Array.from({ length: 40 }, (_, index) => index + 1))('a map of services that call at random, number %d', (seed) => {
  const random = randomOf(seed);
  const services = 2 + random(60);
  const calls = new Map<string, ServiceCalls>();
  for (let count = 0; count < services * 1.7; count += 1) {
    const [from, to] = [random(services), random(services)].map((index) => (index === 0 ? 'shop' : `service-${index}`));
    calls.set(`${from}>${to}`, call(from ?? '', to ?? '', 1 + random(5000), random(3)));
  }
  const map = mapOf(...calls.values());
  const layout = layoutOf(map);

  it('has all boxes and lines, inside of the picture', () => {
    expect(layout.boxes.map(({ service: { name } }) => name).toSorted()).toEqual(map.services.map(({ name }) => name));
    expect(layout.lines).toHaveLength(map.calls.filter(({ caller, callee }) => caller !== callee).length);
    const numbers = layout.lines.flatMap(({ points, width }) => [...points.flatMap(({ x, y }) => [x, y]), width]);
    expect(numbers.every(Number.isFinite)).toBe(true);
    const inside = ({ x, y }: { x: number; y: number }) => x >= 0 && y >= 0 && x <= layout.width && y <= layout.height;
    expect(layout.boxes.every(({ x, y }) => inside({ x, y }) && inside({ x: x + BOX.width, y: y + BOX.height }))).toBe(true);
    expect(layout.lines.every(({ points }) => points.every(inside))).toBe(true);
  });

  it('has no box on another one, and no label on a box or another label', () => {
    const boxes = layout.boxes.map(({ x, y }) => ({ x, y, width: BOX.width, height: BOX.height }));
    const labels = layout.lines.flatMap(({ label }) => (label.fits ? [label] : []));
    const all = [...boxes, ...labels];
    expect(all.flatMap((a, index) => all.slice(index + 1).filter((b) => overlap(a, b)))).toEqual([]);
  });

  it('has lines that pass between the boxes, to the right unless they close a circle', () => {
    for (const line of layout.lines) {
      const [left, right] = [layout.boxes[line.left], layout.boxes[line.right]];
      expect(left?.column).toBeLessThan(right?.column ?? 0);
      const inOrder = isForward(line) ? line.points : line.points.toReversed();
      expect(inOrder.every(({ x }, index) => index === 0 || x > (inOrder[index - 1]?.x ?? 0))).toBe(true);
      // The straight pieces lie in columns.
      for (let index = 1; index + 1 < inOrder.length; index += 2) {
        const { x = 0, y = 0 } = inOrder[index] ?? {};
        const piece = { x, y: y - 1, width: BOX.width, height: 2 };
        expect(layout.boxes.filter((box) => overlap(piece, { ...box, width: BOX.width, height: BOX.height }))).toEqual([]);
      }
    }
    const forward = layout.lines.filter(isForward).length;
    expect(forward).toBeGreaterThanOrEqual(layout.lines.length / 2);
  });

  it('has an arrow of each service under the keys', () => {
    for (const [index] of layout.boxes.entries()) {
      const next = stepFrom(layout, { kind: 'box', index }, 'ArrowRight');
      const line = layout.lines[next?.index ?? -1];
      expect(line?.left ?? index).toBe(index);
    }
  });
});
