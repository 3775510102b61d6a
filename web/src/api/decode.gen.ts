// Generated from the views of crates/longpole-recording/src/view; do not edit. A test of that crate fails when this is stale:
// LONGPOLE_UPDATE_CONTRACT=1 cargo test -p longpole-recording --test contract
import { Cursor } from './cursor';
import {
  EVERY_BLOCKER_EVIDENCE,
  EVERY_CAPTURE_MODE,
  EVERY_DIFF_STATE,
  EVERY_EVIDENCE,
  EVERY_FATE,
  EVERY_FLAME_TIME,
  EVERY_NOTABLE_CODE,
  EVERY_PART_KIND,
  EVERY_PEAK_FROM,
  EVERY_PIECE_KIND,
  EVERY_REASON_CODE,
  EVERY_RECORDING_STATE,
  EVERY_RELATION,
  EVERY_RUNTIME,
  EVERY_SOURCE_STATE,
  EVERY_SPAN_KIND,
  EVERY_STATE_EVIDENCE,
  EVERY_STATUS_CODE,
  EVERY_SUMMARISED,
  EVERY_WAIT_KIND,
  EVERY_WHOSE,
  type Answer,
  type Attached,
  type Attribute,
  type Blocked,
  type BlockedBy,
  type Blocker,
  type Callee,
  type CalleeProcess,
  type CodeDiff,
  type Deployment,
  type Diff,
  type Diffed,
  type Durations,
  type Event,
  type Exit,
  type FailedSpan,
  type FailedSpans,
  type FixedPole,
  type Flame,
  type FlameColumns,
  type FlameFrame,
  type FlameWaits,
  type Frame,
  type FrameOperation,
  type FrameSpan,
  type FunctionChange,
  type GrowingFunction,
  type GrowingState,
  type Growth,
  type Kept,
  type Lane,
  type Lanes,
  type Limit,
  type Line,
  type Link,
  type Links,
  type LongestTrace,
  type MappedService,
  type NextPole,
  type Notable,
  type OneOf,
  type OperationDiff,
  type OperationPoles,
  type OperationsTruncated,
  type Parallelism,
  type Parent,
  type Part,
  type PartOf,
  type PartOfSpan,
  type PathColumns,
  type Piece,
  type Place,
  type Pole,
  type PoleOfSpan,
  type Poles,
  type PolesTruncated,
  type Process,
  type ProcessRow,
  type Processes,
  type Profile,
  type ProfileCalls,
  type ProfileDiff,
  type ProfileFunction,
  type ProfileSide,
  type ProfileType,
  type ProfileTypes,
  type ProfileValues,
  type Quality,
  type Quantiles,
  type ReadingColumns,
  type Reason,
  type ReceivedTrace,
  type Recorder,
  type Recording,
  type Recordings,
  type Requests,
  type SameName,
  type Savings,
  type Server,
  type Service,
  type ServiceCalls,
  type ServiceGrowth,
  type ServiceMap,
  type ServiceSpans,
  type Services,
  type SharedPole,
  type SharedPoles,
  type Side,
  type Source,
  type SourceLine,
  type Span,
  type SpanLink,
  type SpanOfName,
  type SpanSamples,
  type Spans,
  type SpansTruncated,
  type StateDiff,
  type States,
  type Status,
  type Summary,
  type Thread,
  type ThreadFunction,
  type Threads,
  type TopFrame,
  type TraceRow,
  type Traces,
  type TracesOfRecording,
  type Tree,
  type TreeColumns,
  type Usage,
  type Version,
  type Wait,
  type WaitedFor,
  type WhatIf,
  type Within,
} from './types.gen';

function recordings(cursor: Cursor): Recordings {
  return {
    recordings: cursor.field('recordings').list(recording),
    damaged: cursor.field('damaged').list((c) => c.string()),
  };
}

function recording(cursor: Cursor): Recording {
  return {
    recording: cursor.field('recording').string(),
    command: cursor.field('command').list((c) => c.string()),
    startUnixNano: cursor.field('start_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    exit: cursor.field('exit').orNull(exit),
    state: cursor.field('state').oneOf(EVERY_RECORDING_STATE),
    notSealed: cursor.field('not_sealed').orNull((c) => c.string()),
    notSealedCause: cursor.field('not_sealed_cause').orNull((c) => c.string()),
    spans: cursor.field('spans').count(),
    samples: cursor.field('samples').count(),
    answer: cursor.field('answer').orNull(answer),
    tags: cursor.field('tags').list((c) => c.string()),
  };
}

function exit(cursor: Cursor): Exit {
  return {
    code: cursor.field('code').orNull((c) => c.number()),
    signal: cursor.field('signal').orNull((c) => c.number()),
  };
}

function answer(cursor: Cursor): Answer {
  return {
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    context: cursor.field('context').orNull((c) => c.string()),
    savesIfZeroNanos: cursor.field('saves_if_zero_nanos').range(),
    part: cursor.field('part').orNull((c) => c.string()),
    function: cursor.field('function').orNull((c) => c.string()),
    wait: cursor.field('wait').orNull((c) => c.string()),
  };
}

function summary(cursor: Cursor): Summary {
  return {
    schema: cursor.field('schema').string(),
    recording: cursor.field('recording').string(),
    of: cursor.field('of').oneOf(EVERY_SUMMARISED),
    command: cursor.field('command').list((c) => c.string()),
    exit: cursor.field('exit').orNull(exit),
    startUnixNano: cursor.field('start_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    cpuNanos: cursor.field('cpu_nanos').orNull((c) => c.nanos()),
    host: cursor.field('host').string(),
    mode: cursor.field('mode').oneOf(EVERY_CAPTURE_MODE),
    rateHz: cursor.field('rate_hz').count(),
    processes: cursor.field('processes').count(),
    traces: cursor.field('traces').count(),
    ofRequests: cursor.field('of_requests').boolean(),
    spans: cursor.field('spans').count(),
    failed: failedSpans(cursor.field('failed')),
    samples: cursor.field('samples').count(),
    links: links(cursor.field('links')),
    states: states(cursor.field('states')),
    parallelism: parallelism(cursor.field('parallelism')),
    deployment: cursor.field('deployment').orNull(deployment),
    usage: cursor.field('usage').list(notable),
    poles: cursor.field('poles').list(pole),
    functions: cursor.field('functions').list(topFrame),
    weightNanos: cursor.field('weight_nanos').nanos(),
    attached: cursor.field('attached').orNull(attached),
    quality: cursor.field('quality').list(quality),
    recorder: cursor.field('recorder').orNull(recorder),
    truncated: polesTruncated(cursor.field('truncated')),
    betweenNanos: cursor.field('between_nanos').nanos(),
    idleNanos: cursor.field('idle_nanos').nanos(),
  };
}

function failedSpans(cursor: Cursor): FailedSpans {
  return {
    count: cursor.field('count').count(),
    first: cursor.field('first').orNull(failedSpan),
  };
}

function failedSpan(cursor: Cursor): FailedSpan {
  return {
    handle: cursor.field('handle').string(),
    name: cursor.field('name').string(),
    service: cursor.field('service').string(),
    message: cursor.field('message').string(),
  };
}

function links(cursor: Cursor): Links {
  return {
    record: cursor.field('record').count(),
    journal: cursor.field('journal').count(),
    label: cursor.field('label').count(),
    inferred: cursor.field('inferred').count(),
    ambiguous: cursor.field('ambiguous').count(),
    none: cursor.field('none').count(),
  };
}

function states(cursor: Cursor): States {
  return {
    onCpuNanos: cursor.field('on_cpu_nanos').nanos(),
    runnableNanos: cursor.field('runnable_nanos').nanos(),
    inChildNanos: cursor.field('in_child_nanos').nanos(),
    blockedNanos: blocked(cursor.field('blocked_nanos')),
    blockedUnseenNanos: cursor.field('blocked_unseen_nanos').nanos(),
    awaitingNanos: cursor.field('awaiting_nanos').nanos(),
    remoteNanos: cursor.field('remote_nanos').nanos(),
    unaccountedNanos: cursor.field('unaccounted_nanos').nanos(),
    cpuNanos: cursor.field('cpu_nanos').nanos(),
    exact: cursor.field('exact').boolean(),
    evidence: cursor.field('evidence').oneOf(EVERY_STATE_EVIDENCE),
  };
}

function blocked(cursor: Cursor): Blocked {
  return {
    lock: cursor.field('lock').nanos(),
    queue: cursor.field('queue').nanos(),
    join: cursor.field('join').nanos(),
    disk: cursor.field('disk').nanos(),
    network: cursor.field('network').nanos(),
    sleep: cursor.field('sleep').nanos(),
    pageFault: cursor.field('page_fault').nanos(),
    child: cursor.field('child').nanos(),
    pipe: cursor.field('pipe').nanos(),
    idle: cursor.field('idle').nanos(),
    other: cursor.field('other').nanos(),
  };
}

function parallelism(cursor: Cursor): Parallelism {
  return {
    mean: cursor.field('mean').number(),
    peak: cursor.field('peak').count(),
    workNanos: cursor.field('work_nanos').nanos(),
    spanNanos: cursor.field('span_nanos').nanos(),
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

function notable(cursor: Cursor): Notable {
  return {
    code: cursor.field('code').oneOf(EVERY_NOTABLE_CODE),
    handle: cursor.field('handle').orNull((c) => c.string()),
    process: cursor.field('process').orNull((c) => c.string()),
    amount: cursor.field('amount').count(),
    text: cursor.field('text').string(),
  };
}

function pole(cursor: Cursor): Pole {
  return {
    handle: cursor.field('handle').string(),
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    context: cursor.field('context').orNull((c) => c.string()),
    part: cursor.field('part').orNull(part),
    count: cursor.field('count').count(),
    spans: cursor.field('spans').list((c) => c.string()),
    truncated: spansTruncated(cursor.field('truncated')),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
    savesIfZeroNanos: cursor.field('saves_if_zero_nanos').range(),
    savesIfHalfNanos: cursor.field('saves_if_half_nanos').range(),
    savesOwnNanos: cursor.field('saves_own_nanos').range(),
    savesWithThoseBeforeNanos: cursor.field('saves_with_those_before_nanos').orNull((c) => c.range()),
    evidence: cursor.field('evidence').oneOf(EVERY_EVIDENCE),
    states: states(cursor.field('states')),
    reason: reason(cursor.field('reason')),
    callee: cursor.field('callee').orNull(callee),
    blockedBy: cursor.field('blocked_by').orNull(blockedBy),
    contains: cursor.field('contains').orNull((c) => c.string()),
    containsAll: cursor.field('contains_all').boolean(),
    limitedBy: cursor.field('limited_by').orNull(limit),
    resource: cursor.field('resource').orNull((c) => c.string()),
    topFrames: cursor.field('top_frames').list(topFrame),
    samples: cursor.field('samples').count(),
    weightNanos: cursor.field('weight_nanos').nanos(),
    fewSamples: cursor.field('few_samples').boolean(),
  };
}

function part(cursor: Cursor): Part {
  return {
    kind: cursor.field('kind').oneOf(EVERY_PART_KIND),
    text: cursor.field('text').string(),
    function: cursor.field('function').orNull((c) => c.string()),
    handle: cursor.field('handle').orNull((c) => c.string()),
    file: cursor.field('file').orNull((c) => c.string()),
    line: cursor.field('line').orNull((c) => c.count()),
  };
}

function spansTruncated(cursor: Cursor): SpansTruncated {
  return {
    spans: cursor.field('spans').count(),
  };
}

function reason(cursor: Cursor): Reason {
  return {
    code: cursor.field('code').oneOf(EVERY_REASON_CODE),
    text: cursor.field('text').string(),
    pieces: cursor.field('pieces').list(piece),
    function: cursor.field('function').orNull((c) => c.string()),
    mostlyIn: cursor.field('mostly_in').orNull((c) => c.string()),
  };
}

function piece(cursor: Cursor): Piece {
  return {
    kind: cursor.field('kind').oneOf(EVERY_PIECE_KIND),
    text: cursor.field('text').string(),
  };
}

function callee(cursor: Cursor): Callee {
  return {
    address: cursor.field('address').string(),
    processes: cursor.field('processes').list(calleeProcess),
    answers: cursor.field('answers').boolean(),
    samples: cursor.field('samples').count(),
    weightNanos: cursor.field('weight_nanos').nanos(),
    topFrames: cursor.field('top_frames').list(topFrame),
    waits: cursor.field('waits').list(wait),
    text: cursor.field('text').orNull((c) => c.string()),
  };
}

function calleeProcess(cursor: Cursor): CalleeProcess {
  return {
    pid: cursor.field('pid').count(),
    name: cursor.field('name').string(),
  };
}

function topFrame(cursor: Cursor): TopFrame {
  return {
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    line: cursor.field('line').count(),
    runtime: cursor.field('runtime').orNull((c) => c.oneOf(EVERY_RUNTIME)),
    whose: cursor.field('whose').oneOf(EVERY_WHOSE),
    selfNanos: cursor.field('self_nanos').nanos(),
    totalNanos: cursor.field('total_nanos').nanos(),
    samples: cursor.field('samples').count(),
    lines: cursor.field('lines').list(line),
  };
}

function line(cursor: Cursor): Line {
  return {
    line: cursor.field('line').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    selfNanos: cursor.field('self_nanos').nanos(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
  };
}

function wait(cursor: Cursor): Wait {
  return {
    kind: cursor.field('kind').oneOf(EVERY_WAIT_KIND),
    syscall: cursor.field('syscall').orNull((c) => c.string()),
    function: cursor.field('function').orNull((c) => c.string()),
    file: cursor.field('file').string(),
    line: cursor.field('line').count(),
    nanos: cursor.field('nanos').nanos(),
    threads: cursor.field('threads').count(),
    inOtherThreads: cursor.field('in_other_threads').boolean(),
    places: cursor.field('places').list(place),
    blockedBy: cursor.field('blocked_by').orNull(blockedBy),
  };
}

function place(cursor: Cursor): Place {
  return {
    file: cursor.field('file').string(),
    line: cursor.field('line').count(),
    nanos: cursor.field('nanos').nanos(),
  };
}

function blockedBy(cursor: Cursor): BlockedBy {
  return {
    relation: cursor.field('relation').oneOf(EVERY_RELATION),
    threads: cursor.field('threads').list(blocker),
    oneOf: cursor.field('one_of').orNull(oneOf),
    text: cursor.field('text').string(),
  };
}

function blocker(cursor: Cursor): Blocker {
  return {
    pid: cursor.field('pid').count(),
    tid: cursor.field('tid').count(),
    name: cursor.field('name').orNull((c) => c.string()),
    evidence: cursor.field('evidence').oneOf(EVERY_BLOCKER_EVIDENCE),
    nanos: cursor.field('nanos').nanos(),
    samples: cursor.field('samples').count(),
    weightNanos: cursor.field('weight_nanos').nanos(),
    topFrames: cursor.field('top_frames').list(topFrame),
    waits: cursor.field('waits').list(wait),
    text: cursor.field('text').string(),
  };
}

function oneOf(cursor: Cursor): OneOf {
  return {
    threads: cursor.field('threads').count(),
    nanos: cursor.field('nanos').nanos(),
  };
}

function limit(cursor: Cursor): Limit {
  return {
    handle: cursor.field('handle').string(),
    name: cursor.field('name').string(),
    pole: cursor.field('pole').orNull((c) => c.string()),
    within: cursor.field('within').orNull(within),
  };
}

function within(cursor: Cursor): Within {
  return {
    handle: cursor.field('handle').string(),
    name: cursor.field('name').string(),
  };
}

function attached(cursor: Cursor): Attached {
  return {
    pid: cursor.field('pid').orNull((c) => c.count()),
    threadsSeen: cursor.field('threads_seen').count(),
    threads: cursor.field('threads').list(thread),
    onCpuNanos: cursor.field('on_cpu_nanos').nanos(),
    readyNanos: cursor.field('ready_nanos').nanos(),
    blockedNanos: blocked(cursor.field('blocked_nanos')),
    blockedUnseenNanos: cursor.field('blocked_unseen_nanos').nanos(),
    waits: cursor.field('waits').list(wait),
  };
}

function thread(cursor: Cursor): Thread {
  return {
    pid: cursor.field('pid').count(),
    process: cursor.field('process').string(),
    tid: cursor.field('tid').count(),
    name: cursor.field('name').string(),
    entry: cursor.field('entry').orNull((c) => c.string()),
    nanos: cursor.field('nanos').nanos(),
    onCpuNanos: cursor.field('on_cpu_nanos').nanos(),
    isEstimate: cursor.field('is_estimate').boolean(),
    readyNanos: cursor.field('ready_nanos').nanos(),
    blockedNanos: blocked(cursor.field('blocked_nanos')),
    blockedUnseenNanos: cursor.field('blocked_unseen_nanos').nanos(),
    waitedFor: cursor.field('waited_for').list(waitedFor),
    samples: cursor.field('samples').count(),
    function: cursor.field('function').orNull(threadFunction),
    rank: cursor.field('rank').count(),
    pole: cursor.field('pole').orNull((c) => c.string()),
    poles: cursor.field('poles').list((c) => c.string()),
    inPolesNanos: cursor.field('in_poles_nanos').nanos(),
    longestWaitNanos: cursor.field('longest_wait_nanos').nanos(),
  };
}

function waitedFor(cursor: Cursor): WaitedFor {
  return {
    tid: cursor.field('tid').count(),
    name: cursor.field('name').orNull((c) => c.string()),
    relation: cursor.field('relation').oneOf(EVERY_RELATION),
    evidence: cursor.field('evidence').oneOf(EVERY_BLOCKER_EVIDENCE),
    nanos: cursor.field('nanos').nanos(),
  };
}

function threadFunction(cursor: Cursor): ThreadFunction {
  return {
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    nanos: cursor.field('nanos').nanos(),
  };
}

function quality(cursor: Cursor): Quality {
  return {
    code: cursor.field('code').string(),
    count: cursor.field('count').count(),
    title: cursor.field('title').string(),
    detail: cursor.field('detail').string(),
  };
}

function recorder(cursor: Cursor): Recorder {
  return {
    cpuNanos: cursor.field('cpu_nanos').nanos(),
    rssBytesMax: cursor.field('rss_bytes_max').count(),
  };
}

function polesTruncated(cursor: Cursor): PolesTruncated {
  return {
    poles: cursor.field('poles').count(),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
  };
}

function poles(cursor: Cursor): Poles {
  return {
    recording: cursor.field('recording').string(),
    of: cursor.field('of').oneOf(EVERY_SUMMARISED),
    wallNanos: cursor.field('wall_nanos').nanos(),
    poles: cursor.field('poles').list(pole),
    truncated: polesTruncated(cursor.field('truncated')),
    betweenNanos: cursor.field('between_nanos').nanos(),
    idleNanos: cursor.field('idle_nanos').nanos(),
    attached: cursor.field('attached').boolean(),
  };
}

function whatIf(cursor: Cursor): WhatIf {
  return {
    recording: cursor.field('recording').string(),
    without: cursor.field('without').list((c) => c.string()),
    wallNanos: cursor.field('wall_nanos').nanos(),
    savesNanos: cursor.field('saves_nanos').range(),
    wallAfterNanos: cursor.field('wall_after_nanos').range(),
    next: cursor.field('next').orNull(nextPole),
  };
}

function nextPole(cursor: Cursor): NextPole {
  return {
    handle: cursor.field('handle').string(),
    name: cursor.field('name').string(),
    context: cursor.field('context').orNull((c) => c.string()),
    part: cursor.field('part').orNull((c) => c.string()),
    count: cursor.field('count').count(),
    savesMoreNanos: cursor.field('saves_more_nanos').range(),
  };
}

function tree(cursor: Cursor): Tree {
  return {
    recording: cursor.field('recording').string(),
    originUnixNano: cursor.field('origin_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    services: cursor.field('services').list((c) => c.string()),
    names: cursor.field('names').list((c) => c.string()),
    resources: cursor.field('resources').list((c) => c.string()),
    spans: treeColumns(cursor.field('spans')),
    criticalPath: pathColumns(cursor.field('critical_path')),
    notes: cursor.field('notes').list(quality),
  };
}

function treeColumns(cursor: Cursor): TreeColumns {
  return cursor.columns({
    parent: cursor.field('parent').indices(),
    depth: cursor.field('depth').counts(),
    subtree: cursor.field('subtree').counts(),
    startNanos: cursor.field('start_nanos').floats(),
    durationNanos: cursor.field('duration_nanos').floats(),
    service: cursor.field('service').counts(),
    name: cursor.field('name').counts(),
    resource: cursor.field('resource').indices(),
    flags: cursor.field('flags').counts(),
    onPathNanos: cursor.field('on_path_nanos').floats(),
    samples: cursor.field('samples').counts(),
  });
}

function pathColumns(cursor: Cursor): PathColumns {
  return cursor.columns({
    span: cursor.field('span').counts(),
    startNanos: cursor.field('start_nanos').floats(),
    endNanos: cursor.field('end_nanos').floats(),
  });
}

function span(cursor: Cursor): Span {
  return {
    recording: cursor.field('recording').string(),
    handle: cursor.field('handle').string(),
    pole: cursor.field('pole').orNull(poleOfSpan),
    part: cursor.field('part').orNull(partOfSpan),
    traceId: cursor.field('trace_id').orNull((c) => c.string()),
    spanId: cursor.field('span_id').orNull((c) => c.string()),
    parent: cursor.field('parent').orNull(parent),
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    kind: cursor.field('kind').oneOf(EVERY_SPAN_KIND),
    status: status(cursor.field('status')),
    startNanos: cursor.field('start_nanos').nanos(),
    durationNanos: cursor.field('duration_nanos').nanos(),
    process: cursor.field('process').orNull(process),
    attributes: cursor.field('attributes').list(attribute),
    resource: cursor.field('resource').list(attribute),
    events: cursor.field('events').list(event),
    links: cursor.field('links').list(spanLink),
    states: states(cursor.field('states')),
    statesFollowThreads: cursor.field('states_follow_threads').boolean(),
    statesWithDescendants: states(cursor.field('states_with_descendants')),
    waits: cursor.field('waits').list(wait),
    callee: cursor.field('callee').orNull(callee),
    samples: spanSamples(cursor.field('samples')),
    fewSamples: cursor.field('few_samples').boolean(),
    sameName: cursor.field('same_name').orNull(sameName),
    savings: savings(cursor.field('savings')),
    topFrames: cursor.field('top_frames').list(topFrame),
    children: cursor.field('children').count(),
    isRun: cursor.field('is_run').boolean(),
    isProcess: cursor.field('is_process').boolean(),
  };
}

function poleOfSpan(cursor: Cursor): PoleOfSpan {
  return {
    handle: cursor.field('handle').string(),
    count: cursor.field('count').count(),
    savesIfZeroNanos: cursor.field('saves_if_zero_nanos').range(),
  };
}

function partOfSpan(cursor: Cursor): PartOfSpan {
  return {
    handle: cursor.field('handle').string(),
    kind: cursor.field('kind').oneOf(EVERY_PART_KIND),
    text: cursor.field('text').string(),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
    savesIfZeroNanos: cursor.field('saves_if_zero_nanos').range(),
    savesIfHalfNanos: cursor.field('saves_if_half_nanos').range(),
  };
}

function parent(cursor: Cursor): Parent {
  return {
    handle: cursor.field('handle').string(),
    edge: cursor.field('edge').oneOf(EVERY_EVIDENCE),
  };
}

function status(cursor: Cursor): Status {
  return {
    code: cursor.field('code').oneOf(EVERY_STATUS_CODE),
    message: cursor.field('message').string(),
  };
}

function process(cursor: Cursor): Process {
  return {
    pid: cursor.field('pid').count(),
    name: cursor.field('name').string(),
    arguments: cursor.field('arguments').list((c) => c.string()),
    exit: cursor.field('exit').orNull(exit),
    usage: cursor.field('usage').orNull(usage),
  };
}

function usage(cursor: Cursor): Usage {
  return {
    cpuNanos: cursor.field('cpu_nanos').orNull((c) => c.nanos()),
    peakResidentBytes: cursor.field('peak_resident_bytes').orNull((c) => c.count()),
    peakFrom: cursor.field('peak_from').orNull((c) => c.oneOf(EVERY_PEAK_FROM)),
    minorFaults: cursor.field('minor_faults').orNull((c) => c.count()),
    majorFaults: cursor.field('major_faults').orNull((c) => c.count()),
    readBytes: cursor.field('read_bytes').orNull((c) => c.count()),
    writtenBytes: cursor.field('written_bytes').orNull((c) => c.count()),
    storageReadBytes: cursor.field('storage_read_bytes').orNull((c) => c.count()),
    storageWrittenBytes: cursor.field('storage_written_bytes').orNull((c) => c.count()),
    readBeforeEndNanos: cursor.field('read_before_end_nanos').orNull((c) => c.nanos()),
    grows: cursor.field('grows').orNull(growth),
    readings: readingColumns(cursor.field('readings')),
  };
}

function growth(cursor: Cursor): Growth {
  return {
    fromBytes: cursor.field('from_bytes').count(),
    toBytes: cursor.field('to_bytes').count(),
  };
}

function readingColumns(cursor: Cursor): ReadingColumns {
  return cursor.columns({
    timeNanos: cursor.field('time_nanos').floats(),
    residentBytes: cursor.field('resident_bytes').floats(),
  });
}

function attribute(cursor: Cursor): Attribute {
  return {
    key: cursor.field('key').string(),
    value: cursor.field('value').any(),
  };
}

function event(cursor: Cursor): Event {
  return {
    timeNanos: cursor.field('time_nanos').nanos(),
    name: cursor.field('name').string(),
    attributes: cursor.field('attributes').list(attribute),
  };
}

function spanLink(cursor: Cursor): SpanLink {
  return {
    traceId: cursor.field('trace_id').string(),
    spanId: cursor.field('span_id').string(),
    handle: cursor.field('handle').orNull((c) => c.string()),
  };
}

function spanSamples(cursor: Cursor): SpanSamples {
  return {
    own: cursor.field('own').count(),
    withDescendants: cursor.field('with_descendants').count(),
    links: links(cursor.field('links')),
  };
}

function sameName(cursor: Cursor): SameName {
  return {
    name: cursor.field('name').string(),
    spans: cursor.field('spans').count(),
    samples: cursor.field('samples').count(),
  };
}

function savings(cursor: Cursor): Savings {
  return {
    savesIfZeroNanos: cursor.field('saves_if_zero_nanos').range(),
    savesIfHalfNanos: cursor.field('saves_if_half_nanos').range(),
    savesOwnNanos: cursor.field('saves_own_nanos').range(),
    evidence: cursor.field('evidence').oneOf(EVERY_EVIDENCE),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
  };
}

function spans(cursor: Cursor): Spans {
  return {
    recording: cursor.field('recording').string(),
    name: cursor.field('name').string(),
    services: cursor.field('services').list((c) => c.string()),
    count: cursor.field('count').count(),
    outermost: cursor.field('outermost').count(),
    errors: cursor.field('errors').count(),
    durations: durations(cursor.field('durations')),
    states: states(cursor.field('states')),
    waits: cursor.field('waits').list(wait),
    savings: savings(cursor.field('savings')),
    samples: cursor.field('samples').count(),
    topFrames: cursor.field('top_frames').list(topFrame),
    spans: cursor.field('spans').list(spanOfName),
    truncated: cursor.field('truncated').count(),
    areProcesses: cursor.field('are_processes').boolean(),
  };
}

function durations(cursor: Cursor): Durations {
  return {
    sumNanos: cursor.field('sum_nanos').nanos(),
    minNanos: cursor.field('min_nanos').nanos(),
    medianNanos: cursor.field('median_nanos').nanos(),
    maxNanos: cursor.field('max_nanos').nanos(),
  };
}

function spanOfName(cursor: Cursor): SpanOfName {
  return {
    handle: cursor.field('handle').string(),
    name: cursor.field('name').string(),
    service: cursor.field('service').string(),
    startNanos: cursor.field('start_nanos').nanos(),
    durationNanos: cursor.field('duration_nanos').nanos(),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
    error: cursor.field('error').boolean(),
    arguments: cursor.field('arguments').list((c) => c.string()),
  };
}

function flame(cursor: Cursor): Flame {
  return {
    recording: cursor.field('recording').string(),
    span: cursor.field('span').orNull((c) => c.string()),
    partOf: cursor.field('part_of').orNull(partOf),
    name: cursor.field('name').orNull((c) => c.string()),
    traceId: cursor.field('trace_id').orNull((c) => c.string()),
    fromNanos: cursor.field('from_nanos').orNull((c) => c.nanos()),
    toNanos: cursor.field('to_nanos').orNull((c) => c.nanos()),
    tid: cursor.field('tid').orNull((c) => c.count()),
    title: cursor.field('title').string(),
    time: cursor.field('time').oneOf(EVERY_FLAME_TIME),
    samples: cursor.field('samples').count(),
    leftOutWaits: cursor.field('left_out_waits').count(),
    cutSamples: cursor.field('cut_samples').count(),
    weightNanos: cursor.field('weight_nanos').nanos(),
    fewSamples: cursor.field('few_samples').boolean(),
    sameName: cursor.field('same_name').orNull(sameName),
    links: links(cursor.field('links')),
    waits: cursor.field('waits').list(flameWaits),
    frames: cursor.field('frames').list(flameFrame),
    nodes: flameColumns(cursor.field('nodes')),
  };
}

function partOf(cursor: Cursor): PartOf {
  return {
    handle: cursor.field('handle').orNull((c) => c.string()),
    name: cursor.field('name').string(),
  };
}

function flameWaits(cursor: Cursor): FlameWaits {
  return {
    kind: cursor.field('kind').oneOf(EVERY_WAIT_KIND),
    nanos: cursor.field('nanos').nanos(),
  };
}

function flameFrame(cursor: Cursor): FlameFrame {
  return {
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    line: cursor.field('line').count(),
    reason: cursor.field('reason').orNull((c) => c.string()),
    runtime: cursor.field('runtime').orNull((c) => c.oneOf(EVERY_RUNTIME)),
    whose: cursor.field('whose').oneOf(EVERY_WHOSE),
  };
}

function flameColumns(cursor: Cursor): FlameColumns {
  return cursor.columns({
    parent: cursor.field('parent').indices(),
    depth: cursor.field('depth').counts(),
    frame: cursor.field('frame').indices(),
    offsetNanos: cursor.field('offset_nanos').floats(),
    totalNanos: cursor.field('total_nanos').floats(),
    selfNanos: cursor.field('self_nanos').floats(),
    waitedNanos: cursor.field('waited_nanos').floats(),
    wait: cursor.field('wait').indices(),
    line: cursor.field('line').counts(),
  });
}

function frame(cursor: Cursor): Frame {
  return {
    recording: cursor.field('recording').string(),
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    runtime: cursor.field('runtime').orNull((c) => c.oneOf(EVERY_RUNTIME)),
    whose: cursor.field('whose').oneOf(EVERY_WHOSE),
    samples: cursor.field('samples').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    selfNanos: cursor.field('self_nanos').nanos(),
    waits: cursor.field('waits').count(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
    waitedFor: cursor.field('waited_for').list(wait),
    lines: cursor.field('lines').list(line),
    spans: cursor.field('spans').list(frameSpan),
    operations: cursor.field('operations').list(frameOperation),
    unlinkedSamples: cursor.field('unlinked_samples').count(),
    ambiguousSamples: cursor.field('ambiguous_samples').count(),
    unlinkedWaitedNanos: cursor.field('unlinked_waited_nanos').nanos(),
    truncated: spansTruncated(cursor.field('truncated')),
  };
}

function frameSpan(cursor: Cursor): FrameSpan {
  return {
    handle: cursor.field('handle').string(),
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    samples: cursor.field('samples').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
    share: cursor.field('share').number(),
    waitedShare: cursor.field('waited_share').number(),
  };
}

function frameOperation(cursor: Cursor): FrameOperation {
  return {
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    spans: cursor.field('spans').count(),
    samples: cursor.field('samples').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
    share: cursor.field('share').number(),
    waitedShare: cursor.field('waited_share').number(),
  };
}

function source(cursor: Cursor): Source {
  return {
    recording: cursor.field('recording').string(),
    handle: cursor.field('handle').string(),
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    path: cursor.field('path').orNull((c) => c.string()),
    state: cursor.field('state').oneOf(EVERY_SOURCE_STATE),
    detail: cursor.field('detail').orNull((c) => c.string()),
    totalNanos: cursor.field('total_nanos').nanos(),
    selfNanos: cursor.field('self_nanos').nanos(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
    lines: cursor.field('lines').list(sourceLine),
    truncated: cursor.field('truncated').count(),
  };
}

function sourceLine(cursor: Cursor): SourceLine {
  return {
    line: cursor.field('line').count(),
    text: cursor.field('text').orNull((c) => c.string()),
    totalNanos: cursor.field('total_nanos').nanos(),
    selfNanos: cursor.field('self_nanos').nanos(),
    waitedNanos: cursor.field('waited_nanos').nanos(),
  };
}

function threads(cursor: Cursor): Threads {
  return {
    recording: cursor.field('recording').string(),
    fromNanos: cursor.field('from_nanos').orNull((c) => c.nanos()),
    toNanos: cursor.field('to_nanos').orNull((c) => c.nanos()),
    threads: cursor.field('threads').list(thread),
  };
}

function lanes(cursor: Cursor): Lanes {
  return {
    recording: cursor.field('recording').string(),
    fromNanos: cursor.field('from_nanos').nanos(),
    toNanos: cursor.field('to_nanos').nanos(),
    bins: cursor.field('bins').count(),
    states: cursor.field('states').list((c) => c.string()),
    threads: cursor.field('threads').list(lane),
    truncated: cursor.field('truncated').count(),
  };
}

function lane(cursor: Cursor): Lane {
  return {
    pid: cursor.field('pid').count(),
    process: cursor.field('process').string(),
    tid: cursor.field('tid').count(),
    name: cursor.field('name').string(),
    entry: cursor.field('entry').orNull((c) => c.string()),
    isExact: cursor.field('is_exact').boolean(),
    onCpu: cursor.field('on_cpu').list((c) => c.count()),
    runnable: cursor.field('runnable').list((c) => c.count()),
    rest: cursor.field('rest').list((c) => c.nanos()),
  };
}

function processes(cursor: Cursor): Processes {
  return {
    recording: cursor.field('recording').string(),
    peakResidentBytes: cursor.field('peak_resident_bytes').orNull((c) => c.count()),
    minorFaults: cursor.field('minor_faults').orNull((c) => c.count()),
    majorFaults: cursor.field('major_faults').orNull((c) => c.count()),
    processes: cursor.field('processes').list(processRow),
  };
}

function processRow(cursor: Cursor): ProcessRow {
  return {
    handle: cursor.field('handle').orNull((c) => c.string()),
    pid: cursor.field('pid').count(),
    parentPid: cursor.field('parent_pid').orNull((c) => c.count()),
    depth: cursor.field('depth').count(),
    name: cursor.field('name').string(),
    executable: cursor.field('executable').string(),
    arguments: cursor.field('arguments').list((c) => c.string()),
    startNanos: cursor.field('start_nanos').orNull((c) => c.nanos()),
    durationNanos: cursor.field('duration_nanos').nanos(),
    outlived: cursor.field('outlived').boolean(),
    exit: cursor.field('exit').orNull(exit),
    cpuNanos: cursor.field('cpu_nanos').orNull((c) => c.nanos()),
    usage: cursor.field('usage').orNull(usage),
  };
}

function diff(cursor: Cursor): Diff {
  return {
    schema: cursor.field('schema').string(),
    a: diffed(cursor.field('a')),
    b: diffed(cursor.field('b')),
    notes: cursor.field('notes').list((c) => c.string()),
    verdict: cursor.field('verdict').orNull((c) => c.string()),
    fixed: cursor.field('fixed').orNull(fixedPole),
    deltaNanos: cursor.field('delta_nanos').nanos(),
    operations: cursor.field('operations').list(operationDiff),
    truncated: operationsTruncated(cursor.field('truncated')),
    code: cursor.field('code').orNull(codeDiff),
  };
}

function diffed(cursor: Cursor): Diffed {
  return {
    recording: cursor.field('recording').string(),
    command: cursor.field('command').list((c) => c.string()),
    startUnixNano: cursor.field('start_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    host: cursor.field('host').string(),
    rateHz: cursor.field('rate_hz').count(),
  };
}

function fixedPole(cursor: Cursor): FixedPole {
  return {
    handle: cursor.field('handle').string(),
    name: cursor.field('name').string(),
    promisedNanos: cursor.field('promised_nanos').range(),
    leftNanos: cursor.field('left_nanos').orNull((c) => c.range()),
  };
}

function operationDiff(cursor: Cursor): OperationDiff {
  return {
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    resource: cursor.field('resource').orNull((c) => c.string()),
    fate: cursor.field('fate').oneOf(EVERY_FATE),
    deltaNanos: cursor.field('delta_nanos').nanos(),
    a: side(cursor.field('a')),
    b: side(cursor.field('b')),
    states: cursor.field('states').list(stateDiff),
  };
}

function side(cursor: Cursor): Side {
  return {
    count: cursor.field('count').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
    onPathCpuNanos: cursor.field('on_path_cpu_nanos').nanos(),
    handle: cursor.field('handle').orNull((c) => c.string()),
  };
}

function stateDiff(cursor: Cursor): StateDiff {
  return {
    state: cursor.field('state').oneOf(EVERY_DIFF_STATE),
    kind: cursor.field('kind').orNull((c) => c.oneOf(EVERY_WAIT_KIND)),
    text: cursor.field('text').string(),
    deltaNanos: cursor.field('delta_nanos').nanos(),
    function: cursor.field('function').orNull((c) => c.string()),
  };
}

function operationsTruncated(cursor: Cursor): OperationsTruncated {
  return {
    operations: cursor.field('operations').count(),
    deltaNanos: cursor.field('delta_nanos').nanos(),
  };
}

function codeDiff(cursor: Cursor): CodeDiff {
  return {
    sampledNanos: cursor.field('sampled_nanos').pair((c) => c.nanos()),
    functions: cursor.field('functions').list(functionChange),
    truncated: cursor.field('truncated').count(),
  };
}

function functionChange(cursor: Cursor): FunctionChange {
  return {
    function: cursor.field('function').string(),
    own: cursor.field('own').pair((c) => c.number()),
    total: cursor.field('total').pair((c) => c.number()),
    ownShare: cursor.field('own_share').pair((c) => c.number()),
  };
}

function services(cursor: Cursor): Services {
  return {
    services: cursor.field('services').list(service),
    truncated: cursor.field('truncated').boolean(),
  };
}

function service(cursor: Cursor): Service {
  return {
    name: cursor.field('name').string(),
    operations: cursor.field('operations').list((c) => c.string()),
  };
}

function traces(cursor: Cursor): Traces {
  return {
    traces: cursor.field('traces').list(traceRow),
    truncated: cursor.field('truncated').boolean(),
    next: cursor.field('next').orNull((c) => c.string()),
  };
}

function traceRow(cursor: Cursor): TraceRow {
  return {
    traceId: cursor.field('trace_id').string(),
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    startUnixNano: cursor.field('start_unix_nano').unixNano(),
    wallNanos: cursor.field('wall_nanos').nanos(),
    spans: cursor.field('spans').count(),
    errors: cursor.field('errors').count(),
    services: cursor.field('services').list(serviceSpans),
  };
}

function serviceSpans(cursor: Cursor): ServiceSpans {
  return {
    name: cursor.field('name').string(),
    spans: cursor.field('spans').count(),
  };
}

function tracesOfRecording(cursor: Cursor): TracesOfRecording {
  return {
    traces: cursor.field('traces').list(receivedTrace),
    truncated: cursor.field('truncated').boolean(),
  };
}

function receivedTrace(cursor: Cursor): ReceivedTrace {
  return {
    traceId: cursor.field('trace_id').string(),
    spans: cursor.field('spans').count(),
  };
}

function serviceMap(cursor: Cursor): ServiceMap {
  return {
    traces: cursor.field('traces').count(),
    truncated: cursor.field('truncated').boolean(),
    services: cursor.field('services').list(mappedService),
    calls: cursor.field('calls').list(serviceCalls),
  };
}

function mappedService(cursor: Cursor): MappedService {
  return {
    name: cursor.field('name').string(),
    requests: requests(cursor.field('requests')),
  };
}

function requests(cursor: Cursor): Requests {
  return {
    count: cursor.field('count').count(),
    errors: cursor.field('errors').count(),
    medianNanos: cursor.field('median_nanos').nanos(),
    p95Nanos: cursor.field('p95_nanos').nanos(),
    p99Nanos: cursor.field('p99_nanos').nanos(),
  };
}

function serviceCalls(cursor: Cursor): ServiceCalls {
  return {
    caller: cursor.field('caller').string(),
    callee: cursor.field('callee').string(),
    requests: requests(cursor.field('requests')),
  };
}

function sharedPoles(cursor: Cursor): SharedPoles {
  return {
    traces: cursor.field('traces').count(),
    truncated: cursor.field('truncated').boolean(),
    leftOut: cursor.field('left_out').count(),
    operations: cursor.field('operations').list(operationPoles),
    omitted: cursor.field('omitted').count(),
  };
}

function operationPoles(cursor: Cursor): OperationPoles {
  return {
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    traces: cursor.field('traces').count(),
    totalNanos: cursor.field('total_nanos').nanos(),
    takes: quantiles(cursor.field('takes')),
    longest: longestTrace(cursor.field('longest')),
    poles: cursor.field('poles').list(sharedPole),
    omitted: cursor.field('omitted').count(),
  };
}

function quantiles(cursor: Cursor): Quantiles {
  return {
    medianNanos: cursor.field('median_nanos').nanos(),
    p95Nanos: cursor.field('p95_nanos').nanos(),
    p99Nanos: cursor.field('p99_nanos').nanos(),
  };
}

function longestTrace(cursor: Cursor): LongestTrace {
  return {
    traceId: cursor.field('trace_id').string(),
    nanos: cursor.field('nanos').nanos(),
  };
}

function sharedPole(cursor: Cursor): SharedPole {
  return {
    service: cursor.field('service').string(),
    name: cursor.field('name').string(),
    part: cursor.field('part').orNull((c) => c.string()),
    traces: cursor.field('traces').count(),
    onPathNanos: cursor.field('on_path_nanos').nanos(),
    shareOfSlowest: cursor.field('share_of_slowest').orNull((c) => c.number()),
    shareOfOthers: cursor.field('share_of_others').orNull((c) => c.number()),
    savesNanos: cursor.field('saves_nanos').range(),
    without: quantiles(cursor.field('without')),
    withoutAtBest: quantiles(cursor.field('without_at_best')),
    mostIn: longestTrace(cursor.field('most_in')),
  };
}

function profileTypes(cursor: Cursor): ProfileTypes {
  return {
    fromUnixNano: cursor.field('from_unix_nano').unixNano(),
    toUnixNano: cursor.field('to_unix_nano').unixNano(),
    types: cursor.field('types').list(profileType),
  };
}

function profileType(cursor: Cursor): ProfileType {
  return {
    profileType: cursor.field('profile_type').string(),
    sampleType: cursor.field('sample_type').string(),
    unit: cursor.field('unit').string(),
    isState: cursor.field('is_state').boolean(),
    services: cursor.field('services').list((c) => c.string()),
  };
}

function profile(cursor: Cursor): Profile {
  return {
    query: cursor.field('query').string(),
    sampleType: cursor.field('sample_type').string(),
    unit: cursor.field('unit').string(),
    isState: cursor.field('is_state').boolean(),
    fromUnixNano: cursor.field('from_unix_nano').unixNano(),
    toUnixNano: cursor.field('to_unix_nano').unixNano(),
    total: cursor.field('total').number(),
    functions: cursor.field('functions').list(profileFunction),
    truncated: cursor.field('truncated').count(),
    calls: profileCalls(cursor.field('calls')),
  };
}

function profileFunction(cursor: Cursor): ProfileFunction {
  return {
    function: cursor.field('function').string(),
    file: cursor.field('file').string(),
    own: cursor.field('own').number(),
    total: cursor.field('total').number(),
  };
}

function profileCalls(cursor: Cursor): ProfileCalls {
  return {
    names: cursor.field('names').list((c) => c.string()),
    name: cursor.field('name').list((c) => c.count()),
    depth: cursor.field('depth').list((c) => c.count()),
    total: cursor.field('total').list((c) => c.number()),
    own: cursor.field('own').list((c) => c.number()),
  };
}

function profileDiff(cursor: Cursor): ProfileDiff {
  return {
    query: cursor.field('query').string(),
    sampleType: cursor.field('sample_type').string(),
    unit: cursor.field('unit').string(),
    isState: cursor.field('is_state').boolean(),
    before: profileSide(cursor.field('before')),
    after: profileSide(cursor.field('after')),
    functions: cursor.field('functions').list(functionChange),
    truncated: cursor.field('truncated').count(),
  };
}

function profileSide(cursor: Cursor): ProfileSide {
  return {
    fromUnixNano: cursor.field('from_unix_nano').unixNano(),
    toUnixNano: cursor.field('to_unix_nano').unixNano(),
    total: cursor.field('total').number(),
  };
}

function profileValues(cursor: Cursor): ProfileValues {
  return {
    query: cursor.field('query').string(),
    sampleType: cursor.field('sample_type').string(),
    unit: cursor.field('unit').string(),
    isState: cursor.field('is_state').boolean(),
    fromUnixNano: cursor.field('from_unix_nano').unixNano(),
    toUnixNano: cursor.field('to_unix_nano').unixNano(),
    stepNanos: cursor.field('step_nanos').nanos(),
    step: cursor.field('step').list((c) => c.count()),
    value: cursor.field('value').list((c) => c.number()),
    versions: cursor.field('versions').list(version),
  };
}

function version(cursor: Cursor): Version {
  return {
    label: cursor.field('label').string(),
    firstUnixNano: cursor.field('first_unix_nano').unixNano(),
  };
}

function serviceGrowth(cursor: Cursor): ServiceGrowth {
  return {
    fromUnixNano: cursor.field('from_unix_nano').unixNano(),
    toUnixNano: cursor.field('to_unix_nano').unixNano(),
    growing: cursor.field('growing').list(growingState),
    truncated: cursor.field('truncated').count(),
    steady: cursor.field('steady').count(),
    tooShort: cursor.field('too_short').count(),
  };
}

function growingState(cursor: Cursor): GrowingState {
  return {
    service: cursor.field('service').string(),
    query: cursor.field('query').string(),
    sampleType: cursor.field('sample_type').string(),
    unit: cursor.field('unit').string(),
    processes: cursor.field('processes').count(),
    perDay: cursor.field('per_day').number(),
    perDayRange: cursor.field('per_day_range').pair((c) => c.number()),
    values: cursor.field('values').pair((c) => c.number()),
    now: cursor.field('now').number(),
    isTakenBack: cursor.field('is_taken_back').boolean(),
    sinceUnixNano: cursor.field('since_unix_nano').orNull((c) => c.unixNano()),
    sinceWithinNanos: cursor.field('since_within_nanos').nanos(),
    firstUnixNano: cursor.field('first_unix_nano').unixNano(),
    overNanos: cursor.field('over_nanos').nanos(),
    version: cursor.field('version').orNull((c) => c.string()),
    functions: cursor.field('functions').list(growingFunction),
  };
}

function growingFunction(cursor: Cursor): GrowingFunction {
  return {
    function: cursor.field('function').string(),
    growth: cursor.field('growth').number(),
    share: cursor.field('share').number(),
    callers: cursor.field('callers').list((c) => c.string()),
  };
}

function kept(cursor: Cursor): Kept {
  return {
    recording: cursor.field('recording').string(),
    page: cursor.field('page').string(),
  };
}

function server(cursor: Cursor): Server {
  return {
    traces: cursor.field('traces').boolean(),
    otlpHttpPort: cursor.field('otlp_http_port').orNull((c) => c.count()),
    otlpGrpcPort: cursor.field('otlp_grpc_port').orNull((c) => c.count()),
    zipkinPort: cursor.field('zipkin_port').orNull((c) => c.count()),
    pyroscopePort: cursor.field('pyroscope_port').orNull((c) => c.count()),
    needsToken: cursor.field('needs_token').boolean(),
  };
}

function link(cursor: Cursor): Link {
  return {
    token: cursor.field('token').string(),
  };
}

export const decodeRecordings = (document: unknown): Recordings => recordings(new Cursor(document, 'recordings'));

export const decodeSummary = (document: unknown): Summary => summary(new Cursor(document, 'summary'));

export const decodePoles = (document: unknown): Poles => poles(new Cursor(document, 'poles'));

export const decodeWhatIf = (document: unknown): WhatIf => whatIf(new Cursor(document, 'whatIf'));

export const decodeTree = (document: unknown): Tree => tree(new Cursor(document, 'tree'));

export const decodeSpan = (document: unknown): Span => span(new Cursor(document, 'span'));

export const decodeSpans = (document: unknown): Spans => spans(new Cursor(document, 'spans'));

export const decodeFlame = (document: unknown): Flame => flame(new Cursor(document, 'flame'));

export const decodeFrame = (document: unknown): Frame => frame(new Cursor(document, 'frame'));

export const decodeSource = (document: unknown): Source => source(new Cursor(document, 'source'));

export const decodeThreads = (document: unknown): Threads => threads(new Cursor(document, 'threads'));

export const decodeLanes = (document: unknown): Lanes => lanes(new Cursor(document, 'lanes'));

export const decodeProcesses = (document: unknown): Processes => processes(new Cursor(document, 'processes'));

export const decodeDiff = (document: unknown): Diff => diff(new Cursor(document, 'diff'));

export const decodeServices = (document: unknown): Services => services(new Cursor(document, 'services'));

export const decodeTraces = (document: unknown): Traces => traces(new Cursor(document, 'traces'));

export const decodeTracesOfRecording = (document: unknown): TracesOfRecording => tracesOfRecording(new Cursor(document, 'tracesOfRecording'));

export const decodeServiceMap = (document: unknown): ServiceMap => serviceMap(new Cursor(document, 'serviceMap'));

export const decodeSharedPoles = (document: unknown): SharedPoles => sharedPoles(new Cursor(document, 'sharedPoles'));

export const decodeProfileTypes = (document: unknown): ProfileTypes => profileTypes(new Cursor(document, 'profileTypes'));

export const decodeProfile = (document: unknown): Profile => profile(new Cursor(document, 'profile'));

export const decodeProfileDiff = (document: unknown): ProfileDiff => profileDiff(new Cursor(document, 'profileDiff'));

export const decodeProfileValues = (document: unknown): ProfileValues => profileValues(new Cursor(document, 'profileValues'));

export const decodeServiceGrowth = (document: unknown): ServiceGrowth => serviceGrowth(new Cursor(document, 'serviceGrowth'));

export const decodeKept = (document: unknown): Kept => kept(new Cursor(document, 'kept'));

export const decodeServer = (document: unknown): Server => server(new Cursor(document, 'server'));

export const decodeLink = (document: unknown): Link => link(new Cursor(document, 'link'));
