import { expect, it } from 'vitest';
import type { Lane, Thread, Threads } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { laneInWords, nameOfThread, rangeInWords, threadsInWords } from './excerpt';

const millis = (count: number): Nanos => (count * 1e6) as Nanos;

const thread = (name: string, onCpu: number, code: string | null) =>
  ({
    process: 'python3',
    name,
    entry: null,
    onCpuNanos: millis(onCpu),
    function: code === null ? null : { handle: 'f1', function: code, nanos: millis(onCpu) },
  }) as Thread;

it('a range is as exact as it is long', () => {
  expect(rangeInWords({ start: millis(1200), end: millis(1400) })).toBe('1.20s to 1.40s');
  expect(rangeInWords({ start: millis(0), end: millis(9000) })).toBe('0 to 9s');
});

it('a sentence says which threads were busy, and with what', () => {
  const threads = [thread('worker-1', 187.1, 'shop::parse'), thread('python3', 36.5, null), thread('idle', 0, null)];
  expect(threadsInWords({ threads } as unknown as Threads)).toBe(
    '2\u00a0threads used 223.6ms of CPU time: worker-1 187.1ms, mostly in parse; python3 36.5ms.',
  );
  expect(threadsInWords({ threads: [] } as unknown as Threads)).toBe('No thread was on a CPU.');
});

it('a thread without a name of its own is called by the function it begins with', () => {
  expect(nameOfThread({ process: 'python3', name: 'python3', entry: 'app::compress_bundle' })).toBe('compress_bundle');
  expect(nameOfThread({ process: 'python3', name: '', entry: null })).toBe('python3');
});

it('a place of a lane says its states', () => {
  const lane = { onCpu: [600, 0, 0], runnable: [100, 0, 0], rest: [0, 1, -1] } as unknown as Lane;
  const states = ['lock', 'unseen'];
  expect([0, 1, 2].map((bin) => laneInWords(lane, states, bin))).toEqual([
    'on-CPU 60%, runnable 10%, blocked: lock',
    'blocked, not sampled',
    'nothing known',
  ]);
});
