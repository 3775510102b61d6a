import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { allRecordings, deployRecording } from '../testing/recordings.mjs';
import { decodeFlame, decodeTree } from './checks';
import { DecodeError, decodeRefusal } from './cursor';
import { decodeFrame, decodePoles, decodeRecordings, decodeSpan, decodeSummary } from './decode.gen';
import { EVERY_FLAME_TIME } from './types.gen';

const GOLDEN = new URL('../testing/golden/', import.meta.url);
const DECODERS: Readonly<Record<string, (document: unknown) => unknown>> = {
  recordings: decodeRecordings,
  summary: decodeSummary,
  poles: decodePoles,
  tree: decodeTree,
  span: decodeSpan,
  flame: decodeFlame,
  frame: decodeFrame,
};

describe('documents that the server gave', () => {
  for (const file of readdirSync(GOLDEN)) {
    it(file, () => {
      const decode = DECODERS[file.split(/[-.]/)[0] ?? ''];
      expect(decode).toBeDefined();
      expect(() => decode?.(JSON.parse(readFileSync(new URL(file, GOLDEN), 'utf8')))).not.toThrow();
    });
  }
});

describe('made-up recordings', () => {
  for (const documents of allRecordings()) {
    it(`${documents.recording.recording} decodes`, () => {
      decodeSummary(documents.summary());
      decodePoles(documents.poles());
      const tree = decodeTree(documents.tree());
      expect(tree.spans.parent).toHaveLength(documents.rows);
      expect(decodeFlame(documents.flame(null)).samples).toBeLessThanOrEqual(documents.recording.samples);
      for (const time of EVERY_FLAME_TIME) expect(decodeFlame(documents.flame(null, time)).time).toBe(time);
      decodeSpan(documents.span('s1'));
    });
  }

  it('the readings of a process are columns of one length', () => {
    const documents = allRecordings().find(({ recording }) => recording.command[0] === 'sh');
    const usage = documents && decodeSpan(documents.span('s2')).process?.usage;
    expect(usage?.readings.timeNanos).toHaveLength(60);
    expect(usage?.grows?.toBytes).toBe(632_000_000);
    expect(documents && decodeSummary(documents.summary()).usage[0]?.handle).toBe('s2');
  });
});

/** What the decoder says when one thing of a good document is broken. */
function complaint(decode: (document: unknown) => unknown, document: unknown, broken: (copy: never) => void): string {
  const copy = structuredClone(document);
  broken(copy as never);
  try {
    decode(copy);
  } catch (error) {
    return error instanceof DecodeError ? error.message : `another error: ${error}`;
  }
  return 'no complaint';
}

describe('documents that are not what the contract says', () => {
  const documents = deployRecording();
  type Tree = ReturnType<typeof documents.tree>;
  type Flame = { nodes: Record<string, number[]>; frames: unknown[] };
  const tree = (broken: (copy: Tree) => void) => complaint(decodeTree, documents.tree(), broken as never);
  const flame = (broken: (copy: Flame) => void) => complaint(decodeFlame, documents.flame(null), broken as never);

  it.each([
    ['no object', () => complaint(decodeSummary, null, () => undefined), 'summary: expected an object, found null'],
    [
      'a missing field',
      () =>
        complaint(decodeSummary, documents.summary(), (copy: Record<string, unknown>) => {
          delete copy['wall_nanos'];
        }),
      'summary.wall_nanos: expected a number, found nothing',
    ],
    [
      'a saving that is no range',
      () =>
        complaint(decodePoles, documents.poles(), (copy: { poles: { saves_if_zero_nanos: number[] }[] }) => {
          for (const pole of copy.poles) pole.saves_if_zero_nanos = [2, 1];
        }),
      'poles.poles[0].saves_if_zero_nanos: expected [low, high]',
    ],
    [
      'an unknown evidence',
      () =>
        complaint(decodePoles, documents.poles(), (copy: { poles: { evidence: string }[] }) => {
          for (const pole of copy.poles) pole.evidence = 'guessed';
        }),
      'poles.poles[0].evidence: expected declared or inferred, found "guessed"',
    ],
    [
      'a deployment without one of its parts',
      () =>
        complaint(decodeSummary, allRecordings()[5]?.summary(), (copy: { deployment: Record<string, unknown> }) => {
          delete copy.deployment['idle_nanos'];
        }),
      'summary.deployment.idle_nanos: expected a number, found nothing',
    ],
    [
      'a state without one kind of waits',
      () =>
        complaint(decodeSummary, documents.summary(), (copy: { states: { blocked_nanos: Record<string, unknown> } }) => {
          delete copy.states.blocked_nanos['page_fault'];
        }),
      'summary.states.blocked_nanos.page_fault: expected a number, found nothing',
    ],
    [
      'a wait for something unknown',
      () =>
        complaint(decodeSpan, documents.span('s38'), (copy: { waits: { kind: string }[] }) => {
          for (const wait of copy.waits) wait.kind = 'godot';
        }),
      'span.waits[0].kind: expected lock, queue, join, disk, network, sleep, page_fault, child, pipe, idle or other, found "godot"',
    ],
    [
      'a flame graph of an unknown time',
      () => complaint(decodeFlame, documents.flame(null), (copy: { time: string }) => Object.assign(copy, { time: 'lunch' })),
      'flame.time: expected on_cpu, off_cpu or wall, found "lunch"',
    ],
    [
      'a word in a column',
      () => tree((copy) => copy.spans.start_nanos.splice(3, 1, 'soon' as never)),
      'tree.spans.start_nanos[3]: expected a number, found a string',
    ],
    ['a short column', () => tree((copy) => copy.spans.flags.pop()), 'tree.spans.flags: has 37 rows instead of 38'],
    ['a name out of range', () => tree((copy) => copy.spans.name.splice(0, 1, 999)), 'tree.spans.name[0]: 999 is out of range'],
    [
      'a parent that comes later',
      () => tree((copy) => copy.spans.parent.splice(2, 1, 7)),
      'tree.spans.parent[2]: 7 does not fit a pre-order at depth 2',
    ],
    [
      'a level that is skipped',
      () => tree((copy) => copy.spans.depth.splice(1, 1, 5)),
      'tree.spans.parent[1]: 0 does not fit a pre-order at depth 5',
    ],
    [
      'a wrong number of descendants',
      () => tree((copy) => copy.spans.subtree.splice(4, 1, 3)),
      'tree.spans.subtree[4]: says 3 descendants, the rows hold 0',
    ],
    [
      'a path through no span',
      () => tree((copy) => copy.critical_path.span.splice(0, 1, 38)),
      'tree.critical_path.span[0]: 38 is out of range',
    ],
    [
      'a second root',
      () =>
        flame((copy) => {
          copy.nodes['depth']?.splice(5, 1, 0);
          copy.nodes['parent']?.splice(5, 1, -1);
        }),
      'flame.nodes.parent[6]: 5 does not fit a pre-order at depth 6',
    ],
    [
      'boxes out of order',
      () => flame((copy) => copy.nodes['offset_nanos']?.fill(5e9, 3, 4)),
      'flame.nodes.offset_nanos[24]: lies left of the box before it',
    ],
    ['a box of no function', () => flame((copy) => copy.frames.splice(3)), 'flame.nodes.frame[4]: 3 is out of range'],
  ])('%s', (_, run, expected) => {
    expect(run()).toBe(expected);
  });

  it('reads what a refusal says, and knows what is none', () => {
    expect(decodeRefusal({ error: { code: 'unauthorized', message: 'no token' } })).toEqual({ code: 'unauthorized', message: 'no token' });
    expect(decodeRefusal('<html>')).toBeNull();
    expect(decodeRefusal(undefined)).toBeNull();
  });

  it('takes every number of 64 bits: spans of 1970 and 2262, a century of CPU time, a loss of 2^62', () => {
    const whole = 2 ** 64;
    expect(
      tree((copy) => {
        copy.spans.start_nanos.splice(1, 2, -1_795_459_568_562_018_600, 2 ** 63);
        copy.spans.duration_nanos.splice(1, 1, whole);
      }),
    ).toBe('no complaint');
    expect(
      flame((copy) => {
        for (const column of ['total_nanos', 'self_nanos']) copy.nodes[column]?.fill(whole);
      }),
    ).toBe('no complaint');
    const summary = (count: number) =>
      complaint(decodeSummary, documents.summary(), (copy: { quality: { count: number }[] }) => {
        for (const note of copy.quality) note.count = count;
      });
    expect(summary(2 ** 62)).toBe('no complaint');
    expect(summary(0.5)).toContain('expected a count, found 0.5');
    expect(summary(-1)).toContain('expected a count, found -1');
  });

  it('takes keys that were added later', () => {
    expect(() => decodeSummary({ ...documents.summary(), new_key: 1 })).not.toThrow();
  });
});
