/**
 * A trace as a drawing: indentation is depth, times are milliseconds, the last word is the service.
 *
 *     deploy     0..100  engine
 *       build   10..60   builder
 */
import { decodeTree } from '../api/checks';
import type { Tree } from '../api/types.gen';

/** The tree of the text; `path` lists the critical path as `name from..to`, in milliseconds. */
export function treeOf(text: string, path: readonly string[] = []): Tree {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const margin = Math.min(...lines.map((line) => line.search(/\S/)));
  const names: string[] = [];
  const services: string[] = [];
  const open: number[] = [];
  const spans = {
    parent: [] as number[],
    depth: [] as number[],
    subtree: [] as number[],
    start_nanos: [] as number[],
    duration_nanos: [] as number[],
    service: [] as number[],
    name: [] as number[],
    resource: [] as number[],
    flags: [] as number[],
    on_path_nanos: [] as number[],
    samples: [] as number[],
  };
  const numberOf = (list: string[], word: string): number => {
    if (!list.includes(word)) list.push(word);
    return list.indexOf(word);
  };
  for (const [index, line] of lines.entries()) {
    const match = /^\s*(.+?)\s+(\d+)\.\.(\d+)\s+(\S+)\s*$/.exec(line);
    if (match === null) throw new Error(`not a span: ${line}`);
    const [, name = '', start, end, service = ''] = match;
    const depth = (line.search(/\S/) - margin) / 2;
    open.length = depth;
    spans.parent.push(open[depth - 1] ?? -1);
    spans.depth.push(depth);
    spans.subtree.push(0);
    open.push(index);
    spans.start_nanos.push(Number(start) * 1e6);
    spans.duration_nanos.push((Number(end) - Number(start)) * 1e6);
    spans.service.push(numberOf(services, service));
    spans.name.push(numberOf(names, name));
    spans.resource.push(-1);
    spans.flags.push(0);
    spans.on_path_nanos.push(0);
    spans.samples.push(0);
  }
  for (let index = lines.length - 1; index > 0; index--) {
    const above = spans.parent[index] ?? -1;
    if (above >= 0) spans.subtree[above] = (spans.subtree[above] ?? 0) + (spans.subtree[index] ?? 0) + 1;
  }
  const pieces = path.map((piece) => {
    const match = /^(.+) (\d+)\.\.(\d+)$/.exec(piece);
    if (match === null) throw new Error(`not a piece of the path: ${piece}`);
    return { span: spans.name.indexOf(names.indexOf(match[1] ?? '')), start: Number(match[2]) * 1e6, end: Number(match[3]) * 1e6 };
  });
  return decodeTree({
    recording: 'r1',
    origin_unix_nano: '0',
    wall_nanos: Math.max(0, ...spans.start_nanos.map((start, index) => start + (spans.duration_nanos[index] ?? 0))),
    services,
    names,
    resources: [],
    spans,
    critical_path: {
      span: pieces.map(({ span }) => span),
      start_nanos: pieces.map(({ start }) => start),
      end_nanos: pieces.map(({ end }) => end),
    },
    notes: [],
  });
}
