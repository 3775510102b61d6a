import { expect, it } from 'vitest';
import type { OperationDiff, Recording } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import {
  changeInWords,
  differenceInWords,
  fateInWords,
  nameOfOperation,
  placeAmongRuns,
  runBefore,
  runsOfCommand,
  signedDuration,
} from './compare';

const run = (recording: string, command: string, start: number, wall = 1e9, state = 'sealed') =>
  ({ recording, command: command.split(' '), startUnixNano: BigInt(start), wallNanos: wall, state }) as unknown as Recording;

it('the run before is the last one of the same command that ended', () => {
  const all = [
    run('r5', 'make test', 50),
    run('r4', 'make test', 40, 1e9, 'killed'),
    run('r3', 'make', 30),
    run('r2', 'make test', 20),
    run('r1', 'make test', 10),
  ];
  expect(runBefore(all, 'r5')?.recording).toBe('r2');
  expect(runsOfCommand(all, 'r5').map(({ recording }) => recording)).toEqual(['r1', 'r2', 'r5']);
  expect(runBefore(all, 'r1')).toBe(null);
  expect(runBefore(all, 'r3')).toBe(null);
  expect(runBefore(all, 'r9')).toBe(null);
});

it('a run is placed among the others of its command', () => {
  const runs = [run('r1', 'make', 1, 1e9), run('r2', 'make', 2, 1.2e9), run('r3', 'make', 3, 2e9)];
  expect(placeAmongRuns(runs, 'r3')).toBe('r3 took longer than all other runs (1.00s to 1.20s)');
  expect(placeAmongRuns(runs, 'r2')).toBe('r2 is within the range of the other runs (1.00s to 2.00s)');
  expect(placeAmongRuns(runs.slice(1), 'r3')).toBe('');
});

it('changes have a sign and their share', () => {
  expect([changeInWords(16, 100), changeInWords(-4, 100), changeInWords(3500, 100), changeInWords(1, 0)]).toEqual([
    '+16.0%',
    '−4.0%',
    '36× as long',
    '',
  ]);
  expect([signedDuration(1.2e9), signedDuration(-3e6)]).toEqual(['+1.20s', '−3.0ms']);
  expect([differenceInWords(4e8 as Nanos), differenceInWords(-4e8 as Nanos), differenceInWords(0 as Nanos)]).toEqual([
    '400.0ms longer than',
    '400.0ms shorter than',
    'as long as',
  ]);
});

it('an operation has its service where its name alone is not enough, and says what became of it', () => {
  const operation = (name: string, service: string, fate: string, a: number, b: number) =>
    ({ name, service, resource: null, fate, a: { count: a }, b: { count: b } }) as unknown as OperationDiff;
  const all = [operation('load', 'cart', 'removed', 2, 0), operation('load', 'pay', 'added', 0, 1), operation('send', 'pay', 'kept', 3, 4)];
  expect(all.map((one) => nameOfOperation(one, all))).toEqual(['load · cart', 'load · pay', 'send']);
  expect(all.map(fateInWords)).toEqual(['×2 gone', 'new', '×3 → ×4']);
});
