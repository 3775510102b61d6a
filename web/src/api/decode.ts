/**
 * The only place where `unknown` becomes typed. A document that is not what docs/formats/http-api.md says is refused with the
 * path of the first thing that is wrong, so that everything behind this file may trust indices, lengths and orders.
 */
import type { Nanos } from '../base/brand';
import { at, type Column } from '../base/column';
import { shown } from '../base/shown';
import {
  type Answer,
  type Attribute,
  type AttributeValue,
  type CriticalPathColumns,
  type Deployment,
  type Evidence,
  type Exit,
  FLAME_TIMES,
  type Flame,
  type FlameFrame,
  type Frame,
  type NanosRange,
  type Notable,
  type Pole,
  type Poles,
  type ProcessUsage,
  type QualityNote,
  type Recordings,
  type SampleLinks,
  SOURCE_STATES,
  type Source,
  type Span,
  STATE_EVIDENCE,
  type States,
  type Summary,
  type TopFrame,
  type Tree,
  WAIT_KINDS,
  type Wait,
  type WaitKind,
} from './types';

/**
 * More than any number of a document, which have 64 bits, also when it was rounded up. Beyond 2^53 (104 days) the last nanoseconds are
 * lost, which nothing shows: one span that says no start stands 56 years before the others.
 */
const ANY_NUMBER = 2 ** 65;

/** A document is not what the contract says. */
export class DecodeError extends Error {
  constructor(
    readonly path: string,
    problem: string,
  ) {
    super(`${path}: ${problem}`);
    this.name = 'DecodeError';
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A place inside a document, which knows its path. */
class Cursor {
  constructor(
    readonly value: unknown,
    readonly path: string,
  ) {}

  fail(expected: string): never {
    throw new DecodeError(this.path, `expected ${expected}, found ${kindOf(this.value)}`);
  }

  field(name: string): Cursor {
    const { value } = this;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) this.fail('an object');
    return new Cursor((value as Record<string, unknown>)[name], `${this.path}.${name}`);
  }

  /** Every text of a document, and so every name, comes through here. */
  string(): string {
    return typeof this.value === 'string' ? shown(this.value) : this.fail('a string');
  }

  number(): number {
    return typeof this.value === 'number' && Number.isFinite(this.value) ? this.value : this.fail('a number');
  }

  count(): number {
    const value = this.number();
    if (!Number.isInteger(value) || value < 0 || value >= ANY_NUMBER) throw new DecodeError(this.path, `expected a count, found ${value}`);
    return value;
  }

  nanos(): Nanos {
    return this.number() as Nanos;
  }

  boolean(): boolean {
    return typeof this.value === 'boolean' ? this.value : this.fail('true or false');
  }

  unixNano(): bigint {
    const text = this.string();
    if (!/^-?\d{1,20}$/.test(text)) throw new DecodeError(this.path, `expected nanoseconds in digits, found "${text}"`);
    return BigInt(text);
  }

  orNull<T>(read: (cursor: Cursor) => T): T | null {
    return this.value === null || this.value === undefined ? null : read(this);
  }

  list<T>(read: (cursor: Cursor) => T): readonly T[] {
    if (!Array.isArray(this.value)) this.fail('a list');
    return (this.value as unknown[]).map((item, index) => read(new Cursor(item, `${this.path}[${index}]`)));
  }

  /** Numbers into a typed column. `low` and `high` bound each value; `high` is not included. */
  column<C extends Column>(column: (length: number) => C, low: number, high: number): C {
    if (!Array.isArray(this.value)) this.fail('a list');
    const source = this.value as unknown[];
    const target = column(source.length);
    for (let index = 0; index < source.length; index++) {
      const value = source[index];
      if (typeof value !== 'number' || !(value >= low && value < high)) {
        throw new DecodeError(
          `${this.path}[${index}]`,
          typeof value === 'number' ? `${value} is out of range` : `expected a number, found ${kindOf(value)}`,
        );
      }
      target[index] = value;
    }
    return target;
  }
}

const FLOATS = (length: number) => new Float64Array(length);
const COUNTS = (length: number) => new Uint32Array(length);
const INDICES = (length: number) => new Int32Array(length);
const BYTES = (length: number) => new Uint8Array(length);
const ANY_COUNT = 2 ** 32;

function range(cursor: Cursor): NanosRange {
  const [low, high, ...rest] = cursor.list((item) => item.nanos());
  if (low === undefined || high === undefined || rest.length > 0 || low > high) {
    throw new DecodeError(cursor.path, 'expected [low, high]');
  }
  return { low, high };
}

/** One of a few words. */
function oneOf<Word extends string>(cursor: Cursor, words: readonly Word[]): Word {
  const found = cursor.string();
  const word = words.find((known) => known === found);
  if (word !== undefined) return word;
  throw new DecodeError(cursor.path, `expected ${words.slice(0, -1).join(', ')} or ${words.at(-1)}, found "${found}"`);
}

function evidence(cursor: Cursor): Evidence {
  return oneOf(cursor, ['declared', 'inferred']);
}

function exit(cursor: Cursor): Exit {
  return {
    code: cursor.field('code').orNull((c) => c.number()),
    signal: cursor.field('signal').orNull((c) => c.number()),
  };
}

function links(cursor: Cursor): SampleLinks {
  return {
    record: cursor.field('record').count(),
    journal: cursor.field('journal').count(),
    label: cursor.field('label').count(),
    inferred: cursor.field('inferred').count(),
    ambiguous: cursor.field('ambiguous').count(),
    none: cursor.field('none').count(),
  };
}

function blocked(cursor: Cursor): States['blockedNanos'] {
  const entries = WAIT_KINDS.map((kind) => [kind, cursor.field(kind).nanos()] as const);
  return Object.fromEntries(entries) as Record<WaitKind, Nanos>;
}

/** A state that older servers do not tell apart. */
function nanosOrNone(cursor: Cursor): Nanos {
  return cursor.orNull((c) => c.nanos()) ?? (0 as Nanos);
}

function states(cursor: Cursor): States {
  return {
    onCpuNanos: cursor.field('on_cpu_nanos').nanos(),
    runnableNanos: nanosOrNone(cursor.field('runnable_nanos')),
    inChildNanos: cursor.field('in_child_nanos').nanos(),
    blockedNanos: blocked(cursor.field('blocked_nanos')),
    blockedUnseenNanos: nanosOrNone(cursor.field('blocked_unseen_nanos')),
    awaitingNanos: nanosOrNone(cursor.field('awaiting_nanos')),
    remoteNanos: nanosOrNone(cursor.field('remote_nanos')),
    unaccountedNanos: cursor.field('unaccounted_nanos').nanos(),
    cpuNanos: cursor.field('cpu_nanos').orNull((c) => c.nanos()) ?? cursor.field('on_cpu_nanos').nanos(),
    exact: cursor.field('exact').orNull((c) => c.boolean()) ?? false,
    evidence: cursor.field('evidence').orNull((c) => oneOf(c, STATE_EVIDENCE)) ?? 'samples',
  };
}

function topFrame(cursor: Cursor): TopFrame {
  return {
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    line: cursor.field('line').count(),
    selfNanos: cursor.field('self_nanos').nanos(),
    totalNanos: cursor.field('total_nanos').nanos(),
    samples: cursor.field('samples').count(),
  };
}

function qualityNote(cursor: Cursor): QualityNote {
  return {
    code: cursor.field('code').string(),
    count: cursor.field('count').count(),
    detail: cursor.field('detail').string(),
  };
}

function pole(cursor: Cursor): Pole {
  const reason = cursor.field('reason');
  return {
    handle: cursor.field('handle').string(),
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    context: cursor.field('context').orNull((c) => c.string()),
    count: cursor.field('count').count(),
    spans: cursor.field('spans').list((c) => c.string()),
    spansTruncated: cursor.field('truncated').field('spans').count(),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
    savesIfZero: range(cursor.field('saves_if_zero_nanos')),
    savesIfHalf: range(cursor.field('saves_if_half_nanos')),
    savesOwn: range(cursor.field('saves_own_nanos')),
    savesWithThoseBefore: cursor.field('saves_with_those_before_nanos').orNull(range),
    evidence: evidence(cursor.field('evidence')),
    states: states(cursor.field('states')),
    reason: {
      code: reason.field('code').string(),
      text: reason.field('text').string(),
      function: reason.field('function').orNull((c) => c.string()),
    },
    blockedBy: blockedBy(cursor),
    contains: cursor.field('contains').orNull((c) => c.string()),
    limitedBy: cursor.field('limited_by').orNull((c) => ({
      handle: c.field('handle').string(),
      name: c.field('name').string(),
      pole: c.field('pole').orNull((p) => p.string()),
    })),
    resource: cursor.field('resource').orNull((c) => c.string()),
    topFrames: cursor.field('top_frames').list(topFrame),
    samples: cursor.field('samples').count(),
    fewSamples: cursor.field('few_samples').boolean(),
  };
}

function answer(cursor: Cursor): Answer {
  return {
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    context: cursor.field('context').orNull((c) => c.string()),
    savesIfZero: range(cursor.field('saves_if_zero_nanos')),
    function: cursor.field('function').orNull((c) => c.string()),
  };
}

function deployment(cursor: Cursor): Deployment {
  return {
    cloudWaitNanos: cursor.field('cloud_wait_nanos').nanos(),
    providerNanos: cursor.field('provider_nanos').nanos(),
    engineNanos: cursor.field('engine_nanos').nanos(),
    languageHostNanos: cursor.field('language_host_nanos').nanos(),
    pluginStartNanos: cursor.field('plugin_start_nanos').nanos(),
    stateBackendNanos: cursor.field('state_backend_nanos').nanos(),
    compileNanos: cursor.field('compile_nanos').nanos(),
    idleNanos: cursor.field('idle_nanos').nanos(),
  };
}

/** `/api/recordings`. */
export function decodeRecordings(document: unknown): Recordings {
  const whole = new Cursor(document, 'recordings');
  const recordings = whole.field('recordings').list((cursor) => ({
    recording: cursor.field('recording').string(),
    command: cursor.field('command').list((c) => c.string()),
    startUnixNano: cursor.field('start_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    exit: cursor.field('exit').orNull(exit),
    state: cursor.field('state').string(),
    notSealed: cursor.field('not_sealed').orNull((c) => c.string()),
    spans: cursor.field('spans').count(),
    samples: cursor.field('samples').count(),
    answer: cursor.field('answer').orNull(answer),
  }));
  return { recordings, damaged: whole.field('damaged').list((cursor) => cursor.string()) };
}

function notable(cursor: Cursor): Notable {
  return {
    handle: cursor.field('handle').orNull((c) => c.string()),
    process: cursor.field('process').orNull((c) => c.string()),
    text: cursor.field('text').string(),
  };
}

/** `/api/recordings/{rec}`. Its poles are not read: the page shows those of `/poles`, which are not cut. */
export function decodeSummary(document: unknown): Summary {
  const cursor = new Cursor(document, 'summary');
  const parallelism = cursor.field('parallelism');
  return {
    recording: cursor.field('recording').string(),
    command: cursor.field('command').list((c) => c.string()),
    exit: cursor.field('exit').orNull(exit),
    startUnixNano: cursor.field('start_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    cpuNanos: cursor.field('cpu_nanos').orNull((c) => c.nanos()),
    host: cursor.field('host').string(),
    mode: cursor.field('mode').string(),
    rateHz: cursor.field('rate_hz').count(),
    processes: cursor.field('processes').count(),
    traces: cursor.field('traces').count(),
    spans: cursor.field('spans').count(),
    samples: cursor.field('samples').count(),
    links: links(cursor.field('links')),
    states: states(cursor.field('states')),
    parallelism: { mean: parallelism.field('mean').number(), peak: parallelism.field('peak').number() },
    deployment: cursor.field('deployment').orNull(deployment),
    usage: cursor.field('usage').orNull((c) => c.list(notable)) ?? [],
    quality: cursor.field('quality').list(qualityNote),
    recorder: cursor
      .field('recorder')
      .orNull((c) => ({ cpuNanos: c.field('cpu_nanos').nanos(), rssBytesMax: c.field('rss_bytes_max').count() })),
  };
}

/** `/api/recordings/{rec}/poles`. */
export function decodePoles(document: unknown): Poles {
  const cursor = new Cursor(document, 'poles');
  return {
    recording: cursor.field('recording').string(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    poles: cursor.field('poles').list(pole),
    polesTruncated: cursor.field('truncated').field('poles').count(),
  };
}

function sameLength(path: string, count: number, columns: Readonly<Record<string, Column>>): void {
  for (const [name, column] of Object.entries(columns)) {
    if (column.length !== count) throw new DecodeError(`${path}.${name}`, `has ${column.length} rows instead of ${count}`);
  }
}

/** A pre-order with depths: every parent precedes its child, is one level above, and is the nearest such row. */
function checkPreOrder(path: string, parent: Int32Array, depth: Uint32Array): void {
  // The open ancestors of the present row, by level.
  const open: number[] = [];
  for (let row = 0; row < parent.length; row++) {
    const level = at(depth, row);
    const expected = level === 0 ? -1 : open[level - 1];
    if (level > open.length || at(parent, row) !== expected) {
      throw new DecodeError(`${path}.parent[${row}]`, `${at(parent, row)} does not fit a pre-order at depth ${level}`);
    }
    open.length = level;
    open.push(row);
  }
}

function checkSubtrees(path: string, parent: Int32Array, subtree: Uint32Array): void {
  const counted = new Uint32Array(parent.length);
  for (let row = parent.length - 1; row >= 0; row--) {
    if (at(counted, row) !== at(subtree, row)) {
      throw new DecodeError(`${path}.subtree[${row}]`, `says ${at(subtree, row)} descendants, the rows hold ${at(counted, row)}`);
    }
    const above = at(parent, row);
    if (above >= 0) counted[above] = at(counted, above) + at(counted, row) + 1;
  }
}

function criticalPath(cursor: Cursor, spans: number): CriticalPathColumns {
  const span = cursor.field('span').column(COUNTS, 0, spans);
  const start = cursor.field('start_nanos').column(FLOATS, -ANY_NUMBER, ANY_NUMBER);
  const end = cursor.field('end_nanos').column(FLOATS, -ANY_NUMBER, ANY_NUMBER);
  sameLength(cursor.path, span.length, { start_nanos: start, end_nanos: end });
  return { span, start, end };
}

/** `/api/recordings/{rec}/tree`. */
export function decodeTree(document: unknown): Tree {
  const cursor = new Cursor(document, 'tree');
  const spans = cursor.field('spans');
  const services = cursor.field('services').list((c) => c.string());
  const names = cursor.field('names').list((c) => c.string());
  const parent = spans.field('parent').column(INDICES, -1, 2 ** 31);
  const count = parent.length;
  const columns = {
    depth: spans.field('depth').column(COUNTS, 0, ANY_COUNT),
    subtree: spans.field('subtree').column(COUNTS, 0, ANY_COUNT),
    start: spans.field('start_nanos').column(FLOATS, -ANY_NUMBER, ANY_NUMBER),
    duration: spans.field('duration_nanos').column(FLOATS, 0, ANY_NUMBER),
    service: spans.field('service').column(COUNTS, 0, services.length),
    name: spans.field('name').column(COUNTS, 0, names.length),
    flags: spans.field('flags').column(BYTES, 0, 256),
    onPath: spans.field('on_path_nanos').column(FLOATS, 0, ANY_NUMBER),
    samples: spans.field('samples').column(COUNTS, 0, ANY_COUNT),
  };
  sameLength(spans.path, count, columns);
  checkPreOrder(spans.path, parent, columns.depth);
  checkSubtrees(spans.path, parent, columns.subtree);
  return {
    recording: cursor.field('recording').string(),
    originUnixNano: cursor.field('origin_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    services,
    names,
    count,
    parent,
    ...columns,
    criticalPath: criticalPath(cursor.field('critical_path'), count),
    notes: cursor.field('notes').list(qualityNote),
  };
}

function attribute(cursor: Cursor): Attribute {
  return { key: cursor.field('key').string(), value: attributeValue(cursor.field('value')) };
}

/** The texts of a value, however deep they lie; the server limits how deep that is. */
function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return shown(value);
  if (Array.isArray(value)) return value.map(shownValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [shown(key), shownValue(inner)]));
}

function attributeValue(cursor: Cursor): AttributeValue {
  if (cursor.value === undefined) cursor.fail('a value');
  return shownValue(cursor.value) as AttributeValue;
}

function wait(cursor: Cursor): Wait {
  return {
    kind: oneOf(cursor.field('kind'), WAIT_KINDS),
    syscall: cursor.field('syscall').orNull((c) => c.string()),
    function: cursor.field('function').orNull((c) => c.string()),
    nanos: cursor.field('nanos').nanos(),
    places: cursor.field('places').list((c) => ({
      file: c.field('file').string(),
      line: c.field('line').count(),
      nanos: c.field('nanos').nanos(),
    })),
    blockedBy: blockedBy(cursor),
  };
}

function blockedBy(cursor: Cursor): string | null {
  return cursor.field('blocked_by').orNull((c) => c.field('text').string());
}

function processUsage(cursor: Cursor): ProcessUsage {
  const count = (name: string) => cursor.field(name).orNull((c) => c.count());
  const readings = cursor.field('readings');
  const timeNanos = readings.field('time_nanos').column(FLOATS, -ANY_NUMBER, ANY_NUMBER);
  const residentBytes = readings.field('resident_bytes').column(FLOATS, 0, ANY_NUMBER);
  sameLength(readings.path, timeNanos.length, { resident_bytes: residentBytes });
  return {
    cpuNanos: cursor.field('cpu_nanos').orNull((c) => c.nanos()),
    peakResidentBytes: count('peak_resident_bytes'),
    peakFrom: cursor.field('peak_from').orNull((c) => oneOf(c, ['exit', 'reading'])),
    minorFaults: count('minor_faults'),
    majorFaults: count('major_faults'),
    readBytes: count('read_bytes'),
    writtenBytes: count('written_bytes'),
    storageReadBytes: count('storage_read_bytes'),
    storageWrittenBytes: count('storage_written_bytes'),
    readBeforeEndNanos: cursor.field('read_before_end_nanos').orNull((c) => c.nanos()),
    grows: cursor.field('grows').orNull((c) => ({ fromBytes: c.field('from_bytes').count(), toBytes: c.field('to_bytes').count() })),
    readings: { timeNanos, residentBytes },
  };
}

/** `/api/recordings/{rec}/spans/{handle}`. */
export function decodeSpan(document: unknown): Span {
  const cursor = new Cursor(document, 'span');
  const samples = cursor.field('samples');
  const savings = cursor.field('savings');
  return {
    recording: cursor.field('recording').string(),
    handle: cursor.field('handle').string(),
    traceId: cursor.field('trace_id').orNull((c) => c.string()),
    spanId: cursor.field('span_id').orNull((c) => c.string()),
    parent: cursor.field('parent').orNull((c) => ({ handle: c.field('handle').string(), edge: evidence(c.field('edge')) })),
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    kind: cursor.field('kind').string(),
    status: {
      code: cursor.field('status').field('code').string(),
      message: cursor.field('status').field('message').string(),
    },
    startNanos: cursor.field('start_nanos').nanos(),
    durationNanos: cursor.field('duration_nanos').nanos(),
    process: cursor.field('process').orNull((c) => ({
      pid: c.field('pid').count(),
      name: c.field('name').string(),
      arguments: c.field('arguments').list((argument) => argument.string()),
      exit: c.field('exit').orNull(exit),
      usage: c.field('usage').orNull(processUsage),
    })),
    attributes: cursor.field('attributes').list(attribute),
    resource: cursor.field('resource').list(attribute),
    events: cursor.field('events').list((c) => ({
      timeNanos: c.field('time_nanos').nanos(),
      name: c.field('name').string(),
      attributes: c.field('attributes').list(attribute),
    })),
    links: cursor.field('links').list((c) => ({
      traceId: c.field('trace_id').string(),
      spanId: c.field('span_id').string(),
      handle: c.field('handle').orNull((h) => h.string()),
    })),
    states: states(cursor.field('states')),
    statesWithDescendants: cursor.field('states_with_descendants').orNull(states),
    waits: cursor.field('waits').list(wait),
    samples: {
      own: samples.field('own').count(),
      withDescendants: samples.field('with_descendants').count(),
      links: links(samples.field('links')),
    },
    fewSamples: cursor.field('few_samples').boolean(),
    savings: {
      ifZero: range(savings.field('saves_if_zero_nanos')),
      ifHalf: range(savings.field('saves_if_half_nanos')),
      own: range(savings.field('saves_own_nanos')),
      evidence: evidence(savings.field('evidence')),
      onPathNanos: savings.field('on_path_nanos').nanos(),
    },
    topFrames: cursor.field('top_frames').list(topFrame),
    children: cursor.field('children').count(),
  };
}

function flameFrame(cursor: Cursor): FlameFrame {
  return {
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    line: cursor.field('line').count(),
    reason: cursor.field('reason').orNull((c) => c.string()),
    runtime: cursor.field('runtime').orNull((c) => c.string()),
  };
}

/** One root, and the boxes of each level from left to right: the drawing searches levels by halves. */
function checkBoxes(path: string, depth: Uint32Array, offset: Float64Array): void {
  const lastOffset: number[] = [];
  for (let node = 0; node < depth.length; node++) {
    const level = at(depth, node);
    if (level === 0 && node > 0) throw new DecodeError(`${path}.depth[${node}]`, 'is a second root');
    if (at(offset, node) < (lastOffset[level] ?? 0)) {
      throw new DecodeError(`${path}.offset_nanos[${node}]`, 'lies left of the box before it');
    }
    lastOffset[level] = at(offset, node);
  }
}

/** `/api/recordings/{rec}/flame`. */
export function decodeFlame(document: unknown): Flame {
  const cursor = new Cursor(document, 'flame');
  const nodes = cursor.field('nodes');
  const frames = cursor.field('frames').list(flameFrame);
  const parent = nodes.field('parent').column(INDICES, -1, 2 ** 31);
  const count = parent.length;
  const columns = {
    depth: nodes.field('depth').column(COUNTS, 0, ANY_COUNT),
    frame: nodes.field('frame').column(INDICES, -1, frames.length),
    offset: nodes.field('offset_nanos').column(FLOATS, 0, ANY_NUMBER),
    total: nodes.field('total_nanos').column(FLOATS, 0, ANY_NUMBER),
    self: nodes.field('self_nanos').column(FLOATS, 0, ANY_NUMBER),
    line: nodes.field('line').column(COUNTS, 0, ANY_COUNT),
  };
  sameLength(nodes.path, count, columns);
  checkPreOrder(nodes.path, parent, columns.depth);
  checkBoxes(nodes.path, columns.depth, columns.offset);
  return {
    recording: cursor.field('recording').string(),
    span: cursor.field('span').orNull((c) => c.string()),
    title: cursor.field('title').string(),
    time: oneOf(cursor.field('time'), FLAME_TIMES),
    samples: cursor.field('samples').count(),
    weightNanos: cursor.field('weight_nanos').nanos(),
    fewSamples: cursor.field('few_samples').boolean(),
    links: links(cursor.field('links')),
    frames,
    count,
    parent,
    ...columns,
  };
}

/** `/api/recordings/{rec}/frames/{handle}`. */
export function decodeFrame(document: unknown): Frame {
  const cursor = new Cursor(document, 'frame');
  return {
    recording: cursor.field('recording').string(),
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    samples: cursor.field('samples').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    selfNanos: cursor.field('self_nanos').nanos(),
    waits: cursor.field('waits').count(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
    spans: cursor.field('spans').list((c) => ({
      handle: c.field('handle').string(),
      service: c.field('service').string(),
      name: c.field('name').string(),
      samples: c.field('samples').count(),
      totalNanos: c.field('total_nanos').nanos(),
      waitedNanos: c.field('waited_nanos').nanos(),
      share: c.field('share').number(),
    })),
    unlinkedSamples: cursor.field('unlinked_samples').count(),
    spansTruncated: cursor.field('truncated').field('spans').count(),
  };
}

/** `/api/recordings/{rec}/frames/{handle}/source`. */
export function decodeSource(document: unknown): Source {
  const cursor = new Cursor(document, 'source');
  return {
    state: oneOf(cursor.field('state'), SOURCE_STATES),
    detail: cursor.field('detail').orNull((c) => c.string()),
    lines: cursor.field('lines').list((c) => ({
      line: c.field('line').count(),
      text: c.field('text').orNull((text) => text.string()),
      totalNanos: c.field('total_nanos').nanos(),
      selfNanos: c.field('self_nanos').nanos(),
      waitedNanos: c.field('waited_nanos').nanos(),
    })),
  };
}

/** The body of a refused request; `null` where it is not ours. */
export function decodeRefusal(document: unknown): { readonly code: string; readonly message: string } | null {
  try {
    const error = new Cursor(document, 'error').field('error');
    return { code: error.field('code').string(), message: error.field('message').string() };
  } catch {
    return null;
  }
}
