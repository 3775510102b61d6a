/** Profiles as stacks, callers first, each with its value: `main;work;hash 70`. */
import { decodeProfile } from '../api/decode.gen';
import type { Profile } from '../api/types.gen';
import { flameOf } from './text-flame';

const MILLI = 1e6;

/** The answer of a server that has these stacks of this type. */
export function profileOf(text: string, [type, unit] = ['process_cpu:cpu', 'nanoseconds'], isState = false): Profile {
  const { frames, nodes, weightNanos } = flameOf(text);
  const rows = Array.from(nodes.parent, (_, row) => row).slice(1);
  const scale = unit === 'nanoseconds' ? 1 : 1 / MILLI;
  const sums = frames.map(({ function: name }, frame) => {
    const own = rows.filter((row) => nodes.frame[row] === frame).reduce((sum, row) => sum + (nodes.selfNanos[row] ?? 0), 0);
    const total = rows.filter((row) => nodes.frame[row] === frame).reduce((sum, row) => sum + (nodes.totalNanos[row] ?? 0), 0);
    return { function: name, file: '', own: own * scale, total: total * scale };
  });
  return decodeProfile({
    query: `${type}:${unit}:x:x{service_name="cart"}`,
    sample_type: type.split(':')[1],
    unit,
    is_state: isState,
    from_unix_nano: '0',
    to_unix_nano: '3600000000000',
    total: weightNanos * scale,
    functions: sums.sort((a, b) => b.own - a.own),
    truncated: 0,
    calls: {
      names: frames.map(({ function: name }) => name),
      name: rows.map((row) => nodes.frame[row]),
      depth: rows.map((row) => (nodes.depth[row] ?? 0) - 1),
      total: rows.map((row) => (nodes.totalNanos[row] ?? 0) * scale),
      own: rows.map((row) => (nodes.selfNanos[row] ?? 0) * scale),
    },
  });
}
