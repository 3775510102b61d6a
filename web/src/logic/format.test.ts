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

/** Replaces non-breaking spaces between numbers and units, to make tests easier to read. */
const plain = (text: string) => text.replaceAll('\u00a0', ' ');
const range = (low: number, high: number) => ({ low: low as Nanos, high: high as Nanos });

describe('durations', () => {
  it.each([
    [0, '0 s'],
    [1, '1 ns'],
    [999, '999 ns'],
    [1000, '1.00 µs'],
    [12_345, '12.3 µs'],
    [999_499, '999 µs'],
    [999_500, '1.00 ms'],
    [184_300_000, '184 ms'],
    [999_600_000, '1.00 s'],
    [2_414_000_000, '2.41 s'],
    [9_996_000_000, '10.0 s'],
    [59_940_000_000, '59.9 s'],
    [59_960_000_000, '1m00.0s'],
    [111_400_000_000, '1m51.4s'],
    [3_599_960_000_000, '1h00m'],
    [7_500_000_000_000, '2h05m'],
    [-5_000_000, '−5.00 ms'],
  ])('%d ns is %s', (nanos, expected) => {
    expect(plain(formatDuration(nanos))).toBe(expected);
  });
});

it('a range shares its unit where it can', () => {
  expect(plain(formatRange(range(2.1e9, 2.1e9)))).toBe('2.10 s');
  expect(plain(formatRange(range(8e8, 2.4e9)))).toBe('800 ms–2.40 s');
  expect(plain(formatRange(range(1.2e9, 2.4e9)))).toBe('1.20–2.40 s');
  expect(plain(formatRange(range(0, 2.4e9)))).toBe('0–2.40 s');
  expect(plain(formatRange(range(61e9, 125e9)))).toBe('1m01.0s–2m05.0s');
  expect(plain(formatRangeInWords(range(0, 2.4e9)))).toBe('up to 2.40 s');
  expect(plain(formatRangeInWords(range(1.2e9, 2.4e9)))).toBe('1.20 to 2.40 s');
});

it('a share is never rounded to all or to nothing', () => {
  expect([0, 0.0004, 0.032, 0.05, 0.0996, 0.4, 0.934, 0.9999, 1].map((share) => plain(formatShare(share)))).toEqual([
    '0 %',
    '<0.1 %',
    '3.2 %',
    '5 %',
    '10 %',
    '40 %',
    '93 %',
    '>99 %',
    '100 %',
  ]);
});

it('counts have their thousands apart', () => {
  expect([0, 999, 1000, 61_204, 1_234_567].map(formatCount)).toEqual(['0', '999', '1,000', '61,204', '1,234,567']);
});

it('bytes count in powers of 1000, as in the terminal', () => {
  expect([0, 840, 1000, 31_400_000, 5e9].map((bytes) => plain(formatBytes(bytes)))).toEqual([
    '0 B',
    '840 B',
    '1.00 kB',
    '31.4 MB',
    '5.00 GB',
  ]);
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
    expect(plain(formatTick(2e9, 1e9 as Nanos))).toBe('2 s');
    expect(plain(formatTick(2.5e9, 5e8 as Nanos))).toBe('2.5 s');
    expect(plain(formatTick(125_000_000, 1_000_000 as Nanos))).toBe('125 ms');
    expect(plain(formatTick(125_250_000, 10_000 as Nanos))).toBe('125.25 ms');
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
