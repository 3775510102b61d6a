/** The sentences of the page. */
import { describe, expect, it } from 'vitest';
import { decodeFlame, decodeTree } from '../api/checks';
import { decodePoles, decodeRecordings, decodeSpan, decodeSummary } from '../api/decode.gen';
import type { Nanos, SpanIndex } from '../base/brand';
import { allRecordings, deployRecording } from '../testing/recordings.mjs';
import {
  containedPole,
  contextOf,
  countedNodes,
  evidenceInWords,
  frameOfPiece,
  hasAnswer,
  isOneNumber,
  isWorthwhile,
  nameOfResource,
  partOfPole,
  poleInWords,
  selectedPole,
  wallAfter,
  whyInWords,
} from './answer';
import { deploymentParts } from './deployment';
import { madeOfInWords, numberInWords } from './flame-time';
import { wasSampled, whyPartHasNoSamples, whyRunHasNoSamples, whySpanHasNoSamples } from './no-samples';
import { allNotes, foldedForks, graveNotes, linksInWords } from './quality';
import { matchingRecordings } from './search';
import { namedService, rowInWords } from './span-words';
import { howKnown, stateParts, wholeNanos } from './states';

const plain = (text: string) => text.replaceAll('\u00a0', ' ');
const deploy = deployRecording();
const [, single, , odd, , pulumi] = allRecordings();

describe('the answer', () => {
  const { poles, wallNanos } = decodePoles(deploy.poles());
  it('gets a sentence if it saves a thousandth of the run', () => {
    expect(isWorthwhile({ low: 0 as Nanos, high: (wallNanos / 500) as Nanos }, wallNanos)).toBe(true);
    expect(isWorthwhile({ low: 0 as Nanos, high: (wallNanos / 5000) as Nanos }, wallNanos)).toBe(false);
    expect(hasAnswer(null, wallNanos)).toBe(false);
  });
  it('says how long the run would still take', () => {
    expect(wallAfter({ low: 1e9 as Nanos, high: 2e9 as Nanos }, 6e9 as Nanos)).toEqual({ low: 4e9, high: 5e9 });
    expect(wallAfter({ low: 7e9 as Nanos, high: 7e9 as Nanos }, 6e9 as Nanos)).toEqual({ low: 0, high: 0 });
  });
  it('links the functions of its reason to their samples', () => {
    const framesOf = (pole: (typeof poles)[number] | undefined) => {
      if (pole === undefined) throw new Error('no such pole');
      return pole.reason.pieces.map((piece) => [piece.kind, piece.text, frameOfPiece(pole, piece)?.function ?? null]);
    };
    const hot = 'provider_build::bundle::hash_block';
    expect(framesOf(poles[0])).toEqual([
      ['text', '91 % on-CPU, most of it in ', null],
      ['function', hot, hot],
    ]);
    expect(framesOf(poles[1])).toEqual([['text', '100 % unaccounted, 0 % on-CPU', null]]);
    expect(
      framesOf(poles.find(({ blockedBy, reason }) => blockedBy === null && reason.code === 'waits' && reason.function !== null)),
    ).toEqual([
      ['text', '77 % blocked on a lock, in ', null],
      ['waiting_function', 'deploy_engine::state::StateFile::record', null],
    ]);
  });
  it('names the operation that limits the saving', () => {
    const [first] = poles;
    if (first === undefined) throw new Error('no poles');
    expect(whyInWords(first)).toBe(
      `91 % on-CPU, most of it in provider_build::bundle::hash_block; it cannot save more: without it, create migrate (${first.limitedBy?.handle}) is on the path`,
    );
  });
  it('says that a limit is not certain if the dependencies are inferred', () => {
    const [first] = poles;
    if (first === undefined) throw new Error('no poles');
    expect(whyInWords({ ...first, evidence: 'inferred' })).toContain('; it probably cannot save more: without it, create migrate (');
  });
  it('calls rows of a recording without spans processes', () => {
    expect(['3 spans', '1 process', '3 processes']).toEqual([countedNodes(3, 9), countedNodes(1, 0), countedNodes(3, 0)].map(plain));
  });
  it('says what the marks of a saving mean', () => {
    const range = { low: 0 as Nanos, high: 1e9 as Nanos };
    expect(evidenceInWords({ evidence: 'declared', savesIfZeroNanos: range })).toBe(
      '◆ Certain: span links declare its dependencies, or it depended on nothing else.',
    );
    expect(evidenceInWords({ evidence: 'inferred', savesIfZeroNanos: range })).toContain('so the saving is a range');
  });
  it('is a part of an operation if the part has a name', () => {
    const [pole] = poles;
    if (pole === undefined) throw new Error('no poles');
    const part = { kind: 'waits' as const, text: 'upload (sleep)', function: null, handle: null, file: null, line: null };
    expect(partOfPole({ ...pole, part: { ...part, text: '' } })).toBeNull();
    expect(partOfPole({ ...pole, part })?.part.text).toBe('upload (sleep)');
  });
  it('names the context only if it adds to the name', () => {
    expect(poles[0] === undefined ? null : contextOf(poles[0])).toBe('create web-bundle');
    expect(contextOf({ name: 'build', context: 'build' })).toBeNull();
    expect(contextOf({ name: 'compute/create web-bundle', context: 'create web-bundle' })).toBeNull();
    expect(contextOf({ name: 'build', context: null })).toBeNull();
  });
  it('is a range only if its ends print differently', () => {
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
  it('has poles that name their cloud resource', () => {
    expect(poleInWords(named('p1'))).toBe('pulumirpc.ResourceProvider/Create in aws:rds/instance:Instance orders-database-primary');
    expect(nameOfResource(named('p1'))).toBe('orders-database-primary');
    expect(nameOfResource(named('p4'))).toBeUndefined();
    expect(nameOfResource({ ...named('p1'), resource: 'urn:pulumi:dev::shop::aws:s3/bucket:Bucket::a::b' })).toBe('a::b');
  });
  it('has poles that name the pole they contain', () => {
    expect(whyInWords(named('p10'))).toBe('contains p13; hardly more than what it calls');
    expect(whyInWords(named('p1'))).toBe('100 % unaccounted, 0 % on-CPU');
    expect(containedPole(named('p10'), poles)?.handle).toBe('p13');
    expect(containedPole({ ...named('p10'), contains: 'p99' }, poles)).toBeNull();
  });
  it('finds the pole of a span that was selected alone', () => {
    expect(selectedPole(poles, undefined, named('p10').spans[0])?.handle).toBe('p10');
    expect(selectedPole(poles, 'p2', named('p10').spans[0])?.handle).toBe('p2');
    expect(selectedPole(poles, undefined, 's1')).toBeNull();
    expect(selectedPole(poles, undefined, undefined)).toBeNull();
  });
  it('splits its time in the words of the terminal, without empty parts', () => {
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
      'nothing running',
    ]);
    expect(parts.reduce((sum, { nanos }) => sum + nanos, 0)).toBe(wallNanos);
    expect(decodeSummary(deploy.summary()).deployment).toBeNull();
  });
});

describe('why there are no samples', () => {
  const summaryOf = (documents: typeof deploy) => decodeSummary(documents.summary());
  it('sampling not allowed: what the kernel said and what to do', () => {
    if (odd === undefined) throw new Error('no such recording');
    const summary = summaryOf(odd);
    expect(whyRunHasNoSamples(summary, summary.quality, 'on_cpu').text).toContain('sysctl kernel.perf_event_paranoid=2');
  });
  it('imported: the file only has spans, and on-CPU time is unknown', () => {
    const imported = {
      ...summaryOf(deploy),
      of: 'file' as const,
      command: ['import', 'up.json'],
      processes: 0,
      mode: 'off' as const,
      rateHz: 0,
    };
    expect(whyRunHasNoSamples(imported, [], 'off_cpu').title).toBe('The file holds no samples');
    expect(whyRunHasNoSamples({ ...imported, of: 'command' }, [], 'on_cpu').title).toBe('Profiling was off');
    expect(whyRunHasNoSamples({ ...imported, of: 'trace' }, [], 'on_cpu').title).toBe('A trace holds no samples');
    expect([imported, { ...imported, mode: 'refused' as const }, summaryOf(deploy)].map(wasSampled)).toEqual([false, false, true]);
  });
  it('switched off, too short, waiting, or lost', () => {
    if (single === undefined) throw new Error('no such recording');
    const summary = summaryOf(deploy);
    const span = decodeSpan(deploy.span('s13'));
    const why = (change: Partial<typeof span>) => whySpanHasNoSamples({ ...span, ...change }, summary, [], 'on_cpu').title;
    const process = { pid: 1, name: 'x', arguments: [], exit: null, usage: null };
    const states = { ...span.states, onCpuNanos: 0 as Nanos, inChildNanos: 0 as Nanos, unaccountedNanos: 91e6 as Nanos };
    expect(whySpanHasNoSamples(span, { ...summary, mode: 'off' }, [], 'on_cpu').title).toBe('Profiling was off');
    expect(why({ durationNanos: 1e6 as Nanos })).toBe('Too short for a sample');
    expect(why({ process, states })).toBe('No sample was matched to this span');
    expect(why({ process, states: { ...states, unaccountedNanos: 0 as Nanos } })).toBe('It used almost no CPU time of its own');
    expect(why({ process, states: { ...states, onCpuNanos: 50e6 as Nanos } })).toBe('No sample was matched to this span');
    expect(why({})).toBe('No sample was matched to this span');
    expect(whyRunHasNoSamples(summaryOf(single), [], 'on_cpu').title).toBe('This run has no samples');
  });
  it('a part that waits has no samples by what it is, and one that computes is too short', () => {
    const [summary, span] = [summaryOf(deploy), decodeSpan(deploy.span('s13'))];
    const part = { kind: 'waits' as const, text: 'upload (sleep)', function: null, handle: null, file: null, line: null };
    const why = (kind: 'waits' | 'computes', time: 'on_cpu' | 'off_cpu') => whyPartHasNoSamples({ ...part, kind }, span, summary, [], time);
    expect(why('waits', 'on_cpu')).toEqual({
      title: 'This part waited',
      text: 'upload (sleep) is waiting time, so it has no on-CPU samples. Switch the flame graph to “off-CPU”.',
    });
    expect([why('computes', 'on_cpu'), why('waits', 'off_cpu')].map(({ title }) => title)).toEqual([
      'No samples in this part',
      'No waits were sampled in this part',
    ]);
    expect(whyPartHasNoSamples(part, span, { ...summary, mode: 'off' }, [], 'on_cpu').title).toBe('Profiling was off');
  });
  it('blocked: it waited, with and without sampled waits', () => {
    const summary = summaryOf(deploy);
    const why = (handle: string, time: 'on_cpu' | 'off_cpu') => whySpanHasNoSamples(decodeSpan(deploy.span(handle)), summary, [], time);
    expect(plain(why('s38', 'on_cpu').text)).toBe(
      'It was blocked for 83.0ms of 92.0ms, so it ran little or no code. Switch the flame graph to “off-CPU” to see where it waited.',
    );
    expect(plain(why('s24', 'off_cpu').text)).toBe('Blocked for 1.02s of 1.07s, but longpole did not sample the stacks of those waits.');
    expect(plain(why('s12', 'off_cpu').text)).toBe('No wait was recorded here. Idle workers do not count.');
    if (single === undefined) throw new Error('no such recording');
    expect(whyRunHasNoSamples(summaryOf(single), [], 'off_cpu').title).toBe('No waits were sampled');
  });
});

describe('a service', () => {
  it('is no word that only stands for one', () => {
    expect(['run', 'process', 'unknown_service', 'shop'].map(namedService)).toEqual(['', '', '', 'shop']);
  });
});

describe('data quality', () => {
  it('lists each note once', () => {
    const summary = decodeSummary(deploy.summary());
    const notes = allNotes(summary, decodeTree(deploy.tree()).notes);
    expect(notes.map(({ title }) => title)).toEqual(['stacks cut off', 'no function names', 'concurrency limits']);
    expect(allNotes(summary, summary.quality)).toHaveLength(summary.quality.length);
    expect(graveNotes([{ code: 'recorder_killed', count: 1, title: 'longpole was killed', detail: '' }, ...notes])).toHaveLength(1);
  });
  it('counts the forks that are no rows of the trace', () => {
    const summary = decodeSummary(deploy.summary());
    expect(foldedForks(summary)).toBe(0);
    expect(foldedForks({ ...summary, quality: [{ code: 'forks_folded', count: 21, title: '', detail: '' }] })).toBe(21);
  });
  it('says how samples are matched to spans', () => {
    expect(plain(linksInWords({ record: 2100, journal: 30, label: 0, inferred: 4, ambiguous: 0, none: 1 }, 9))).toBe(
      '2,135 samples: 2,100 matched exactly (the thread named its span), 30 matched exactly (the thread’s journal of spans), 4 matched by process, thread and time (inferred), 1 not matched',
    );
    expect(linksInWords({ record: 0, journal: 0, label: 0, inferred: 0, ambiguous: 0, none: 0 }, 9)).toBe('no samples');
    expect(plain(linksInWords({ record: 0, journal: 0, label: 0, inferred: 0, ambiguous: 0, none: 6285 }, 0))).toBe(
      '6,285 samples, linked to processes: there are no spans',
    );
  });
});

describe('the parts of a time', () => {
  const nothing = { lock: 0, queue: 0, join: 0, disk: 0, network: 0, sleep: 0, pageFault: 0, child: 0, pipe: 0, idle: 0, other: 0 };
  const states = (onCpu: number, inChild: number, blocked: Partial<typeof nothing>, unaccounted: number) => ({
    onCpuNanos: onCpu as Nanos,
    inChildNanos: inChild as Nanos,
    blockedNanos: { ...nothing, ...blocked } as Record<keyof typeof nothing, Nanos>,
    unaccountedNanos: unaccounted as Nanos,
    runnableNanos: 0 as Nanos,
    blockedUnseenNanos: 0 as Nanos,
    awaitingNanos: 0 as Nanos,
    remoteNanos: 0 as Nanos,
    cpuNanos: onCpu as Nanos,
    exact: false,
    evidence: 'samples' as const,
  });
  it('are shares of their sum, with the longest kind of wait first', () => {
    const { onCpu, inChild, blocked, unaccounted } = stateParts(states(30, 20, { disk: 10, pageFault: 25 }, 15));
    expect([onCpu, inChild, ...blocked.kinds, unaccounted].map(({ label, share }) => `${label} ${share}`)).toEqual([
      'on-CPU 0.3',
      'in a child 0.2',
      'page fault 0.25',
      'disk 0.1',
      'unaccounted 0.15',
    ]);
    expect([blocked.nanos, blocked.share]).toEqual([35, 0.35]);
    expect(blocked.kinds[0]?.explanation).toBe('blocked on a page fault');
  });
  it('have a word each, also for waits without a sample', () => {
    const all = { ...states(10, 0, { disk: 10 }, 0), runnableNanos: 20, blockedUnseenNanos: 30, awaitingNanos: 20, remoteNanos: 10 };
    const { runnable, blocked, awaiting, remote } = stateParts(all as ReturnType<typeof states>);
    expect([runnable, ...blocked.kinds, awaiting, remote].map(({ label, share }) => `${label} ${share}`)).toEqual([
      'runnable 0.2',
      'not sampled 0.3',
      'disk 0.1',
      'awaiting 0.2',
      'remote 0.1',
    ]);
  });
  it('say how exact they are', () => {
    const marks = [{}, { exact: true, evidence: 'journal' as const }, { evidence: 'inferred' as const }].map(
      (said) => howKnown({ ...states(1, 0, {}, 0), ...said }).mark,
    );
    expect(marks).toEqual(['≈ all shares are estimates', 'all shares exact', 'shares incomplete']);
  });
  it('of no time are no shares', () => {
    const { onCpu, blocked } = stateParts(states(0, 0, {}, 0));
    expect([onCpu.share, blocked.share, blocked.kinds.length]).toEqual([0, 0, 0]);
  });
  it('sum along the critical path to the wall time', () => {
    const { states: found, wallNanos } = decodeSummary(deploy.summary());
    expect(wholeNanos(found)).toBe(wallNanos);
  });
});

it('a flame graph names its samples and waits', () => {
  const words = (time: string) => {
    const flame = decodeFlame(deploy.flame('s2', time));
    return [numberInWords(flame), madeOfInWords(flame, 9)].map(plain);
  };
  expect(words('on_cpu')).toEqual(['2,874 samples', '2,874 samples: 2,874 matched exactly (the thread named its span)']);
  expect(words('off_cpu')).toEqual(['2 waits', '2 sampled waits']);
  expect(words('wall')).toEqual([
    '2,876 samples and waits',
    '2,874 samples: 2,874 matched exactly (the thread named its span); 2 sampled waits',
  ]);
});

/** All made-up recordings take seconds on a busy machine: one has 100,000 spans. */
const RECORDINGS_MILLIS = 30_000;

it(
  'recordings are found by command, answer and handle',
  () => {
    const { recordings } = decodeRecordings({ recordings: allRecordings().map(({ recording }) => recording), damaged: [] });
    const find = (query: string) => matchingRecordings(recordings, query).map(({ recording }) => recording);
    expect(find('')).toEqual(['r7', 'r6', 'r5', 'r4', 'r3', 'r2', 'r1']);
    expect(find('HASH_block')).toEqual(['r7']);
    expect(find('cargo build')).toEqual(['r3']);
    expect(find('r6')).toEqual(['r6']);
    expect(find('nothing like it')).toEqual([]);
  },
  RECORDINGS_MILLIS,
);

it('a row has words for all of its marks', () => {
  const tree = decodeTree(deploy.tree());
  const pole = decodePoles(deploy.poles()).poles[0];
  expect(plain(rowInWords(tree, 11 as SpanIndex, pole, 0.88))).toBe(
    'pack bundle, provider-build, 2.37s, on the critical path for 2.37s, long pole p1 in create web-bundle, 88% of its samples are in the selected function',
  );
  expect(plain(rowInWords(tree, 10 as SpanIndex, undefined, undefined))).toBe(
    'provider-build, provider-build, 5.52s, a process, not a span, parent inferred',
  );
});
