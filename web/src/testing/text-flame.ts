/**
 * A flame graph as stacks, callers first, each with its weight in milliseconds, one sample per millisecond:
 *
 *     main;work;hash 70
 */
import { decodeFlame } from '../api/checks';
import type { Flame } from '../api/types.gen';

interface Node {
  self: number;
  total: number;
  readonly children: Map<string, Node>;
}

const node = (): Node => ({ self: 0, total: 0, children: new Map() });

/** The flame graph of the text. Functions get handles in order of occurrence; those that match `foreign` are of libraries. */
export function flameOf(text: string, foreign: RegExp | null = null): Flame {
  const root = node();
  for (const line of text.split('\n').map((part) => part.trim())) {
    if (line === '') continue;
    const match = /^(.+) (\d+)$/.exec(line);
    if (match === null) throw new Error(`not a stack: ${line}`);
    const weight = Number(match[2]);
    let place = root;
    place.total += weight;
    for (const name of (match[1] ?? '').split(';')) {
      const child = place.children.get(name) ?? node();
      place.children.set(name, child);
      child.total += weight;
      place = child;
    }
    place.self += weight;
  }
  const frames: string[] = [];
  const nodes = {
    parent: [] as number[],
    depth: [] as number[],
    frame: [] as number[],
    offset_nanos: [] as number[],
    total_nanos: [] as number[],
    self_nanos: [] as number[],
    waited_nanos: [] as number[],
    wait: [] as number[],
    line: [] as number[],
  };
  const write = (place: Node, name: string | null, parent: number, depth: number, offset: number): void => {
    const index = nodes.parent.length;
    if (name !== null && !frames.includes(name)) frames.push(name);
    nodes.parent.push(parent);
    nodes.depth.push(depth);
    nodes.frame.push(name === null ? -1 : frames.indexOf(name));
    nodes.offset_nanos.push(offset * 1e6);
    nodes.total_nanos.push(place.total * 1e6);
    nodes.self_nanos.push(place.self * 1e6);
    nodes.waited_nanos.push(0);
    nodes.wait.push(-1);
    nodes.line.push(0);
    let next = offset;
    for (const [childName, child] of [...place.children].sort(([, a], [, b]) => b.total - a.total)) {
      write(child, childName, index, depth + 1, next);
      next += child.total;
    }
  };
  write(root, null, -1, 0, 0);
  return decodeFlame({
    recording: 'r1',
    span: null,
    name: null,
    part_of: null,
    trace_id: null,
    title: 'all',
    time: 'on_cpu',
    samples: root.total,
    left_out_waits: 0,
    cut_samples: 0,
    weight_nanos: root.total * 1e6,
    few_samples: root.total < 20,
    same_name: null,
    links: { record: root.total, journal: 0, label: 0, inferred: 0, ambiguous: 0, none: 0 },
    waits: [],
    frames: frames.map((name, index) => ({
      handle: `f${index + 1}`,
      function: name,
      file: '',
      line: 0,
      reason: null,
      runtime: null,
      whose: foreign?.test(name) === true ? 'library' : 'program',
    })),
    nodes,
  });
}
