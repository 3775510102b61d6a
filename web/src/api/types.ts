/** What the API serves, after decoding: the shapes of docs/formats/http-api.md, with large lists as typed columns. */
import type { Nanos } from '../base/brand';

/** From the least to the most that can be; both are equal where what a span waited for is declared. */
export interface NanosRange {
  readonly low: Nanos;
  readonly high: Nanos;
}

export type Evidence = 'declared' | 'inferred';

export interface Exit {
  readonly code: number | null;
  readonly signal: number | null;
}

/** The answer of a recording in one line: its first pole. */
export interface Answer {
  readonly service: string;
  readonly name: string;
  readonly context: string | null;
  readonly savesIfZero: NanosRange;
  readonly function: string | null;
}

export interface Recording {
  readonly recording: string;
  readonly command: readonly string[];
  readonly startUnixNano: bigint;
  readonly wallNanos: Nanos;
  readonly exit: Exit | null;
  readonly state: string;
  /** Why its recorder could not seal it; `null` of all others. */
  readonly notSealed: string | null;
  readonly spans: number;
  readonly samples: number;
  readonly answer: Answer | null;
}

/** What is in the store. */
export interface Recordings {
  readonly recordings: readonly Recording[];
  /** What is wrong with rows of the catalog that are no recordings. */
  readonly damaged: readonly string[];
}

/** Numbers of samples by how they were tied to their span. */
export interface SampleLinks {
  readonly record: number;
  readonly journal: number;
  readonly label: number;
  readonly inferred: number;
  readonly ambiguous: number;
  readonly none: number;
}

/** What a thread waits for. */
export const WAIT_KINDS = ['lock', 'join', 'disk', 'network', 'sleep', 'page_fault', 'child', 'pipe', 'other'] as const;
export type WaitKind = (typeof WAIT_KINDS)[number];

/** How it is known where time went: only samples are an estimate. */
export const STATE_EVIDENCE = ['journal', 'inferred', 'samples'] as const;
export type StateEvidence = (typeof STATE_EVIDENCE)[number];

/** Where the time of a span went; the parts, all but `cpuNanos`, sum to its duration. */
export interface States {
  readonly onCpuNanos: Nanos;
  readonly runnableNanos: Nanos;
  readonly inChildNanos: Nanos;
  readonly blockedNanos: Readonly<Record<WaitKind, Nanos>>;
  readonly blockedUnseenNanos: Nanos;
  readonly awaitingNanos: Nanos;
  readonly remoteNanos: Nanos;
  readonly unaccountedNanos: Nanos;
  /** Of all its threads together; may be more than the duration. */
  readonly cpuNanos: Nanos;
  readonly exact: boolean;
  readonly evidence: StateEvidence;
}

export interface TopFrame {
  readonly handle: string;
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly selfNanos: Nanos;
  readonly totalNanos: Nanos;
  readonly samples: number;
}

export interface Pole {
  readonly handle: string;
  readonly service: string;
  readonly name: string;
  readonly context: string | null;
  readonly count: number;
  readonly spans: readonly string[];
  readonly spansTruncated: number;
  readonly onPathNanos: Nanos;
  readonly savesIfZero: NanosRange;
  readonly savesIfHalf: NanosRange;
  readonly savesOwn: NanosRange;
  /** What this pole and all before it save together; of the first ones only. */
  readonly savesWithThoseBefore: NanosRange | null;
  readonly evidence: Evidence;
  readonly states: States;
  /** `function` is the one that the text names: where it ran, or where it waits. */
  readonly reason: { readonly code: string; readonly text: string; readonly function: string | null };
  /** Which thread it waited for, in words; `null` where it is no such wait, or nothing is known. */
  readonly blockedBy: string | null;
  /** Handle of the pole inside this one that explains most of what it saves. */
  readonly contains: string | null;
  /** What would end last in its place if it took no time: why it saves less than it takes. */
  readonly limitedBy: { readonly handle: string; readonly name: string; readonly pole: string | null } | null;
  /** URN of the cloud resource that it works on; `context` is then its type and name. */
  readonly resource: string | null;
  readonly topFrames: readonly TopFrame[];
  readonly samples: number;
  readonly fewSamples: boolean;
}

/** Something missing or unsure, counted, with its cause. */
export interface QualityNote {
  readonly code: string;
  readonly count: number;
  readonly detail: string;
}

/** Where the time of a deployment by Pulumi went, along the critical path; the parts sum to the wall time. */
export interface Deployment {
  readonly cloudWaitNanos: Nanos;
  readonly providerNanos: Nanos;
  readonly engineNanos: Nanos;
  readonly languageHostNanos: Nanos;
  readonly pluginStartNanos: Nanos;
  readonly stateBackendNanos: Nanos;
  readonly compileNanos: Nanos;
  readonly idleNanos: Nanos;
}

export interface Summary {
  readonly recording: string;
  readonly command: readonly string[];
  readonly exit: Exit | null;
  readonly startUnixNano: bigint;
  readonly wallNanos: Nanos;
  readonly cpuNanos: Nanos | null;
  readonly host: string;
  readonly mode: string;
  readonly rateHz: number;
  readonly processes: number;
  readonly traces: number;
  readonly spans: number;
  readonly samples: number;
  readonly links: SampleLinks;
  readonly states: States;
  readonly parallelism: { readonly mean: number; readonly peak: number };
  /** Of a run of Pulumi; `null` of any other. */
  readonly deployment: Deployment | null;
  readonly usage: readonly Notable[];
  readonly quality: readonly QualityNote[];
  /** What recording cost; `null` where it is not known. */
  readonly recorder: { readonly cpuNanos: Nanos; readonly rssBytesMax: number } | null;
}

export interface Poles {
  readonly recording: string;
  readonly wallNanos: Nanos;
  readonly poles: readonly Pole[];
  readonly polesTruncated: number;
}

/** Bits of the `flags` column. */
export const SPAN_FLAG = { error: 1, parentInferred: 2, process: 4, orphan: 8, clamped: 16, cycle: 32 } as const;

/** The spans of a recording as columns, in tree pre-order. */
export interface Tree {
  readonly recording: string;
  readonly originUnixNano: bigint;
  readonly wallNanos: Nanos;
  readonly services: readonly string[];
  readonly names: readonly string[];
  readonly count: number;
  /** Index of the parent, -1 for a root. */
  readonly parent: Int32Array;
  readonly depth: Uint32Array;
  /** Number of descendants; they are the rows that follow. */
  readonly subtree: Uint32Array;
  readonly start: Float64Array;
  readonly duration: Float64Array;
  readonly service: Uint32Array;
  readonly name: Uint32Array;
  readonly flags: Uint8Array;
  readonly onPath: Float64Array;
  /** Samples of the span itself, without its descendants. */
  readonly samples: Uint32Array;
  readonly criticalPath: CriticalPathColumns;
  readonly notes: readonly QualityNote[];
}

/** Pieces of the critical path in the order of time. */
export interface CriticalPathColumns {
  readonly span: Uint32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
}

export type AttributeValue = string | number | boolean | null | readonly unknown[] | Readonly<Record<string, unknown>>;

export interface Attribute {
  readonly key: string;
  readonly value: AttributeValue;
}

export interface Savings {
  readonly ifZero: NanosRange;
  readonly ifHalf: NanosRange;
  readonly own: NanosRange;
  readonly evidence: Evidence;
  readonly onPathNanos: Nanos;
}

/** Waits of one kind, in one system call of one function. */
export interface Wait {
  readonly kind: WaitKind;
  /** `null` where it was in none, or in one without a name. */
  readonly syscall: string | null;
  /** The function of the program that waits; `null` where its stack is not known. */
  readonly function: string | null;
  readonly nanos: Nanos;
  /** Its lines with waits, longest first. */
  readonly places: readonly { readonly file: string; readonly line: number; readonly nanos: Nanos }[];
  /** Whom it was for, in words: `held by thread flush: asleep, in write_all`; `null` where that is not known. */
  readonly blockedBy: string | null;
}

/** What a process used; a number that is `null` was not seen. */
export interface ProcessUsage {
  readonly cpuNanos: Nanos | null;
  readonly peakResidentBytes: number | null;
  /** `exit`: told at its end, exact. `reading`: what it took after it was read last is not in it. */
  readonly peakFrom: 'exit' | 'reading' | null;
  readonly minorFaults: number | null;
  readonly majorFaults: number | null;
  readonly readBytes: number | null;
  readonly writtenBytes: number | null;
  readonly storageReadBytes: number | null;
  readonly storageWrittenBytes: number | null;
  readonly readBeforeEndNanos: Nanos | null;
  /** Where its memory grew all the time. */
  readonly grows: { readonly fromBytes: number; readonly toBytes: number } | null;
  readonly readings: { readonly timeNanos: Float64Array; readonly residentBytes: Float64Array };
}

/** Something that a process used and that is worth a line. */
export interface Notable {
  readonly handle: string | null;
  readonly process: string | null;
  readonly text: string;
}

export interface Span {
  readonly recording: string;
  readonly handle: string;
  readonly traceId: string | null;
  readonly spanId: string | null;
  readonly parent: { readonly handle: string; readonly edge: Evidence } | null;
  readonly service: string;
  readonly name: string;
  readonly kind: string;
  readonly status: { readonly code: string; readonly message: string };
  readonly startNanos: Nanos;
  readonly durationNanos: Nanos;
  readonly process: {
    readonly pid: number;
    readonly name: string;
    readonly arguments: readonly string[];
    /** `null` where nobody could see it. */
    readonly exit: Exit | null;
    readonly usage: ProcessUsage | null;
  } | null;
  readonly attributes: readonly Attribute[];
  readonly resource: readonly Attribute[];
  readonly events: readonly {
    readonly timeNanos: Nanos;
    readonly name: string;
    readonly attributes: readonly Attribute[];
  }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string; readonly handle: string | null }[];
  readonly states: States;
  /** What it and its descendants did; `null` where the server does not say. */
  readonly statesWithDescendants: States | null;
  /** What it waited for itself, longest first. */
  readonly waits: readonly Wait[];
  readonly samples: { readonly own: number; readonly withDescendants: number; readonly links: SampleLinks };
  readonly fewSamples: boolean;
  readonly savings: Savings;
  readonly topFrames: readonly TopFrame[];
  readonly children: number;
}

export interface FlameFrame {
  readonly handle: string;
  readonly function: string;
  readonly file: string;
  readonly line: number;
  /** Why there is no function name, where there is none. */
  readonly reason: string | null;
  /** What runs it where no binary holds it, such as `python` or `kernel`. */
  readonly runtime: string | null;
}

/** Which time a flame graph shows: on a CPU, blocked, or both. */
export const FLAME_TIMES = ['on_cpu', 'off_cpu', 'wall'] as const;
export type FlameTime = (typeof FLAME_TIMES)[number];

/** A flame graph: its nodes as columns in pre-order, node 0 is the root. */
export interface Flame {
  readonly recording: string;
  readonly span: string | null;
  readonly title: string;
  readonly time: FlameTime;
  /** Samples and waits in it. */
  readonly samples: number;
  readonly weightNanos: Nanos;
  readonly fewSamples: boolean;
  /** Of its samples; waits are not among them. */
  readonly links: SampleLinks;
  readonly frames: readonly FlameFrame[];
  readonly count: number;
  readonly parent: Int32Array;
  readonly depth: Uint32Array;
  /** Index into `frames`, -1 for the root. */
  readonly frame: Int32Array;
  readonly offset: Float64Array;
  readonly total: Float64Array;
  readonly self: Float64Array;
  /** The line of the function with the most time there, 0 where unknown. */
  readonly line: Uint32Array;
}

/** A function, and the spans whose own samples or waits contain it. */
export interface Frame {
  readonly recording: string;
  readonly handle: string;
  readonly function: string;
  readonly file: string;
  readonly samples: number;
  readonly totalNanos: Nanos;
  readonly selfNanos: Nanos;
  /** Waits that contain it, and how long they were, of all threads added up. */
  readonly waits: number;
  readonly waitedNanos: Nanos;
  readonly spans: readonly FrameSpan[];
  readonly unlinkedSamples: number;
  readonly spansTruncated: number;
}

export interface FrameSpan {
  readonly handle: string;
  readonly service: string;
  readonly name: string;
  readonly samples: number;
  readonly totalNanos: Nanos;
  /** Its own waits that contain the function. */
  readonly waitedNanos: Nanos;
  /** Of the span's own samples, those that contain the function: 0 to 1. */
  readonly share: number;
}

export const SOURCE_STATES = ['read', 'changed', 'missing', 'refused', 'left_out', 'unknown'] as const;
export type SourceState = (typeof SOURCE_STATES)[number];

/** The lines of a function that have time, and those around them. */
export interface Source {
  readonly state: SourceState;
  /** Why it is not simply read. */
  readonly detail: string | null;
  readonly lines: readonly SourceLine[];
}

export interface SourceLine {
  readonly line: number;
  /** `null` where the file is not there, or ends before it. */
  readonly text: string | null;
  /** On CPUs there, and in what is called from there. */
  readonly totalNanos: Nanos;
  /** On CPUs there itself. */
  readonly selfNanos: Nanos;
  readonly waitedNanos: Nanos;
}
