/** What the page says in sentences. */
import { describe, expect, it } from 'vitest';
import { decodePoles, decodeRecordings, decodeSpan, decodeSummary, decodeTree } from '../api/decode';
import type { Nanos, SpanIndex } from '../base/brand';
import { allRecordings, deployRecording } from '../testing/recordings.mjs';
import {
  containedPole,
  contextOf,
  hasAnswer,
  isOneNumber,
  isWorthwhile,
  nameOfResource,
  poleInWords,
  reasonPieces,
  selectedPole,
  wallAfter,
  whyInWords,
} from './answer';
import { deploymentParts } from './deployment';
import { wasSampled, whyRunHasNoSamples, whySpanHasNoSamples } from './no-samples';
import { allNotes, graveNotes, linksInWords, titleOf } from './quality';
import { matchingRecordings } from './search';
import { rowInWords } from './span-words';
import { stateParts } from './states';

const plain = (text: string) => text.replaceAll('\u00a0', ' ');
const deploy = deployRecording();
const [, single, , odd, , pulumi] = allRecordings();

describe('the answer', () => {
  const { poles, wallNanos } = decodePoles(deploy.poles());
  it('is worth a sentence when it is worth a thousandth of the run', () => {
    expect(isWorthwhile({ low: 0 as Nanos, high: (wallNanos / 500) as Nanos }, wallNanos)).toBe(true);
    expect(isWorthwhile({ low: 0 as Nanos, high: (wallNanos / 5000) as Nanos }, wallNanos)).toBe(false);
    expect(hasAnswer(null, wallNanos)).toBe(false);
  });
  it('says how long the run would still take', () => {
    expect(wallAfter({ low: 1e9 as Nanos, high: 2e9 as Nanos }, 6e9 as Nanos)).toEqual({ low: 4e9, high: 5e9 });
    expect(wallAfter({ low: 7e9 as Nanos, high: 7e9 as Nanos }, 6e9 as Nanos)).toEqual({ low: 0, high: 0 });
  });
  it('takes its reason apart where that names a function', () => {
    const [first, second] = poles;
    if (first === undefined || second === undefined) throw new Error('no poles');
    const { before, frame, after } = reasonPieces(first);
    expect([before, frame?.function, after]).toEqual(['91 % on-CPU, most of it in ', 'provider_build::bundle::hash_block', '']);
    expect(reasonPieces(second)).toEqual({ before: 'waits, 0 % on-CPU', frame: null, after: '' });
  });
  it('names the context only where it says more than the name', () => {
    expect(poles[0] === undefined ? null : contextOf(poles[0])).toBe('create web-bundle');
    expect(contextOf({ name: 'build', context: 'build' })).toBeNull();
    expect(contextOf({ name: 'compute/create web-bundle', context: 'create web-bundle' })).toBeNull();
    expect(contextOf({ name: 'build', context: null })).toBeNull();
  });
  it('is a range only where its ends read apart', () => {
    expect(isOneNumber({ low: 997_100 as Nanos, high: 997_200 as Nanos })).toBe(true);
    expect(isOneNumber({ low: 0 as Nanos, high: 997_200 as Nanos })).toBe(false);
  });
});

describe('a deployment by Pulumi', () => {
  if (pulumi === undefined) throw new Error('no such recording');
  const poles = decodePoles(pulumi.poles());
  const named = (handle: string) => {
    const pole = poles.poles.find((candidate) => candidate.handle === handle);
    if (pole === undefined) throw new Error(`no pole ${handle}`);
    return pole;
  };
  it('has poles that say which cloud resource they are about', () => {
    expect(poleInWords(named('p1'))).toBe('pulumirpc.ResourceProvider/Create in aws:rds/instance:Instance orders-database-primary');
    expect(nameOfResource(named('p1'))).toBe('orders-database-primary');
    expect(nameOfResource(named('p4'))).toBeUndefined();
    expect(nameOfResource({ ...named('p1'), resource: 'urn:pulumi:dev::shop::aws:s3/bucket:Bucket::a::b' })).toBe('a::b');
  });
  it('has poles that say whose saving their own contains', () => {
    expect(whyInWords(named('p10'))).toBe('contains p13; hardly more than what it calls');
    expect(whyInWords(named('p1'))).toBe('waits, 0 % on-CPU');
    expect(containedPole(named('p10'), poles)?.handle).toBe('p13');
    expect(containedPole({ ...named('p10'), contains: 'p99' }, poles)).toBeNull();
  });
  it('finds the pole of a span that was selected by itself', () => {
    expect(selectedPole(poles, undefined, named('p10').spans[0])?.handle).toBe('p10');
    expect(selectedPole(poles, 'p2', named('p10').spans[0])?.handle).toBe('p2');
    expect(selectedPole(poles, undefined, 's1')).toBeNull();
    expect(selectedPole(poles, undefined, undefined)).toBeNull();
  });
  it('splits its time in the words of the terminal, without what took none', () => {
    const { deployment, wallNanos } = decodeSummary(pulumi.summary());
    if (deployment === null) throw new Error('no deployment');
    const parts = deploymentParts(deployment, wallNanos);
    expect(parts.map(({ label }) => label)).toEqual([
      'cloud',
      'providers',
      'Pulumi’s engine',
      'language host',
      'plug-in start',
      'state',
      'idle',
    ]);
    expect(parts.reduce((sum, { nanos }) => sum + nanos, 0)).toBe(wallNanos);
    expect(decodeSummary(deploy.summary()).deployment).toBeNull();
  });
});

describe('why there are no samples', () => {
  const summaryOf = (documents: typeof deploy) => decodeSummary(documents.summary());
  it('refused: what the kernel said and what to do', () => {
    if (odd === undefined) throw new Error('no such recording');
    const summary = summaryOf(odd);
    expect(whyRunHasNoSamples(summary, summary.quality).text).toContain('sysctl kernel.perf_event_paranoid=2');
  });
  it('imported: the file has spans alone, and on-CPU time is not known', () => {
    const imported = { ...summaryOf(deploy), command: ['import', 'up.json'], processes: 0, mode: 'off', rateHz: 0 };
    expect(whyRunHasNoSamples(imported, []).title).toBe('The file holds no samples');
    expect(whyRunHasNoSamples({ ...imported, processes: 1 }, []).title).toBe('Samples were not recorded');
    expect([imported, { ...imported, mode: 'refused' }, summaryOf(deploy)].map(wasSampled)).toEqual([false, false, true]);
  });
  it('switched off, too short, waiting, or lost', () => {
    if (single === undefined) throw new Error('no such recording');
    const summary = summaryOf(deploy);
    const span = decodeSpan(deploy.span('s13'));
    const why = (change: Partial<typeof span>) => whySpanHasNoSamples({ ...span, ...change }, summary, []).title;
    const process = { pid: 1, name: 'x', arguments: [] };
    const states = { onCpuNanos: 0 as Nanos, inChildNanos: 0 as Nanos, unaccountedNanos: 91e6 as Nanos };
    expect(whySpanHasNoSamples(span, { ...summary, mode: 'off' }, []).title).toBe('Samples were not recorded');
    expect(why({ durationNanos: 1e6 as Nanos })).toBe('Too short for a sample');
    expect(why({ process, states })).toBe('It used no CPU time of its own');
    expect(why({ process, states: { ...states, onCpuNanos: 50e6 as Nanos } })).toBe('No sample was tied to this span');
    expect(why({})).toBe('No sample carries this span');
    expect(whyRunHasNoSamples(summaryOf(single), []).title).toBe('Nothing was caught on a CPU');
  });
});

describe('data quality', () => {
  it('lists each note once, and says an unknown one as it is', () => {
    const summary = decodeSummary(deploy.summary());
    const notes = allNotes(summary, decodeTree(deploy.tree()).notes);
    expect(notes.map(titleOf)).toEqual([
      'stacks deeper than what was copied',
      'binaries without readable symbols',
      'limits of work in flight',
    ]);
    expect(allNotes(summary, summary.quality)).toHaveLength(summary.quality.length);
    expect(titleOf({ code: 'new_trouble', count: 1, detail: '' })).toBe('new trouble');
    expect(graveNotes([{ code: 'recorder_killed', count: 1, detail: '' }, ...notes])).toHaveLength(1);
  });
  it('says how samples were tied to spans', () => {
    expect(plain(linksInWords({ record: 2100, inferred: 4, ambiguous: 0, none: 1 }))).toBe(
      '2,105 samples: 2,100 by the span’s own record, 4 inferred from process, thread and time, 1 in no span',
    );
    expect(linksInWords({ record: 0, inferred: 0, ambiguous: 0, none: 0 })).toBe('no samples');
  });
});

it('the parts of a state bar are shares of their sum', () => {
  const parts = stateParts({ onCpuNanos: 30 as Nanos, inChildNanos: 60 as Nanos, unaccountedNanos: 10 as Nanos });
  expect(parts.map(({ label, share }) => `${label} ${share}`)).toEqual(['on-CPU 0.3', 'in child 0.6', 'unaccounted 0.1']);
  expect(stateParts({ onCpuNanos: 0 as Nanos, inChildNanos: 0 as Nanos, unaccountedNanos: 0 as Nanos })[0]?.share).toBe(0);
});

it('recordings are found by command, answer and handle', () => {
  const recordings = decodeRecordings({ recordings: allRecordings().map(({ recording }) => recording) });
  const find = (query: string) => matchingRecordings(recordings, query).map(({ recording }) => recording);
  expect(find('')).toEqual(['r7', 'r6', 'r5', 'r4', 'r3', 'r2']);
  expect(find('HASH_block')).toEqual(['r7']);
  expect(find('cargo build')).toEqual(['r3']);
  expect(find('r6')).toEqual(['r6']);
  expect(find('nothing like it')).toEqual([]);
});

it('a row is read aloud with all that its marks mean', () => {
  const tree = decodeTree(deploy.tree());
  const pole = decodePoles(deploy.poles()).poles[0];
  expect(plain(rowInWords(tree, 11 as SpanIndex, pole, 0.88))).toBe(
    'pack bundle, provider-build, 2.37 s, on the critical path for 2.37 s, long pole p1 in create web-bundle, 88 % of its samples are in the selected function',
  );
  expect(plain(rowInWords(tree, 10 as SpanIndex, undefined, undefined))).toBe(
    'provider-build, provider-build, 5.51 s, made from a process, parent inferred',
  );
});
