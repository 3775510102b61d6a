import { describe, expect, it } from 'vitest';
import type { Nanos } from '../base/brand';
import {
  breakablePieces,
  formatAge,
  formatBytes,
  formatCommand,
  formatCount,
  formatDuration,
  formatExit,
  formatPlace,
  formatRange,
  formatRangeInWords,
  formatShare,
  formatTick,
  shortCommand,
  shortPath,
  splitName,
  tickStep,
} from './format';
import units from './units.gen.json';

/** Replaces non-breaking spaces between numbers and units, to make tests easier to read. */
const plain = (text: string) => text.replaceAll('\u00a0', ' ');
const range = (low: number, high: number) => ({ low: low as Nanos, high: high as Nanos });

describe('numbers are written as in the terminal', () => {
  it('durations', () => {
    expect(units.durations.map(([nanos]) => [nanos, formatDuration(nanos as number)])).toEqual(units.durations);
  });
  it('counts', () => {
    expect(units.counts.map(([count]) => [count, plain(formatCount(count as number))])).toEqual(units.counts);
  });
  it('bytes', () => {
    expect(units.bytes.map(([bytes]) => [bytes, formatBytes(bytes as number)])).toEqual(units.bytes);
  });
  it('shares', () => {
    expect(units.per_mille.map(([part]) => [part, formatShare((part as number) / 1000)])).toEqual(units.per_mille);
  });
});

it('the ends of a range have the unit of the high one', () => {
  expect(formatRange(range(2.1e9, 2.1e9))).toBe('2.10s');
  expect(formatRange(range(8e8, 2.4e9))).toBe('0.80s–2.40s');
  expect(formatRange(range(0, 2.4e9))).toBe('0.00s–2.40s');
  expect(formatRange(range(61e9, 125e9))).toBe('1m01.0s–2m05.0s');
  expect(formatRange(range(13.46e6, 1.21e9))).toBe('13.5ms–1.21s');
  expect(formatRangeInWords(range(0, 2.4e9))).toBe('up to 2.40s');
  expect(formatRangeInWords(range(1.2e9, 2.4e9))).toBe('1.20s to 2.40s');
});

it('a share of NaN, as of an empty whole, is none', () => {
  expect(formatShare(0 / 0)).toBe('0%');
});

it('says how a command ended', () => {
  expect(formatExit({ code: 0, signal: null })).toBe('exit 0');
  expect(formatExit({ code: null, signal: 9 })).toBe('killed by SIGKILL');
  expect(formatExit({ code: null, signal: 64 })).toBe('killed by signal 64');
});

it('prints a command as one could type it', () => {
  expect(formatCommand(['sh', '-c', "echo 'a b' | wc", ''])).toBe("sh -c 'echo '\\''a b'\\'' | wc' ''");
});

it('says how long ago something was', () => {
  const minute = 60_000;
  expect([0, 8, 125, 30 * 60, 5 * 24 * 60].map((minutes) => plain(formatAge(0, minutes * minute)))).toEqual([
    'just now',
    '8 min ago',
    '2 h ago',
    'yesterday',
    '5 days ago',
  ]);
});

it('shortens paths from the front', () => {
  expect(shortPath('examples/deploy/src/archive.rs:42', 24)).toBe('…/src/archive.rs:42');
  expect(shortPath('src/a.rs', 24)).toBe('src/a.rs');
  expect(formatPlace('', 3)).toBe('');
  expect(formatPlace('a.rs', 0)).toBe('a.rs');
});

describe('ticks of an axis', () => {
  it.each([
    [1e9, 5, 2e8],
    [6.02e9, 7, 1e9],
    [90e9, 6, 20e9],
    [600e9, 6, 120e9],
    [1000, 5, 200],
  ])('%d ns in %d parts: every %d', (span, parts, step) => {
    expect(tickStep(span as Nanos, parts)).toBe(step);
  });

  it('have as many decimals as tell neighbours apart', () => {
    expect(plain(formatTick(2e9, 1e9 as Nanos))).toBe('2s');
    expect(plain(formatTick(2.5e9, 5e8 as Nanos))).toBe('2.5s');
    expect(plain(formatTick(125_000_000, 1_000_000 as Nanos))).toBe('125ms');
    expect(plain(formatTick(125_250_000, 10_000 as Nanos))).toBe('125.25ms');
    expect(formatTick(90e9, 30e9 as Nanos)).toBe('1m30s');
    expect(formatTick(0, 1 as Nanos)).toBe('0');
  });
});

it('a command is known by its program without the folder', () => {
  expect(shortCommand(['/very/long/path/target/debug/deploy', '--x', 'a b'])).toBe("deploy --x 'a b'");
  expect(shortCommand(['make', '/very/long/path'])).toBe('make /very/long/path');
  expect(shortCommand(['folder/'])).toBe('folder');
  expect(shortCommand(['/'])).toBe('/');
  expect(shortCommand([])).toBe('');
});

it.each([
  ['run program', ['run program', '']],
  ['pulumirpc.ResourceMonitor/RegisterResource', ['pulumirpc.ResourceMonitor', '/RegisterResource']],
  ['compute/create web-bundle', ['compute/create ', 'web-bundle']],
  ['import /home/ada/captures/deployment/traces.json', ['import /home/ada/captures/deployment', '/traces.json']],
  ['AVeryLongNameWithoutASeparator', ['AVeryLongNameWithout', 'ASeparator']],
])('%s keeps its end', (name, expected) => {
  expect(splitName(name)).toEqual(expected);
});

it('a long name breaks after its separators', () => {
  expect(breakablePieces('pulumirpc.ResourceProvider/Create')).toEqual(['pulumirpc.', 'ResourceProvider/', 'Create']);
  expect(breakablePieces('urn:pulumi:dev::shop')).toEqual(['urn:', 'pulumi:', 'dev::', 'shop']);
  expect(breakablePieces('run program')).toEqual(['run program']);
});
