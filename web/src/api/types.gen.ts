// Generated from the views of crates/longpole-recording/src/view; do not edit. A test of that crate fails when this is stale:
// LONGPOLE_UPDATE_CONTRACT=1 cargo test -p longpole-recording --test contract
import type { Nanos } from '../base/brand';
import type { AttributeValue, NanosRange } from './cursor';

export type { AttributeValue, NanosRange };

/** The recordings of a store, newest first. */
export interface Recordings {
  /** The recordings. */
  readonly recordings: readonly Recording[];
  /** For people: what is wrong with rows of the catalog that are not recordings. */
  readonly damaged: readonly string[];
}

/** One recording in a list. */
export interface Recording {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** The command and its arguments. */
  readonly command: readonly string[];
  /** Start, in nanoseconds since 1970. */
  readonly startUnixNano: bigint;
  /** How long it ran; 0 while unknown. */
  readonly wallNanos: Nanos;
  /** How the command ended; null where nobody saw it. */
  readonly exit: Exit | null;
  /** What became of it. */
  readonly state: RecordingState;
  /** Why its recorder could not seal it; only with state `ended`. */
  readonly notSealed: string | null;
  /** The innermost cause of `not_sealed`, such as a full disk; not kept by an older longpole. */
  readonly notSealedCause: string | null;
  /** Spans received. */
  readonly spans: number;
  /** Samples taken. */
  readonly samples: number;
  /** Its first long pole. */
  readonly answer: Answer | null;
  /** The names people gave it. */
  readonly tags: readonly string[];
}

/** How a command or process ended; one of the two is set. */
export interface Exit {
  /** Exit code. */
  readonly code: number | null;
  /** Signal that killed it. */
  readonly signal: number | null;
}

/** What became of a recording. */
export const EVERY_RECORDING_STATE = ['sealed', 'recording', 'killed', 'ended'] as const;
export type RecordingState = (typeof EVERY_RECORDING_STATE)[number];

/** The first long pole in one line, as the catalog keeps it. Names are cut after 512 bytes (`…`). */
export interface Answer {
  /** Service of the pole. */
  readonly service: string;
  /** Its operation. */
  readonly name: string;
  /** The piece of work that it belongs to. */
  readonly context: string | null;
  /** How much earlier the run would end without it. */
  readonly savesIfZeroNanos: NanosRange;
  /** For people: the part of the operation that the pole is, such as `save_to_remote (sleep)`; an older longpole did not keep it. */
  readonly part: string | null;
  /** The function that the pole is, or else the one with most of its own samples. */
  readonly function: string | null;
  /** For people: what the pole waits for, such as `asleep, in look_up`, if it is hardly on a CPU and no part; an older longpole did not keep it. */
  readonly wait: string | null;
}

/** The answer of a recording. */
export interface Summary {
  /** Always `longpole.summary/1`. */
  readonly schema: string;
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** What it is of. */
  readonly of: Summarised;
  /** The command and its arguments. */
  readonly command: readonly string[];
  /** How the command ended; null where nobody saw it. */
  readonly exit: Exit | null;
  /** Start, in nanoseconds since 1970. */
  readonly startUnixNano: bigint;
  /** How long it ran. */
  readonly wallNanos: Nanos;
  /** CPU time of the command and of all processes that it waited for. */
  readonly cpuNanos: Nanos | null;
  /** The machine. */
  readonly host: string;
  /** How samples were taken. */
  readonly mode: CaptureMode;
  /** Requested samples per second; 0 without sampling. */
  readonly rateHz: number;
  /** Processes seen. */
  readonly processes: number;
  /** Traces received. */
  readonly traces: number;
  /** Whether the file has many requests: more than 20 traces, and none takes a tenth of the time. Their critical path means little. */
  readonly ofRequests: boolean;
  /** Spans received. */
  readonly spans: number;
  /** Spans that failed. */
  readonly failed: FailedSpans;
  /** Samples taken. */
  readonly samples: number;
  /** All samples by how they were linked. */
  readonly links: Links;
  /** States of the critical path; they sum to `wall_nanos`. */
  readonly states: States;
  /** How much ran at once. */
  readonly parallelism: Parallelism;
  /** For a deployment by Pulumi: whether the cloud or Pulumi itself takes the time. */
  readonly deployment: Deployment | null;
  /** Notable uses of memory and storage. */
  readonly usage: readonly Notable[];
  /** The first 10 poles. */
  readonly poles: readonly Pole[];
  /** The 10 functions with the most time in themselves, where the run itself is the only pole (a profile of another tool) or where longpole attached to running processes; else empty. */
  readonly functions: readonly TopFrame[];
  /** The CPU time that all samples stand for. */
  readonly weightNanos: Nanos;
  /** Where longpole attached to running processes: what they did during the recording. */
  readonly attached: Attached | null;
  /** What is missing. */
  readonly quality: readonly Quality[];
  /** What recording cost. */
  readonly recorder: Recorder | null;
  /** The poles that this list omits. */
  readonly truncated: PolesTruncated;
  /** Time of the critical path in no pole: between operations, or in the command itself while it waits for none of them. With the times of all poles on the path and `truncated.on_path_nanos` and `idle_nanos` it sums to `wall_nanos`. */
  readonly betweenNanos: Nanos;
  /** Time on the critical path in which processes waited for work to arrive: it belongs to no pole. */
  readonly idleNanos: Nanos;
}

/** What a recording is of. */
export const EVERY_SUMMARISED = ['command', 'command_alone', 'attached', 'trace', 'file', 'profile'] as const;
export type Summarised = (typeof EVERY_SUMMARISED)[number];

/** How samples were taken. */
export const EVERY_CAPTURE_MODE = ['user', 'perf', 'imported', 'off', 'refused'] as const;
export type CaptureMode = (typeof EVERY_CAPTURE_MODE)[number];

/** Spans that failed. */
export interface FailedSpans {
  /** How many. */
  readonly count: number;
  /** Where it began: the first to end of those without a failed child; null if none failed. */
  readonly first: FailedSpan | null;
}

/** A span that failed. */
export interface FailedSpan {
  /** Handle, such as `s3`. */
  readonly handle: string;
  /** Its name. */
  readonly name: string;
  /** Its service. */
  readonly service: string;
  /** What it says of the failure; empty if nothing. */
  readonly message: string;
}

/** Numbers of samples by how they were linked to their span. */
export interface Links {
  /** The context record of the thread names the span. */
  readonly record: number;
  /** The journal of the thread names the span. */
  readonly journal: number;
  /** A label of the imported profile names the span. */
  readonly label: number;
  /** Only this span fits process, thread and time. */
  readonly inferred: number;
  /** Several spans fit. */
  readonly ambiguous: number;
  /** No span was open. */
  readonly none: number;
}

/** Where time went. All parts but `cpu_nanos` sum to the duration of what they describe, to the nanosecond. */
export interface States {
  /** Running its own code. */
  readonly onCpuNanos: Nanos;
  /** Ready to run while others had the CPUs. */
  readonly runnableNanos: Nanos;
  /** Covered by children. */
  readonly inChildNanos: Nanos;
  /** Blocked, by what it waited for. */
  readonly blockedNanos: Blocked;
  /** Blocked in waits that were not sampled: mostly waits shorter than 5 ms. */
  readonly blockedUnseenNanos: Nanos;
  /** Open with no thread working for it and no child: an asynchronous span between two polls. */
  readonly awaitingNanos: Nanos;
  /** The same for a span of kind `client` or `producer`: the network or another host works for it. In estimates, the rest of such a span. */
  readonly remoteNanos: Nanos;
  /** No record tells. */
  readonly unaccountedNanos: Nanos;
  /** On CPUs, summed over all its threads. May exceed the duration; not part of the sum. */
  readonly cpuNanos: Nanos;
  /** False for estimates, and where the recording lost records of a journal or of switches. */
  readonly exact: boolean;
  /** Where the figures come from; for several sources, the weakest. */
  readonly evidence: StateEvidence;
}

/** Blocked time by what it waited for, in nanoseconds. */
export interface Blocked {
  /** A lock. */
  readonly lock: Nanos;
  /** Another thread to go on. */
  readonly queue: Nanos;
  /** Another thread to end. */
  readonly join: Nanos;
  /** A file. */
  readonly disk: Nanos;
  /** A socket. */
  readonly network: Nanos;
  /** Time to pass. */
  readonly sleep: Nanos;
  /** Memory to be loaded. */
  readonly pageFault: Nanos;
  /** A child process to end. */
  readonly child: Nanos;
  /** A pipe. */
  readonly pipe: Nanos;
  /** Work to arrive. */
  readonly idle: Nanos;
  /** Something else, or unknown. */
  readonly other: Nanos;
}

/** Where the figures of states come from. */
export const EVERY_STATE_EVIDENCE = ['journal', 'inferred', 'samples'] as const;
export type StateEvidence = (typeof EVERY_STATE_EVIDENCE)[number];

/** How much ran at once. */
export interface Parallelism {
  /** Operations in flight, averaged over the run. */
  readonly mean: number;
  /** Operations in flight at the peak. */
  readonly peak: number;
  /** Own time of all operations, summed. */
  readonly workNanos: Nanos;
  /** How long the run would take if everything that can run at once did. */
  readonly spanNanos: Nanos;
}

/** Where the time of a deployment by Pulumi went, along the critical path; the parts sum to `wall_nanos` of the run. */
export interface Deployment {
  /** A provider waited for the cloud. */
  readonly cloudWaitNanos: Nanos;
  /** A provider ran its own code. */
  readonly providerNanos: Nanos;
  /** Pulumi's engine. */
  readonly engineNanos: Nanos;
  /** The language host and the program. */
  readonly languageHostNanos: Nanos;
  /** Finding, installing, starting and configuring plug-ins. */
  readonly pluginStartNanos: Nanos;
  /** Reading and writing the state. */
  readonly stateBackendNanos: Nanos;
  /** Compiling the program. */
  readonly compileNanos: Nanos;
  /** Nothing of the deployment was running. */
  readonly idleNanos: Nanos;
}

/** A notable use of memory or storage. */
export interface Notable {
  /** The kind of use. */
  readonly code: NotableCode;
  /** Handle of the span that stands for the process; null where none does. */
  readonly handle: string | null;
  /** Name of the process; null where it is unknown which process it was. */
  readonly process: string | null;
  /** Bytes, or page faults. */
  readonly amount: number;
  /** The same for people. */
  readonly text: string;
}

/** The kind of a notable use. */
export const EVERY_NOTABLE_CODE = ['grows', 'peak', 'peak_of_some', 'storage', 'faults'] as const;
export type NotableCode = (typeof EVERY_NOTABLE_CODE)[number];

/** A long pole: a group of spans on the critical path. `saves_*` say how much earlier the whole run would end. Savings do not add up where poles run beside each other or contain each other. */
export interface Pole {
  /** Handle, such as `p1`. */
  readonly handle: string;
  /** Service. */
  readonly service: string;
  /** Operation. */
  readonly name: string;
  /** The piece of work that it belongs to, such as `create web-bundle`. */
  readonly context: string | null;
  /** The part of their own time that it is, where samples and waits tell one: the other fields are about that part alone. Null for a pole that is its spans as a whole. */
  readonly part: Part | null;
  /** Spans in the group. */
  readonly count: number;
  /** Their handles, most time on the path first, at most 100. */
  readonly spans: readonly string[];
  /** How many handles `spans` omits. */
  readonly truncated: SpansTruncated;
  /** Time of the critical path in which one of these spans was the innermost. */
  readonly onPathNanos: Nanos;
  /** Saving if these spans and their descendants took no time. */
  readonly savesIfZeroNanos: NanosRange;
  /** Saving if they took half their time. */
  readonly savesIfHalfNanos: NanosRange;
  /** Saving if only their own time, outside their children, were zero. */
  readonly savesOwnNanos: NanosRange;
  /** Saving if this pole and all before it took no time; null beyond the first 16. */
  readonly savesWithThoseBeforeNanos: NanosRange | null;
  /** Whether spans declare what they waited for. */
  readonly evidence: Evidence;
  /** States of their own time on the path. */
  readonly states: States;
  /** Why it takes its time. */
  readonly reason: Reason;
  /** The process that answers its spans, if they call one address. */
  readonly callee: Callee | null;
  /** Which threads the waits of the reason were for. */
  readonly blockedBy: BlockedBy | null;
  /** Handle of the pole inside it that explains most of its saving. */
  readonly contains: string | null;
  /** Whether all time of that pole lies inside: an operation may go on after its parent. */
  readonly containsAll: boolean;
  /** The span that is on the path in its place, if it took no time: why the pole saves less than it takes. Null where it saves all, or where the ends of the range disagree. */
  readonly limitedBy: Limit | null;
  /** URN of the cloud resource that it works on. */
  readonly resource: string | null;
  /** Functions of its own samples while it was on the path, at most 5. */
  readonly topFrames: readonly TopFrame[];
  /** These samples. */
  readonly samples: number;
  /** The CPU time that these samples stand for, over all threads. */
  readonly weightNanos: Nanos;
  /** Whether these samples are too few for reliable shares. */
  readonly fewSamples: boolean;
}

/** A part of the own time of spans. */
export interface Part {
  /** What it is. */
  readonly kind: PartKind;
  /** The part for people, such as `insert_one (disk)`; empty for `busy`. */
  readonly text: string;
  /** The function that computes or waits. */
  readonly function: string | null;
  /** Its handle, such as `f3`. */
  readonly handle: string | null;
  /** The source file of that, if it is known. */
  readonly file: string | null;
  /** The line with the most time. */
  readonly line: number | null;
}

/** What a part of own time is. */
export const EVERY_PART_KIND = ['computes', 'waits', 'rest', 'busy'] as const;
export type PartKind = (typeof EVERY_PART_KIND)[number];

/** How many spans a list omits. */
export interface SpansTruncated {
  /** Omitted spans. */
  readonly spans: number;
}

/** How far the evidence for an order between spans goes. */
export const EVERY_EVIDENCE = ['declared', 'inferred'] as const;
export type Evidence = (typeof EVERY_EVIDENCE)[number];

/** Why a pole takes its time. */
export interface Reason {
  /** The kind of the reason. */
  readonly code: ReasonCode;
  /** The reason for people. */
  readonly text: string;
  /** The same text in pieces: names of functions and the words between them. */
  readonly pieces: readonly Piece[];
  /** The function that the text names: of the program's own code where there is some. */
  readonly function: string | null;
  /** The library function that holds most of that, if the text names one. */
  readonly mostlyIn: string | null;
}

/** The kind of a reason. */
export const EVERY_REASON_CODE = ['on_cpu', 'waits', 'mixed', 'few_samples', 'no_samples'] as const;
export type ReasonCode = (typeof EVERY_REASON_CODE)[number];

/** A piece of a text. */
export interface Piece {
  /** What it is. */
  readonly kind: PieceKind;
  /** What stands in the text. */
  readonly text: string;
}

/** What a piece of a text is. */
export const EVERY_PIECE_KIND = ['text', 'function', 'waiting_function'] as const;
export type PieceKind = (typeof EVERY_PIECE_KIND)[number];

/** The other side of a call: of a span of kind `client` or `producer` that names the address of its server (`network.peer.*`, `server.*`, `net.peer.*`, `net.sock.peer.*`, `peer.*`, or a URL). Samples and waits are those of the called processes between start and end of the call, for whomever they worked; waits for the next call are omitted. */
export interface Callee {
  /** The called address, such as `127.0.0.1:8080`. */
  readonly address: string;
  /** Processes of the run that accepted connections there when the span began: one, and those that it forked to share the work; empty where longpole saw none. */
  readonly processes: readonly CalleeProcess[];
  /** Whether a child of the span belongs to these processes. That span then says what they did. */
  readonly answers: boolean;
  /** Samples of these processes during the call. */
  readonly samples: number;
  /** The CPU time that these samples stand for. */
  readonly weightNanos: Nanos;
  /** Functions of these samples. */
  readonly topFrames: readonly TopFrame[];
  /** What these processes waited for during the call, longest first. */
  readonly waits: readonly Wait[];
  /** For people, where no span answers: who it is, and what it did most. */
  readonly text: string | null;
}

/** A process that accepts calls. */
export interface CalleeProcess {
  /** Its id. */
  readonly pid: number;
  /** Its name. */
  readonly name: string;
}

/** A function with its share of some samples. Lists of these omit functions that only start the program or a thread and call it, and the loops of interpreters. */
export interface TopFrame {
  /** Handle, such as `f12`. */
  readonly handle: string;
  /** Name for people. */
  readonly function: string;
  /** Source file; empty where unknown. */
  readonly file: string;
  /** Source line with the most time in what the list describes; 0 where unknown. */
  readonly line: number;
  /** What runs the function; null for code of a binary of the process. */
  readonly runtime: Runtime | null;
  /** Whose code it is. */
  readonly whose: Whose;
  /** Time in the function itself. */
  readonly selfNanos: Nanos;
  /** Time in it and in what it called. */
  readonly totalNanos: Nanos;
  /** Samples that contain it. */
  readonly samples: number;
  /** Its lines with the most time in what the list describes, at most three. */
  readonly lines: readonly Line[];
}

/** What runs a function that no binary of the process holds. */
export const EVERY_RUNTIME = ['python', 'node', 'jvm', 'other', 'kernel'] as const;
export type Runtime = (typeof EVERY_RUNTIME)[number];

/** Whose code a function is, as far as its name, its source file and its binary tell. */
export const EVERY_WHOSE = ['program', 'library', 'language', 'interpreter', 'system', 'kernel'] as const;
export type Whose = (typeof EVERY_WHOSE)[number];

/** Time on one line of a function. */
export interface Line {
  /** The line. */
  readonly line: number;
  /** Time on CPUs there and in what it called from there. */
  readonly totalNanos: Nanos;
  /** Time on CPUs on the line itself. */
  readonly selfNanos: Nanos;
  /** Waits there and in what it called from there. */
  readonly waitedNanos: Nanos;
}

/** Waits of one kind in one function of the program. */
export interface Wait {
  /** What the waits were for. */
  readonly kind: WaitKind;
  /** System call; null where the thread was in none, or in one that longpole cannot name. */
  readonly syscall: string | null;
  /** The function of the program that waits; null where its stack is unknown. */
  readonly function: string | null;
  /** Its source file; empty where unknown. */
  readonly file: string;
  /** The line with the longest waits; 0 where unknown. */
  readonly line: number;
  /** How long, without children. In the waits of a callee, time in which several of its threads waited counts once. */
  readonly nanos: Nanos;
  /** Threads that waited. */
  readonly threads: number;
  /** Whether other threads of the process waited so meanwhile: these waits did not hold up what it did. */
  readonly inOtherThreads: boolean;
  /** Its lines with waits, longest first, at most 10. */
  readonly places: readonly Place[];
  /** Which threads the waits were for; null where they were for none, or where nothing is known about them. */
  readonly blockedBy: BlockedBy | null;
}

/** What a thread waits for. */
export const EVERY_WAIT_KIND = ['lock', 'queue', 'join', 'disk', 'network', 'sleep', 'page_fault', 'child', 'pipe', 'idle', 'other'] as const;
export type WaitKind = (typeof EVERY_WAIT_KIND)[number];

/** A line with waits. */
export interface Place {
  /** Source file. */
  readonly file: string;
  /** The line in it. */
  readonly line: number;
  /** How long. */
  readonly nanos: Nanos;
}

/** Threads that waits of kind `lock`, `queue` and `join` were for. */
export interface BlockedBy {
  /** What the other thread did for the one that waited. */
  readonly relation: Relation;
  /** The threads that are known, longest first, at most five. */
  readonly threads: readonly Blocker[];
  /** Time for which it was one of several threads. */
  readonly oneOf: OneOf | null;
  /** The same for people. */
  readonly text: string;
}

/** What another thread did for the one that waited. */
export const EVERY_RELATION = ['holds', 'ends', 'wakes'] as const;
export type Relation = (typeof EVERY_RELATION)[number];

/** A thread that others waited for, and what it did meanwhile. */
export interface Blocker {
  /** Its process. */
  readonly pid: number;
  /** The thread. */
  readonly tid: number;
  /** Its name; null where it has none of its own. */
  readonly name: string | null;
  /** How longpole knows the thread. */
  readonly evidence: BlockerEvidence;
  /** How much of the waits were for it. */
  readonly nanos: Nanos;
  /** Its samples in that time. */
  readonly samples: number;
  /** The CPU time that these samples stand for. */
  readonly weightNanos: Nanos;
  /** Functions of these samples. */
  readonly topFrames: readonly TopFrame[];
  /** What it waited for itself in that time, longest first; their `blocked_by` is null. */
  readonly waits: readonly Wait[];
  /** The same for people. */
  readonly text: string;
}

/** How longpole knows which thread others waited for. The rule: `docs/decisions/0013-who-holds-a-lock.md`. */
export const EVERY_BLOCKER_EVIDENCE = ['futex', 'inferred'] as const;
export type BlockerEvidence = (typeof EVERY_BLOCKER_EVIDENCE)[number];

/** Waits for one of several threads; nothing says for which. */
export interface OneOf {
  /** How many threads, at most. */
  readonly threads: number;
  /** How much of the waits. */
  readonly nanos: Nanos;
}

/** A span, or another thread of the pole's process, that limits what a pole saves. */
export interface Limit {
  /** Handle, such as `s9`; of a thread, that of its process. */
  readonly handle: string;
  /** The resource that it works on, or its operation; `thread worker`. */
  readonly name: string;
  /** Handle of the pole that it belongs to. */
  readonly pole: string | null;
  /** The longer operation that it is a part of, if that is none that the pole lies in. */
  readonly within: Within | null;
}

/** An operation that another one is a part of. */
export interface Within {
  /** Handle, such as `s7`. */
  readonly handle: string;
  /** The resource that it works on, or its operation. */
  readonly name: string;
}

/** What processes did while longpole was attached to them: the recording began and ended while they ran. */
export interface Attached {
  /** The process that the user named. */
  readonly pid: number | null;
  /** How many threads longpole saw. */
  readonly threadsSeen: number;
  /** The 10 threads that matter most. */
  readonly threads: readonly Thread[];
  /** On CPUs, summed over all threads. */
  readonly onCpuNanos: Nanos;
  /** Ready to run while others had the CPUs, summed over all threads. */
  readonly readyNanos: Nanos;
  /** Blocked, by what they waited for, summed over all threads. */
  readonly blockedNanos: Blocked;
  /** Blocked in waits that were not sampled, summed over all threads. */
  readonly blockedUnseenNanos: Nanos;
  /** The 10 longest waits. Omits idle workers and, in processes that send spans, threads that work for none. */
  readonly waits: readonly Wait[];
}

/** Where the life of a thread went: exact, from switch records, unless `is_estimate`. */
export interface Thread {
  /** Process. */
  readonly pid: number;
  /** Name of the process. */
  readonly process: string;
  /** Thread. */
  readonly tid: number;
  /** Name of the thread. */
  readonly name: string;
  /** The outermost function of the program in it; null for main threads. */
  readonly entry: string | null;
  /** How long it lived. */
  readonly nanos: Nanos;
  /** On a CPU. */
  readonly onCpuNanos: Nanos;
  /** Whether `on_cpu_nanos` is estimated from its samples, as in a profile of another tool. Then `ready_nanos`, and blocked time beyond sampled waits, are 0 because they are unknown. */
  readonly isEstimate: boolean;
  /** Ready to run while others had the CPUs. */
  readonly readyNanos: Nanos;
  /** Blocked, by what it waited for. */
  readonly blockedNanos: Blocked;
  /** Blocked in waits that were not sampled: mostly waits shorter than 5 ms. */
  readonly blockedUnseenNanos: Nanos;
  /** Threads of its process that it waited for, longest first, at most five. Idle workers wait for nobody. */
  readonly waitedFor: readonly WaitedFor[];
  /** Samples. */
  readonly samples: number;
  /** The function to name for these samples; null for a thread behind the first 20, for fewer than 5 samples, and if they are spread over many functions. */
  readonly function: ThreadFunction | null;
  /** Its place in the order in which threads matter, which a cut list keeps the first of: in turns those with the most time in poles, on CPUs, waiting for locks, and with the longest waits. */
  readonly rank: number;
  /** Handle of the pole in which it spends most time. */
  readonly pole: string | null;
  /** Handles of all poles, of the first 16, whose code it runs or waits in while they are on the critical path. */
  readonly poles: readonly string[];
  /** Its time of the critical path in poles. */
  readonly inPolesNanos: Nanos;
  /** Its longest wait, without those of idle workers. */
  readonly longestWaitNanos: Nanos;
}

/** A thread that another one waited for. */
export interface WaitedFor {
  /** The thread. */
  readonly tid: number;
  /** Its own name, else the function that it begins with. */
  readonly name: string | null;
  /** What it did for the one that waited. */
  readonly relation: Relation;
  /** How longpole knows the thread. */
  readonly evidence: BlockerEvidence;
  /** For how long. */
  readonly nanos: Nanos;
}

/** A function that a thread ran. */
export interface ThreadFunction {
  /** Handle, such as `f12`. */
  readonly handle: string;
  /** Name for people. */
  readonly function: string;
  /** Time of the samples with it. */
  readonly nanos: Nanos;
}

/** Something missing or unusual, with its count and its cause. */
export interface Quality {
  /** Stable code of the kind. */
  readonly code: string;
  /** How many. */
  readonly count: number;
  /** For people: what is missing or doubtful, with its number if that is not 1. */
  readonly title: string;
  /** For people: why, and what to do. */
  readonly detail: string;
}

/** What recording cost. */
export interface Recorder {
  /** CPU time of the recorder. */
  readonly cpuNanos: Nanos;
  /** Peak of its resident memory. */
  readonly rssBytesMax: number;
}

/** The poles that a list omits. */
export interface PolesTruncated {
  /** How many. */
  readonly poles: number;
  /** Their time on the critical path. */
  readonly onPathNanos: Nanos;
}

/** All long poles of a recording. */
export interface Poles {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** What it is of: says why there are no poles. */
  readonly of: Summarised;
  /** How long the run took. */
  readonly wallNanos: Nanos;
  /** Ranked by `saves_own_nanos`. */
  readonly poles: readonly Pole[];
  /** The poles that this list omits. */
  readonly truncated: PolesTruncated;
  /** Time of the critical path in no pole: between operations, or in the command itself while it waits for none of them. With the times of all poles on the path and `truncated.on_path_nanos` and `idle_nanos` it sums to `wall_nanos`. */
  readonly betweenNanos: Nanos;
  /** Time on the critical path in which processes waited for work to arrive: it belongs to no pole. */
  readonly idleNanos: Nanos;
  /** Whether longpole attached to processes that ran on after the recording: then no end can come sooner, and there are no poles. */
  readonly attached: boolean;
}

/** A run without some of its poles. */
export interface WhatIf {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** Handles of the poles that take no time. */
  readonly without: readonly string[];
  /** How long the run took. */
  readonly wallNanos: Nanos;
  /** How much earlier it would end. Savings of poles that run at the same time do not add up. */
  readonly savesNanos: NanosRange;
  /** How long it would take. */
  readonly wallAfterNanos: NanosRange;
  /** The pole that would then save most, one that contains others only if none of those saves more; null if none of the next 8 does. */
  readonly next: NextPole | null;
}

/** The pole that saves most once others are gone. */
export interface NextPole {
  /** Its handle. */
  readonly handle: string;
  /** Operation. */
  readonly name: string;
  /** The piece of work that it belongs to, such as `create web-bundle`. */
  readonly context: string | null;
  /** The part of its own time that it is, such as `insert_one (disk)`; null for a pole that is its spans as a whole. */
  readonly part: string | null;
  /** Spans in the group. */
  readonly count: number;
  /** What it would save beside them. */
  readonly savesMoreNanos: NanosRange;
}

/** The tree of spans and processes, in columns. */
export interface Tree {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** Start of the run, in nanoseconds since 1970. */
  readonly originUnixNano: bigint;
  /** How long the run took. */
  readonly wallNanos: Nanos;
  /** The services, by index. */
  readonly services: readonly string[];
  /** The operations, by index. */
  readonly names: readonly string[];
  /** Type and name of the cloud resources, by index. */
  readonly resources: readonly string[];
  /** The rows. */
  readonly spans: TreeColumns;
  /** The critical path, from start to end. */
  readonly criticalPath: PathColumns;
  /** What is unusual about the tree. */
  readonly notes: readonly Quality[];
}

/** Columns of a tree in pre-order; row `i` has the handle `s{i+1}`. */
export interface TreeColumns {
  /** Row of the parent; -1 for the root. */
  readonly parent: Int32Array;
  /** Level; 0 for the root. */
  readonly depth: Uint32Array;
  /** Number of descendants: the rows that follow. */
  readonly subtree: Uint32Array;
  /** Start. */
  readonly startNanos: Float64Array;
  /** Length. */
  readonly durationNanos: Float64Array;
  /** Index into the services. */
  readonly service: Uint32Array;
  /** Index into the names. */
  readonly name: Uint32Array;
  /** Index into the resources: the one that the row works on; -1 for none. */
  readonly resource: Int32Array;
  /** Bits: 1 error, 2 parent inferred, 4 made from a process, 8 orphan (its parent is not in the recording), 16 its times were clamped, 32 longpole broke a cycle here. */
  readonly flags: Uint32Array;
  /** Time of the critical path in which the row was the innermost. */
  readonly onPathNanos: Float64Array;
  /** Samples of the row itself. */
  readonly samples: Uint32Array;
}

/** The critical path in columns, by time. */
export interface PathColumns {
  /** Row of the tree. */
  readonly span: Uint32Array;
  /** Start of the stretch. */
  readonly startNanos: Float64Array;
  /** End of the stretch. */
  readonly endNanos: Float64Array;
}

/** One span, or a process that stands as one. A span made from a process has null ids (except `s1`, whose ids the command got in `TRACEPARENT`), kind `internal`, and attributes such as `process.executable.path`. */
export interface Span {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** Handle, such as `s12`. */
  readonly handle: string;
  /** The requested pole, if it has several spans; this one has the most time on the critical path. */
  readonly pole: PoleOfSpan | null;
  /** The requested pole, if it is a part of the span. */
  readonly part: PartOfSpan | null;
  /** Id of its trace; null for a process. */
  readonly traceId: string | null;
  /** Its id; null for a process. */
  readonly spanId: string | null;
  /** Its parent. */
  readonly parent: Parent | null;
  /** Service. */
  readonly service: string;
  /** Operation. */
  readonly name: string;
  /** Role. */
  readonly kind: SpanKind;
  /** Outcome. */
  readonly status: Status;
  /** Start. */
  readonly startNanos: Nanos;
  /** Length. */
  readonly durationNanos: Nanos;
  /** The process that emitted it. */
  readonly process: Process | null;
  /** Attributes. */
  readonly attributes: readonly Attribute[];
  /** Attributes of its resource. */
  readonly resource: readonly Attribute[];
  /** Events. */
  readonly events: readonly Event[];
  /** Links to other spans. */
  readonly links: readonly SpanLink[];
  /** Where its time went. */
  readonly states: States;
  /** Whether `states` are those of one of its threads at each moment, the one that held it up: it is a process of several threads without spans. */
  readonly statesFollowThreads: boolean;
  /** What the span or one of its descendants did at each moment of the span. `in_child_nanos` is 0; `cpu_nanos` is that of all of them. */
  readonly statesWithDescendants: States;
  /** What it waited for in its own time, outside child spans: first what held it up, then other threads of a process; each longest first. longpole samples few waits below 5 ms. */
  readonly waits: readonly Wait[];
  /** The process that answers it, if it calls an address. */
  readonly callee: Callee | null;
  /** Its samples. */
  readonly samples: SpanSamples;
  /** Whether its samples are too few for reliable shares. */
  readonly fewSamples: boolean;
  /** Where its samples are too few: all spans of its name, if they have more. `flame --name` shows those. */
  readonly sameName: SameName | null;
  /** What it saves. */
  readonly savings: Savings;
  /** Functions of its own samples, at most 20. */
  readonly topFrames: readonly TopFrame[];
  /** Number of children. */
  readonly children: number;
  /** Whether it is the command itself: its savings are those of its own time. */
  readonly isRun: boolean;
  /** Whether it is a process without spans. */
  readonly isProcess: boolean;
}

/** A pole of several spans. */
export interface PoleOfSpan {
  /** Handle, such as `p3`. */
  readonly handle: string;
  /** How many spans it has. */
  readonly count: number;
  /** Saving if all of them, with their descendants, took no time. */
  readonly savesIfZeroNanos: NanosRange;
}

/** A pole that is a part of the own time of a span. */
export interface PartOfSpan {
  /** Handle, such as `p3`. */
  readonly handle: string;
  /** What it is. */
  readonly kind: PartKind;
  /** For people: which part it is. */
  readonly text: string;
  /** Its time on the critical path. */
  readonly onPathNanos: Nanos;
  /** Saving if it took no time. */
  readonly savesIfZeroNanos: NanosRange;
  /** Saving if it took half the time. */
  readonly savesIfHalfNanos: NanosRange;
}

/** The parent of a span. */
export interface Parent {
  /** Handle, such as `s3`. */
  readonly handle: string;
  /** Whether the span names its parent. */
  readonly edge: Evidence;
}

/** Role of a span, as OpenTelemetry names it. */
export const EVERY_SPAN_KIND = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
export type SpanKind = (typeof EVERY_SPAN_KIND)[number];

/** Outcome of a span. */
export interface Status {
  /** The outcome. */
  readonly code: StatusCode;
  /** For people. */
  readonly message: string;
}

/** Outcome of a span, as OpenTelemetry names it. */
export const EVERY_STATUS_CODE = ['unset', 'ok', 'error'] as const;
export type StatusCode = (typeof EVERY_STATUS_CODE)[number];

/** The process of a span. */
export interface Process {
  /** Its id. */
  readonly pid: number;
  /** Its name. */
  readonly name: string;
  /** Its arguments. */
  readonly arguments: readonly string[];
  /** How it ended; null where nobody saw it. */
  readonly exit: Exit | null;
  /** What it used; null where longpole never read it. */
  readonly usage: Usage | null;
}

/** What a process used; each number is null where longpole did not see it. Bytes are those of the process itself: what the kernel counts for it, less the counts of its children at their last reading, because the kernel adds these when it waits for them. */
export interface Usage {
  /** User and system time of all its threads, at the last reading. */
  readonly cpuNanos: Nanos | null;
  /** Peak of its resident memory. */
  readonly peakResidentBytes: number | null;
  /** Where the peak comes from. */
  readonly peakFrom: PeakFrom | null;
  /** Page faults that needed no storage. */
  readonly minorFaults: number | null;
  /** Page faults that waited for storage. */
  readonly majorFaults: number | null;
  /** Bytes that its calls read: files in memory, pipes and terminals included; sockets only where it reads them like files. */
  readonly readBytes: number | null;
  /** Bytes that its calls wrote, counted alike. */
  readonly writtenBytes: number | null;
  /** Bytes fetched from storage. */
  readonly storageReadBytes: number | null;
  /** Bytes to be written to storage. */
  readonly storageWrittenBytes: number | null;
  /** How long before its end the last reading was: the figures omit what it used after that. 0 if it outlived the recording. */
  readonly readBeforeEndNanos: Nanos | null;
  /** Set if its memory grew steadily: it lived for 2 s or longer, and each eighth of its life added at least a quarter of an even share. */
  readonly grows: Growth | null;
  /** Its memory over time. */
  readonly readings: ReadingColumns;
}

/** Where a peak of memory comes from. */
export const EVERY_PEAK_FROM = ['exit', 'reading'] as const;
export type PeakFrom = (typeof EVERY_PEAK_FROM)[number];

/** Steady growth of memory. */
export interface Growth {
  /** Resident bytes after the first eighth of its life. */
  readonly fromBytes: number;
  /** Resident bytes at its last reading. */
  readonly toBytes: number;
}

/** Readings of one process, by time. Memory stays as a reading says until the next one. */
export interface ReadingColumns {
  /** When. */
  readonly timeNanos: Float64Array;
  /** Resident bytes. */
  readonly residentBytes: Float64Array;
}

/** An attribute. */
export interface Attribute {
  /** Key. */
  readonly key: string;
  /** A JSON string, number, boolean, list, object or null. Whole numbers beyond 2^53 and doubles that JSON lacks are strings; bytes are hex. */
  readonly value: AttributeValue;
}

/** An event of a span. */
export interface Event {
  /** When. */
  readonly timeNanos: Nanos;
  /** Its name. */
  readonly name: string;
  /** Its attributes. */
  readonly attributes: readonly Attribute[];
}

/** A link to another span. */
export interface SpanLink {
  /** Trace of the other span. */
  readonly traceId: string;
  /** Id of the other span. */
  readonly spanId: string;
  /** Handle of the other span, if the recording has it. */
  readonly handle: string | null;
}

/** Samples of a span. */
export interface SpanSamples {
  /** Its own. */
  readonly own: number;
  /** With those of its descendants. */
  readonly withDescendants: number;
  /** Its own, by how they were linked. */
  readonly links: Links;
}

/** All spans of one name, with their descendants. */
export interface SameName {
  /** The name. */
  readonly name: string;
  /** How many spans. */
  readonly spans: number;
  /** Their samples. */
  readonly samples: number;
}

/** What spans save: how much earlier the whole run would end. */
export interface Savings {
  /** If they and their descendants took no time. */
  readonly savesIfZeroNanos: NanosRange;
  /** If they took half their time. */
  readonly savesIfHalfNanos: NanosRange;
  /** If only their own time, outside their children, were zero. */
  readonly savesOwnNanos: NanosRange;
  /** Whether spans declare what they waited for. */
  readonly evidence: Evidence;
  /** Time of the critical path in which one of them was the innermost. */
  readonly onPathNanos: Nanos;
}

/** All spans of one name, or of one cloud resource, together. */
export interface Spans {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** The name of the spans, or of the resource that they work on. */
  readonly name: string;
  /** Their services. */
  readonly services: readonly string[];
  /** How many there are. */
  readonly count: number;
  /** How many of them are not inside another of them. States are of these. */
  readonly outermost: number;
  /** How many of them failed. */
  readonly errors: number;
  /** How long they are. */
  readonly durations: Durations;
  /** Where their time went, summed over all of them. */
  readonly states: States;
  /** What they waited for, longest first. */
  readonly waits: readonly Wait[];
  /** What all of them together save. */
  readonly savings: Savings;
  /** Their own samples. */
  readonly samples: number;
  /** Functions of these samples. */
  readonly topFrames: readonly TopFrame[];
  /** The spans, longest first, at most 500. */
  readonly spans: readonly SpanOfName[];
  /** How many spans the list omits. */
  readonly truncated: number;
  /** Whether all of them are processes without spans. */
  readonly areProcesses: boolean;
}

/** How long spans are. */
export interface Durations {
  /** The sum; spans inside others of them count once. */
  readonly sumNanos: Nanos;
  /** The shortest. */
  readonly minNanos: Nanos;
  /** The median; of an even number, halfway between the middle two. */
  readonly medianNanos: Nanos;
  /** The longest. */
  readonly maxNanos: Nanos;
}

/** One span of a name or of a resource. */
export interface SpanOfName {
  /** Handle, such as `s12`. */
  readonly handle: string;
  /** Its own name: that of the view, unless the view is of a resource. */
  readonly name: string;
  /** Service. */
  readonly service: string;
  /** Start. */
  readonly startNanos: Nanos;
  /** Length. */
  readonly durationNanos: Nanos;
  /** Time of the critical path in which it was the innermost. */
  readonly onPathNanos: Nanos;
  /** Whether it failed. */
  readonly error: boolean;
  /** The command and its arguments, of a process without spans; else empty. */
  readonly arguments: readonly string[];
}

/** A flame graph of the whole run, or of spans with their descendants. */
export interface Flame {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** Handle of the span, or of a pole of several spans or of a part; null for the whole run, and for spans chosen by name or trace. */
  readonly span: string | null;
  /** For a pole that is a part of an operation, the operation. The graph then shows the part, without descendants of the operation. */
  readonly partOf: PartOf | null;
  /** The requested name of spans. */
  readonly name: string | null;
  /** Id of the requested trace. */
  readonly traceId: string | null;
  /** The range of time that it is limited to, from the start of the run; null for all of it. */
  readonly fromNanos: Nanos | null;
  /** The end of that range. */
  readonly toNanos: Nanos | null;
  /** The thread that it is limited to; null for all of them. */
  readonly tid: number | null;
  /** What it shows, for people. */
  readonly title: string;
  /** Which time it shows. */
  readonly time: FlameTime;
  /** Its samples and waits. */
  readonly samples: number;
  /** Waits of threads that work for no span, idle workers among them, which the graph of the whole run omits. */
  readonly leftOutWaits: number;
  /** Samples and waits whose innermost functions are omitted: a graph has at most 2,097,152 paths. */
  readonly cutSamples: number;
  /** The time that its samples and waits stand for. */
  readonly weightNanos: Nanos;
  /** Whether these samples are too few for reliable shares. */
  readonly fewSamples: boolean;
  /** For a span with too few samples: all spans of its name, if they have more. */
  readonly sameName: SameName | null;
  /** Its samples, without waits, by how they were linked. */
  readonly links: Links;
  /** What its waits were for, longest first. */
  readonly waits: readonly FlameWaits[];
  /** Functions that the nodes name. */
  readonly frames: readonly FlameFrame[];
  /** The boxes. */
  readonly nodes: FlameColumns;
}

/** The operation that a view shows a part of, while the part was on the critical path. */
export interface PartOf {
  /** Its handle; null if it is several spans. */
  readonly handle: string | null;
  /** Its name. */
  readonly name: string;
}

/** Which time a view shows. */
export const EVERY_FLAME_TIME = ['on_cpu', 'off_cpu', 'wall'] as const;
export type FlameTime = (typeof EVERY_FLAME_TIME)[number];

/** Waits of one kind in a flame graph. */
export interface FlameWaits {
  /** What the waits were for. */
  readonly kind: WaitKind;
  /** How long. */
  readonly nanos: Nanos;
}

/** A function of a flame graph. */
export interface FlameFrame {
  /** Handle, such as `f12`. */
  readonly handle: string;
  /** Name for people. */
  readonly function: string;
  /** Source file; empty where unknown. */
  readonly file: string;
  /** Source line; 0 where unknown. */
  readonly line: number;
  /** For people: why it has no name. */
  readonly reason: string | null;
  /** What runs the function; null for code of a binary of the process. */
  readonly runtime: Runtime | null;
  /** Whose code it is. */
  readonly whose: Whose;
}

/** Boxes of a flame graph in pre-order, children by total, largest first; node 0 is the root. */
export interface FlameColumns {
  /** Node of the parent; -1 for the root. */
  readonly parent: Int32Array;
  /** Level; 0 for the root. */
  readonly depth: Uint32Array;
  /** Index into the frames; -1 for the root. */
  readonly frame: Int32Array;
  /** Where the box starts. */
  readonly offsetNanos: Float64Array;
  /** Its width. */
  readonly totalNanos: Float64Array;
  /** Time in the function itself. */
  readonly selfNanos: Float64Array;
  /** How much of the width is waits. */
  readonly waitedNanos: Float64Array;
  /** Index into the waits of what most of them were for; -1 without waits. */
  readonly wait: Int32Array;
  /** The line of the function with the most time here; 0 where unknown. */
  readonly line: Uint32Array;
}

/** A function, and the spans it ran in. */
export interface Frame {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** Handle, such as `f12`. */
  readonly handle: string;
  /** Name for people. */
  readonly function: string;
  /** Source file; empty where unknown. */
  readonly file: string;
  /** What runs the function; null for code of a binary of the process. */
  readonly runtime: Runtime | null;
  /** Whose code it is. */
  readonly whose: Whose;
  /** Samples that contain it. */
  readonly samples: number;
  /** Time in it and in what it called. */
  readonly totalNanos: Nanos;
  /** Time in the function itself. */
  readonly selfNanos: Nanos;
  /** Waits that contain it. */
  readonly waits: number;
  /** Length of these waits, summed over all threads. */
  readonly waitedNanos: Nanos;
  /** What it waited for, longest first: in which function of the program, itself or one that it calls, and where. */
  readonly waitedFor: readonly Wait[];
  /** Its lines with the most time, at most 20; its source has all. */
  readonly lines: readonly Line[];
  /** Spans whose own samples or waits contain it, largest first, at most 500. */
  readonly spans: readonly FrameSpan[];
  /** The operations of all these spans, including those that `spans` omits, largest first, at most 100. */
  readonly operations: readonly FrameOperation[];
  /** Samples that contain it and belong to no span. */
  readonly unlinkedSamples: number;
  /** How many of these could belong to several spans. */
  readonly ambiguousSamples: number;
  /** Length of the waits that contain it and belong to no span. */
  readonly unlinkedWaitedNanos: Nanos;
  /** How many spans `spans` omits. */
  readonly truncated: SpansTruncated;
}

/** A span that a function ran in. */
export interface FrameSpan {
  /** Handle, such as `s12`. */
  readonly handle: string;
  /** Service. */
  readonly service: string;
  /** Operation. */
  readonly name: string;
  /** Its own samples that contain the function. */
  readonly samples: number;
  /** The time that these samples stand for. */
  readonly totalNanos: Nanos;
  /** Length of its own waits that contain the function. */
  readonly waitedNanos: Nanos;
  /** Share of the span's own samples, 0 to 1. */
  readonly share: number;
  /** Share of the time of the span's own waits, 0 to 1. */
  readonly waitedShare: number;
}

/** An operation that a function ran in. */
export interface FrameOperation {
  /** Service. */
  readonly service: string;
  /** Operation. */
  readonly name: string;
  /** Its spans that contain the function. */
  readonly spans: number;
  /** Their own samples that contain it. */
  readonly samples: number;
  /** The time that these samples stand for. */
  readonly totalNanos: Nanos;
  /** Length of their own waits that contain it. */
  readonly waitedNanos: Nanos;
  /** Share of the own samples of all spans of the operation, 0 to 1. */
  readonly share: number;
  /** Share of the time of the own waits of all spans of the operation, 0 to 1. */
  readonly waitedShare: number;
}

/**
 * The source of a function: its lines with time (the 60 with the most), and two lines before and after each, by number.
 *
 * longpole reads, from a recording that this store's recorder made on this machine, any file that it names. From any other recording (a file, an import, another machine) it reads files below the working directory of `frame` or `open`, but no hidden ones (a part of the path below it begins with a dot) and none with a second hard link, and files below a folder that `--allow-source DIR` names. It resolves links and `..` first. In every case it reads only regular files of at most 16 MiB, in at most 3 s, and nothing below `/proc`, `/sys` and `/dev`. The store notes beside an imported recording that it was imported (`recordings/r7/imported`), not in it: no file can claim that it was made here.
 */
export interface Source {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** Handle, such as `f12`. */
  readonly handle: string;
  /** Name for people. */
  readonly function: string;
  /** Source file as the program names it; empty where it names none. The text of a program given as text (`python3 -c`) comes from its arguments. */
  readonly file: string;
  /** Where longpole found it. */
  readonly path: string | null;
  /** Whether longpole read the text. */
  readonly state: SourceState;
  /** For people: why the text is missing, or may differ from what ran. */
  readonly detail: string | null;
  /** Time on CPUs in the function and in what it calls. */
  readonly totalNanos: Nanos;
  /** Time in the function itself. */
  readonly selfNanos: Nanos;
  /** Waits in it and in what it calls, summed over all threads. */
  readonly waitedNanos: Nanos;
  /** Lines with time and those around them, by number. */
  readonly lines: readonly SourceLine[];
  /** How many lines with time the list omits: those with the least. */
  readonly truncated: number;
}

/** Whether longpole read the text of a source. */
export const EVERY_SOURCE_STATE = ['read', 'changed', 'missing', 'refused', 'left_out', 'unknown'] as const;
export type SourceState = (typeof EVERY_SOURCE_STATE)[number];

/** A line of a source. */
export interface SourceLine {
  /** Its number, from 1. */
  readonly line: number;
  /** Its text; null where the file is missing, or ends before it. */
  readonly text: string | null;
  /** Time on CPUs there and in what it calls from there. */
  readonly totalNanos: Nanos;
  /** Time on CPUs on the line itself. */
  readonly selfNanos: Nanos;
  /** Waits there and in what it calls from there. */
  readonly waitedNanos: Nanos;
}

/** The threads of a recording. */
export interface Threads {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** The range of time that it is limited to, from the start of the run; null for all of it. Then all times and samples of a thread are of the range, `rank` is its place in the list, poles are of the whole run, and `waited_for` is empty. */
  readonly fromNanos: Nanos | null;
  /** The end of that range. */
  readonly toNanos: Nanos | null;
  /** Threads, those with the most time on CPUs first. */
  readonly threads: readonly Thread[];
}

/** Threads over a range of time, in equal pieces. */
export interface Lanes {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** The start of the range, from the start of the run. */
  readonly fromNanos: Nanos;
  /** Its end. */
  readonly toNanos: Nanos;
  /** Pieces that it has. */
  readonly bins: number;
  /** States that a lane names by their place here: kinds of waits, `unseen` for blocked and not sampled. */
  readonly states: readonly string[];
  /** Threads, the most important first. */
  readonly threads: readonly Lane[];
  /** Threads of the range that the limit leaves out. */
  readonly truncated: number;
}

/** One thread. */
export interface Lane {
  /** Process. */
  readonly pid: number;
  /** Name of the process. */
  readonly process: string;
  /** Thread. */
  readonly tid: number;
  /** Name of the thread. */
  readonly name: string;
  /** The outermost function of the program in it; null for main threads. */
  readonly entry: string | null;
  /** Whether switch records tell; if not, samples do, and waits are unknown. */
  readonly isExact: boolean;
  /** For each piece the share of it on a CPU, in per mille. */
  readonly onCpu: readonly number[];
  /** For each piece the share in which it was ready to run, in per mille. */
  readonly runnable: readonly number[];
  /** For each piece what takes most of its rest: a place in `states`; -1 where the thread did not live, or nothing is known. */
  readonly rest: readonly Nanos[];
}

/** The processes of a recording. */
export interface Processes {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** The largest peak of resident memory of the command and of all processes that it waited for, as `wait4` reported; null where nobody waited. */
  readonly peakResidentBytes: number | null;
  /** Page faults of all these processes that needed no storage. */
  readonly minorFaults: number | null;
  /** Page faults of all these processes that waited for storage. */
  readonly majorFaults: number | null;
  /** The processes as a tree, in pre-order, children by start. */
  readonly processes: readonly ProcessRow[];
}

/** A process of the list. */
export interface ProcessRow {
  /** Handle of the span that stands for it; null where none does. */
  readonly handle: string | null;
  /** Its id. */
  readonly pid: number;
  /** Its parent's id. */
  readonly parentPid: number | null;
  /** Level; 0 for the command. */
  readonly depth: number;
  /** Its name. */
  readonly name: string;
  /** Path of the executable; empty where unknown. Past 256 MiB of what forks share with their parents, it is cut after 4 KiB. */
  readonly executable: string;
  /** Its arguments; past 256 MiB of what forks share with their parents, `…`. */
  readonly arguments: readonly string[];
  /** Start; null where the recorder read no clock. */
  readonly startNanos: Nanos | null;
  /** How long it lived; to the end of the recording, if it outlived that. */
  readonly durationNanos: Nanos;
  /** Whether it outlived the recording. */
  readonly outlived: boolean;
  /** How it ended; null where nobody saw it. */
  readonly exit: Exit | null;
  /** User and system time of all its threads. */
  readonly cpuNanos: Nanos | null;
  /** What it used; null where longpole never read it. */
  readonly usage: Usage | null;
}

/** Why one recording took longer than another. */
export interface Diff {
  /** Always `longpole.diff/1`. */
  readonly schema: string;
  /** The first recording. */
  readonly a: Diffed;
  /** The second recording. */
  readonly b: Diffed;
  /** For people: what differs beside the time, such as the command. */
  readonly notes: readonly string[];
  /** For people: what became of the promise of the first, or that nothing differs; null where neither is so. */
  readonly verdict: string | null;
  /** The pole that was fixed in between; null if none was. */
  readonly fixed: FixedPole | null;
  /** How much longer the second took; the operations sum to it. */
  readonly deltaNanos: Nanos;
  /** Operations, the largest difference first. */
  readonly operations: readonly OperationDiff[];
  /** What this list omits. */
  readonly truncated: OperationsTruncated;
  /** Their code, if one of them is a profile, whose samples have no times: it has no critical path. Otherwise null. */
  readonly code: CodeDiff | null;
}

/** One of the two recordings. */
export interface Diffed {
  /** Name of the recording, such as `r7`, or the file. */
  readonly recording: string;
  /** The command and its arguments. */
  readonly command: readonly string[];
  /** Start, in nanoseconds since 1970. */
  readonly startUnixNano: bigint;
  /** How long it took. */
  readonly wallNanos: Nanos;
  /** The machine. */
  readonly host: string;
  /** Samples per second. */
  readonly rateHz: number;
}

/** A pole of the first recording that the second one has no more, or less of. */
export interface FixedPole {
  /** Its handle in the first recording, such as `p1`. */
  readonly handle: string;
  /** Its name: `web-bundle › compress_bundle`. */
  readonly name: string;
  /** What the first recording promised: how much earlier it would have ended without this pole. */
  readonly promisedNanos: NanosRange;
  /** What the second recording would still save without it; null if it has no such pole. */
  readonly leftNanos: NanosRange | null;
}

/** One operation in both recordings. */
export interface OperationDiff {
  /** Service. */
  readonly service: string;
  /** Operation, with `#` for numbers and ids in it. */
  readonly name: string;
  /** Type and name of the cloud resource that it works on. */
  readonly resource: string | null;
  /** Which of the two runs have it. */
  readonly fate: Fate;
  /** How much longer the second run is because of it. */
  readonly deltaNanos: Nanos;
  /** The operation in the first recording. */
  readonly a: Side;
  /** The operation in the second recording. */
  readonly b: Side;
  /** What it did longer or shorter while it was on the path, the largest difference first, without small ones. */
  readonly states: readonly StateDiff[];
}

/** Which of two runs have an operation. */
export const EVERY_FATE = ['added', 'removed', 'kept'] as const;
export type Fate = (typeof EVERY_FATE)[number];

/** An operation in one of the two recordings. */
export interface Side {
  /** How many spans. */
  readonly count: number;
  /** Their durations, summed. */
  readonly totalNanos: Nanos;
  /** Time of the critical path in which one of them was the innermost. */
  readonly onPathNanos: Nanos;
  /** How much of that was on a CPU. */
  readonly onPathCpuNanos: Nanos;
  /** Handle of the one with most time on the path; null if there are none. */
  readonly handle: string | null;
}

/** How much longer an operation was in one state. */
export interface StateDiff {
  /** The state. */
  readonly state: DiffState;
  /** What it waited for; null for waits that were not sampled, and in other states. */
  readonly kind: WaitKind | null;
  /** The state for people. */
  readonly text: string;
  /** How much more in the second recording than in the first. */
  readonly deltaNanos: Nanos;
  /** The function that holds most of it. */
  readonly function: string | null;
}

/** A state of an operation on the critical path. */
export const EVERY_DIFF_STATE = ['on_cpu', 'runnable', 'blocked', 'in_child', 'awaiting', 'remote', 'unaccounted'] as const;
export type DiffState = (typeof EVERY_DIFF_STATE)[number];

/** What a list of operations omits. */
export interface OperationsTruncated {
  /** Omitted operations. */
  readonly operations: number;
  /** What they explain together. */
  readonly deltaNanos: Nanos;
}

/** The samples of two recordings, function by function. */
export interface CodeDiff {
  /** Time in samples of each. */
  readonly sampledNanos: readonly [Nanos, Nanos];
  /** Functions, the one whose own part of that changed most first. */
  readonly functions: readonly FunctionChange[];
  /** How many functions `functions` omits. */
  readonly truncated: number;
}

/** A function in both. */
export interface FunctionChange {
  /** Name for people. */
  readonly function: string;
  /** How much it had itself, before and after. */
  readonly own: readonly [number, number];
  /** How much it had with what it called, before and after. */
  readonly total: readonly [number, number];
  /** Its own part of the whole, from 0 to 1, before and after. */
  readonly ownShare: readonly [number, number];
}

/** The services of a server. */
export interface Services {
  /** The services, by name. */
  readonly services: readonly Service[];
  /** Whether there are more services or operations: a server lists about 8 MB of names. */
  readonly truncated: boolean;
}

/** A service. */
export interface Service {
  /** Its name. */
  readonly name: string;
  /** Names of its operations. */
  readonly operations: readonly string[];
}

/** What a search finds. */
export interface Traces {
  /** The traces, the newest first. */
  readonly traces: readonly TraceRow[];
  /** Whether older traces may match as well. */
  readonly truncated: boolean;
  /** The parameter `after` of a request for them; `null` if there are none, or if the server is another one. */
  readonly next: string | null;
}

/** A trace in a list. */
export interface TraceRow {
  /** Its id. */
  readonly traceId: string;
  /** Service of its root, or of its first span if no root came. */
  readonly service: string;
  /** Operation of that span. */
  readonly name: string;
  /** First start, in nanoseconds since 1970. */
  readonly startUnixNano: bigint;
  /** From the first start to the last end. */
  readonly wallNanos: Nanos;
  /** Spans received. */
  readonly spans: number;
  /** Spans that failed. */
  readonly errors: number;
  /** Services of its spans. */
  readonly services: readonly ServiceSpans[];
}

/** A service in a trace. */
export interface ServiceSpans {
  /** Its name. */
  readonly name: string;
  /** Its spans. */
  readonly spans: number;
}

/** The traces of a recording that the server has received as well, from the recorded processes and from others. */
export interface TracesOfRecording {
  /** The traces, by their ids. */
  readonly traces: readonly ReceivedTrace[];
  /** Whether the recording has more traces than this answer is about. */
  readonly truncated: boolean;
}

/** A trace that a server received. */
export interface ReceivedTrace {
  /** Its id. */
  readonly traceId: string;
  /** Spans received. */
  readonly spans: number;
}

/** The services of a server and their calls. */
export interface ServiceMap {
  /** Traces that the map is made from. */
  readonly traces: number;
  /** Whether there are more of them in that time, all older, or more services and calls than a map has: 16 MB of them. */
  readonly truncated: boolean;
  /** The services, by name. */
  readonly services: readonly MappedService[];
  /** The calls between them, by caller and callee. */
  readonly calls: readonly ServiceCalls[];
}

/** A service of a map. */
export interface MappedService {
  /** Its name. */
  readonly name: string;
  /** Its requests: spans that no span of the same service called. */
  readonly requests: Requests;
}

/** Requests: how many, and how long they took. */
export interface Requests {
  /** How many. */
  readonly count: number;
  /** How many failed. */
  readonly errors: number;
  /** Half of them took no longer. */
  readonly medianNanos: Nanos;
  /** 95 % of them took no longer. */
  readonly p95Nanos: Nanos;
  /** 99 % of them took no longer. */
  readonly p99Nanos: Nanos;
}

/** Calls from one service to another. */
export interface ServiceCalls {
  /** The service that calls. */
  readonly caller: string;
  /** The service that answers. */
  readonly callee: string;
  /** The requests that these calls made, as the callee timed them. */
  readonly requests: Requests;
}

/** The critical paths of the traces that a search finds: what to fix first, and what requests would gain. */
export interface SharedPoles {
  /** Traces whose critical paths are in it: the newest ones that match. */
  readonly traces: number;
  /** Whether more traces match: all are older. */
  readonly truncated: boolean;
  /** Traces that match and are too large to be in it. */
  readonly leftOut: number;
  /** The operations that the traces begin with, the one with most time first. */
  readonly operations: readonly OperationPoles[];
  /** How many operations `operations` omits. */
  readonly omitted: number;
}

/** The traces that begin with one operation. */
export interface OperationPoles {
  /** Its service. */
  readonly service: string;
  /** Its name, with `#` for numbers and ids. */
  readonly name: string;
  /** How many traces. */
  readonly traces: number;
  /** All their time. */
  readonly totalNanos: Nanos;
  /** How long they took. */
  readonly takes: Quantiles;
  /** The longest one. */
  readonly longest: LongestTrace;
  /** Their poles, the one that saves most first. */
  readonly poles: readonly SharedPole[];
  /** How many poles `poles` omits. */
  readonly omitted: number;
}

/** Durations that half, 95 % and 99 % of the traces do not exceed. */
export interface Quantiles {
  /** Half of them took no longer. */
  readonly medianNanos: Nanos;
  /** 95 % of them took no longer. */
  readonly p95Nanos: Nanos;
  /** 99 % of them took no longer. */
  readonly p99Nanos: Nanos;
}

/** A trace, and how long it took, or a pole in it. */
export interface LongestTrace {
  /** Its id. */
  readonly traceId: string;
  /** How long. */
  readonly nanos: Nanos;
}

/** A pole of the traces of one operation. */
export interface SharedPole {
  /** Service. */
  readonly service: string;
  /** Operation, with `#` for numbers and ids. */
  readonly name: string;
  /** The part of its own time that it is, such as a function; null for all of it. */
  readonly part: string | null;
  /** Traces with it on their critical path. */
  readonly traces: number;
  /** Its time on the critical paths of all of them. */
  readonly onPathNanos: Nanos;
  /** Its part of the time of the slowest 5 % of the traces, 0 to 1; null for fewer than 100 traces. */
  readonly shareOfSlowest: number | null;
  /** Its part of the time of the others. */
  readonly shareOfOthers: number | null;
  /** What all traces together save if its own time were nothing. */
  readonly savesNanos: NanosRange;
  /** How long the traces would take then, if it saves least. */
  readonly without: Quantiles;
  /** How long they would take, if it saves most. */
  readonly withoutAtBest: Quantiles;
  /** The trace with most time in it, and that time. */
  readonly mostIn: LongestTrace;
}

/** The types of profiles that a server has. */
export interface ProfileTypes {
  /** First time that was searched, in nanoseconds since 1970. */
  readonly fromUnixNano: bigint;
  /** First time that was too late. */
  readonly toUnixNano: bigint;
  /** Types, by name. */
  readonly types: readonly ProfileType[];
}

/** A type of profiles. */
export interface ProfileType {
  /** Its whole name, such as `process_cpu:cpu:nanoseconds:cpu:nanoseconds`. */
  readonly profileType: string;
  /** What its values are of, such as `cpu`. */
  readonly sampleType: string;
  /** In what, such as `nanoseconds` or `bytes`. */
  readonly unit: string;
  /** Whether values are states, such as memory in use. Sums of states are averages over time. */
  readonly isState: boolean;
  /** Services with such profiles, by name. */
  readonly services: readonly string[];
}

/** Profiles of a range of time, added up. */
export interface Profile {
  /** The query: a type with a selector behind it. */
  readonly query: string;
  /** What the values are of, such as `cpu`. */
  readonly sampleType: string;
  /** In what, such as `nanoseconds` or `bytes`. */
  readonly unit: string;
  /** Whether values are states, such as memory in use, and sums averages over time. */
  readonly isState: boolean;
  /** First time, in nanoseconds since 1970. */
  readonly fromUnixNano: bigint;
  /** First time that is too late. */
  readonly toUnixNano: bigint;
  /** All of it. */
  readonly total: number;
  /** Functions, the one that had most itself first. */
  readonly functions: readonly ProfileFunction[];
  /** How many functions `functions` omits. */
  readonly truncated: number;
  /** The calls. */
  readonly calls: ProfileCalls;
}

/** A function of profiles. */
export interface ProfileFunction {
  /** Name for people. */
  readonly function: string;
  /** Source file of all functions of this name; empty where none is known, or several are. */
  readonly file: string;
  /** How much it had itself. */
  readonly own: number;
  /** How much it had with what it called; a function that calls itself counts once. */
  readonly total: number;
}

/** Calls, each in front of those that it made: a row is an index into every list but `names`. */
export interface ProfileCalls {
  /** Names. */
  readonly names: readonly string[];
  /** Place of the name in `names`. */
  readonly name: readonly number[];
  /** Functions above it; 0 for those that nothing called. */
  readonly depth: readonly number[];
  /** How much it had with what it called. */
  readonly total: readonly number[];
  /** How much it had itself. */
  readonly own: readonly number[];
}

/** Profiles of two ranges of time, or of two queries. */
export interface ProfileDiff {
  /** The query of the second. */
  readonly query: string;
  /** What the values are of. */
  readonly sampleType: string;
  /** In what. */
  readonly unit: string;
  /** Whether values are states, and sums averages over time. */
  readonly isState: boolean;
  /** The first. */
  readonly before: ProfileSide;
  /** The second. */
  readonly after: ProfileSide;
  /** Functions, the one whose own part of the whole changed most first. */
  readonly functions: readonly FunctionChange[];
  /** How many functions `functions` omits. */
  readonly truncated: number;
}

/** One side of a comparison. */
export interface ProfileSide {
  /** First time, in nanoseconds since 1970. */
  readonly fromUnixNano: bigint;
  /** First time that is too late. */
  readonly toUnixNano: bigint;
  /** All of it. */
  readonly total: number;
}

/** Values of profiles over time: row by row, steps without a value left out. */
export interface ProfileValues {
  /** The query: a type with a selector behind it. */
  readonly query: string;
  /** What the values are of, such as `cpu`. */
  readonly sampleType: string;
  /** In what, such as `nanoseconds` or `bytes`. */
  readonly unit: string;
  /** Whether values are states, such as memory in use: of all processes together. */
  readonly isState: boolean;
  /** First time, in nanoseconds since 1970. */
  readonly fromUnixNano: bigint;
  /** First time that is too late. */
  readonly toUnixNano: bigint;
  /** Length of a step. */
  readonly stepNanos: Nanos;
  /** Numbers of steps, in ascending order; the first step is 0. */
  readonly step: readonly number[];
  /** A state in the unit of the query; otherwise so much a second, of time a number of CPUs. */
  readonly value: readonly number[];
  /** Versions whose first profiles came in this time. */
  readonly versions: readonly Version[];
}

/** A version of a service. */
export interface Version {
  /** The label that names it, such as `version="1.8"`. */
  readonly label: string;
  /** When its first profile came, in nanoseconds since 1970. */
  readonly firstUnixNano: bigint;
}

/** States of services that grow, such as memory in use. */
export interface ServiceGrowth {
  /** First time, in nanoseconds since 1970: of the profiles, if they begin later than what was searched. */
  readonly fromUnixNano: bigint;
  /** First time that is too late. */
  readonly toUnixNano: bigint;
  /** What grows, the one that grew by the largest part of itself first. */
  readonly growing: readonly GrowingState[];
  /** How many `growing` omits. */
  readonly truncated: number;
  /** How many states do not grow, or not by more than they vary. */
  readonly steady: number;
  /** How many have too few values to tell. */
  readonly tooShort: number;
}

/** A state of a service that grows: an average over its processes. */
export interface GrowingState {
  /** The service. */
  readonly service: string;
  /** What its profiles are of, with a selector: what to ask for them. */
  readonly query: string;
  /** What its values are of, such as `inuse_space`. */
  readonly sampleType: string;
  /** In what, such as `bytes`. */
  readonly unit: string;
  /** How many processes the numbers are an average of, at the end. */
  readonly processes: number;
  /** How much more a day. */
  readonly perDay: number;
  /** Between which that is: 95 %. */
  readonly perDayRange: readonly [number, number];
  /** How much there was when the growth began, and at its end, by the line that fits best; what restarts took back counts. */
  readonly values: readonly [number, number];
  /** How much there was at last. */
  readonly now: number;
  /** Whether a restart, or another fall, took most of the growth back. */
  readonly isTakenBack: boolean;
  /** When the growth began, in nanoseconds since 1970: when the first profile of `version` came, if there is one; null if it began before the range of time, or with the first profile. */
  readonly sinceUnixNano: bigint | null;
  /** How much later the growth may have begun; 0 if that is known. */
  readonly sinceWithinNanos: Nanos;
  /** First time with a value. */
  readonly firstUnixNano: bigint;
  /** How long the growth is known. */
  readonly overNanos: Nanos;
  /** The label of a version whose first profiles came when the growth began, such as `version="1.8"`; null if there is none. */
  readonly version: string | null;
  /** Functions that hold more at the end than at the begin, the one that holds the largest part of the growth first; at most 10. */
  readonly functions: readonly GrowingFunction[];
}

/** A function that holds more than before. */
export interface GrowingFunction {
  /** Name for people. */
  readonly function: string;
  /** How much more it holds in the last quarter of the growth than in its first. */
  readonly growth: number;
  /** The part of the growth that this is, from 0 to 1. */
  readonly share: number;
  /** Functions on the call path with most of it, the outermost first; at most 8, and the last of them called this one. */
  readonly callers: readonly string[];
}

/** A recording that a server keeps from now on. */
export interface Kept {
  /** Name of the recording, such as `r7`. */
  readonly recording: string;
  /** The address of its page, without the server's. */
  readonly page: string;
}

/** What the server of a page has. */
export interface Server {
  /** Whether it has traces of services and takes files, as `longpole serve`; `longpole open` has recordings only. */
  readonly traces: boolean;
  /** A port that takes OTLP over HTTP; null if the server has recordings only. */
  readonly otlpHttpPort: number | null;
  /** A port that takes OTLP over gRPC; null if the server has recordings only. */
  readonly otlpGrpcPort: number | null;
  /** A port that takes spans of Zipkin; null if the server has recordings only. */
  readonly zipkinPort: number | null;
  /** A port that takes profiles of Pyroscope's clients; null if the server has recordings only. */
  readonly pyroscopePort: number | null;
  /** Whether programs need a token to send. */
  readonly needsToken: boolean;
}

/** What a link to a page of `longpole open` needs beside its address. */
export interface Link {
  /** The token that opens the page in any browser of the same user. */
  readonly token: string;
}
