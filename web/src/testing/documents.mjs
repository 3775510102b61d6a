/**
 * Documents of docs/formats/http-api.md, from a short description of a recording. Tests and browser stories read them; the
 * product does not contain them. The numbers of one recording are consistent: states sum to durations, samples to stacks, and the critical path to
 * the wall time.
 */

const MILLI = 1e6;
const PERIOD_NANOS = 1_001_001;
const FLAG = { error: 1, inferred: 2, process: 4, orphan: 8, clamped: 16, cycle: 32 };
/** Below this many samples, shares are rough (see http-api.md). */
const FEW_SAMPLES = 20;

/** Keys of `blocked_nanos`. */
const WAIT_KINDS = ['lock', 'queue', 'join', 'disk', 'network', 'sleep', 'page_fault', 'child', 'pipe', 'idle', 'other'];

/**
 * One span of a description. Times in milliseconds from the start of the run; `code` is `[stack, samples]`, `waits` is
 * `{ kind, syscall, millis, stack, function }`, the last two `null` if unknown.
 */
export function span(service, name, start, duration, options = {}, children = []) {
  return { service, name, start, duration, ...options, children };
}

/** All documents of one recording, each built on request. */
export function recordingDocuments(description) {
  const rows = flatten(description.roots);
  const wall = description.wall * MILLI;
  const path = timeOnPath(rows, criticalPath(rows, wall));
  const frames = frameTable(rows);
  const poles = polesOf(rows, path, frames, description);
  const base = { recording: description.recording };
  const sampleTotal = rows.reduce((sum, row) => sum + row.samples, 0) + (description.unlinked ?? 0);
  const links = linksOf(rows, 0, rows.length, description.unlinked ?? 0);
  const quality = (description.quality ?? []).map(titled);
  const exit = description.exit === undefined ? { code: 0, signal: null } : description.exit;
  const first = poles[0];

  const flame = (handle, time = 'on_cpu') => {
    const from = handle === null ? 0 : indexOf(rows, handle);
    if (from === null) return null;
    const to = handle === null ? rows.length : from + rows[from].subtree + 1;
    return {
      ...base,
      span: handle,
      ...flameOf(rows.slice(from, to), linksOf(rows, from, to), frames, handle === null ? 'the whole run' : rows[from].name, time),
    };
  };

  return {
    recording: {
      ...base,
      command: description.command,
      start_unix_nano: String(description.startUnixNano),
      wall_nanos: wall,
      exit,
      state: description.state ?? 'sealed',
      spans: rows.filter((row) => !(row.flags & FLAG.process)).length,
      samples: sampleTotal,
      tags: [],
      answer:
        first === undefined
          ? null
          : {
              service: first.service,
              name: first.name,
              context: first.context,
              saves_if_zero_nanos: first.saves_if_zero_nanos,
              part: null,
              function: first.top_frames[0]?.function ?? null,
              wait: null,
            },
    },
    summary: () => ({
      schema: 'longpole.summary/1',
      ...base,
      of: description.summarised ?? 'command',
      command: description.command,
      exit,
      start_unix_nano: String(description.startUnixNano),
      wall_nanos: wall,
      cpu_nanos: description.cpu === null ? null : Math.round(sampleTotal * PERIOD_NANOS * 1.02),
      host: 'atlas',
      mode: description.mode ?? 'user',
      rate_hz: description.mode === 'off' ? 0 : 999,
      // The first row of a file stands for the file.
      processes: rows.filter((row) => row.flags & FLAG.process).length - (description.summarised === 'file' ? 1 : 0),
      traces: description.traces ?? 1,
      of_requests: (description.traces ?? 1) > 20,
      spans: rows.filter((row) => !(row.flags & FLAG.process)).length,
      failed: { count: 0, first: null },
      samples: sampleTotal,
      links,
      states: pathStates(path, rows, wall),
      parallelism: { mean: 1, peak: 1, work_nanos: wall, span_nanos: wall, ...description.parallelism },
      deployment: deploymentOf(description, wall),
      usage: description.usage ?? [],
      poles: poles.slice(0, 3),
      functions: [],
      weight_nanos: sampleTotal * PERIOD_NANOS,
      attached: null,
      quality: [...quality, ...(description.notes ?? []).map(titled)],
      recorder: { cpu_nanos: 41_000_000, rss_bytes_max: 32_900_000 },
      truncated: { poles: Math.max(0, poles.length - 3), on_path_nanos: onPath(poles.slice(3)) },
      between_nanos: wall - onPath(poles),
      idle_nanos: 0,
    }),
    poles: () => ({
      ...base,
      of: description.summarised ?? 'command',
      wall_nanos: wall,
      poles,
      truncated: { poles: description.polesTruncated ?? 0, on_path_nanos: 0 },
      between_nanos: wall - onPath(poles),
      idle_nanos: 0,
      attached: false,
    }),
    tree: () => treeOf(rows, path, base, wall, description),
    /** The number of rows of the tree. */
    rows: rows.length,
    span: (handle) => {
      const target = handle.startsWith('p') ? poles[Number(handle.slice(1)) - 1]?.spans[0] : handle;
      const index = target === undefined ? null : indexOf(rows, target);
      return index === null ? null : spanDocument(rows, index, path, frames, base, wall);
    },
    flame,
    frame: (handle) => frameDocument(rows, frames, handle, base),
  };
}

/** Titles of notes, as the server words them. */
const TITLES = {
  stacks_truncated: 'stacks cut off',
  symbols_unreadable: 'no function names',
  limited_slots: 'concurrency limits',
  profiling_refused: 'profiling was not allowed',
  spans_invalid: '3 spans without a valid id',
  orphans: 'spans whose parent is not in the recording',
  cycles: 'spans that were their own ancestors',
  ends_clamped: 'spans that end before they start',
  recorder_killed: 'longpole was killed',
  resources_unmatched: '2 × Pulumi operations without a call among the spans',
};

/** A note with its title. */
function titled(note) {
  return { ...note, title: TITLES[note.code] };
}

const DEPLOYMENT = ['cloud_wait', 'provider', 'engine', 'language_host', 'plugin_start', 'state_backend', 'compile'];

/** The described parts in milliseconds; the rest of the run is idle. */
/** Time of poles on the path. */
function onPath(poles) {
  return poles.reduce((sum, pole) => sum + pole.on_path_nanos, 0);
}

function deploymentOf({ deployment }, wall) {
  if (deployment === undefined) return null;
  const parts = DEPLOYMENT.map((part) => [`${part}_nanos`, (deployment[part] ?? 0) * MILLI]);
  return { ...Object.fromEntries(parts), idle_nanos: parts.reduce((rest, [, nanos]) => rest - nanos, wall) };
}

function flatten(roots) {
  const rows = [];
  const stack = roots.map((item) => ({ item, parent: -1, depth: 0 })).reverse();
  while (stack.length > 0) {
    const { item, parent, depth } = stack.pop();
    const index = rows.length;
    const stacks = item.code ?? [];
    rows.push({
      ...item,
      index,
      parent,
      depth,
      subtree: 0,
      start: Math.round(item.start * MILLI),
      duration: Math.round(item.duration * MILLI),
      end: Math.round((item.start + item.duration) * MILLI),
      flags: item.flags ?? 0,
      stacks,
      waits: (item.waits ?? []).map(({ millis, ...wait }) => ({ ...wait, nanos: Math.round(millis * MILLI) })),
      samples: stacks.reduce((sum, [, count]) => sum + count, 0),
      childRows: [],
      // Work below the work on a cloud resource works on it too.
      urn: item.urn ?? rows[parent]?.urn ?? null,
    });
    for (const child of [...item.children].reverse()) stack.push({ item: child, parent: index, depth: depth + 1 });
  }
  for (let index = rows.length - 1; index > 0; index--) {
    const { parent, subtree } = rows[index];
    if (parent >= 0) rows[parent].subtree += subtree + 1;
  }
  for (const { parent, index } of rows) if (parent >= 0) rows[parent].childRows.push(index);
  return rows;
}

function indexOf(rows, handle) {
  const index = Number(/^s(\d+)$/.exec(handle)?.[1]) - 1;
  return index >= 0 && index < rows.length ? index : null;
}

/** Backwards from the end: the parent waited for the child that ended last, that one for the last end before its start, and so on. */
function criticalPath(rows, wall) {
  const pieces = [];
  if (rows.length === 0) return pieces;
  const walk = (index, from, until) => {
    const row = rows[index];
    let time = Math.min(row.end, until);
    const children = [...row.childRows].sort((a, b) => rows[b].end - rows[a].end);
    for (const child of children) {
      const { start, end } = rows[child];
      if (end > time || start < from) continue;
      if (end < time) pieces.push({ span: index, start: end, end: time });
      walk(child, start, end);
      time = start;
    }
    if (row.start < time) pieces.push({ span: index, start: row.start, end: time });
  };
  walk(0, 0, wall);
  return pieces.reverse();
}

function frameTable(rows) {
  const table = new Map();
  for (const row of rows) {
    for (const [stack, count] of row.stacks) {
      const seen = new Set();
      for (const [position, text] of stack.entries()) {
        const [name, place = ''] = text.split(' @ ');
        const known = table.get(name) ?? {
          function: name,
          file: place.split(':')[0],
          line: Number(place.split(':')[1] ?? 0),
          self: 0,
          total: 0,
        };
        table.set(name, known);
        if (!seen.has(name)) known.total += count;
        seen.add(name);
        if (position === stack.length - 1) known.self += count;
      }
    }
    // Functions that only wait have no samples, but a handle.
    for (const text of row.waits.flatMap(({ stack }) => stack ?? [])) {
      const [name, place = ''] = text.split(' @ ');
      if (!table.has(name)) {
        table.set(name, { function: name, file: place.split(':')[0], line: Number(place.split(':')[1] ?? 0), self: 0, total: 0 });
      }
    }
  }
  const list = [...table.values()].sort((a, b) => b.total - a.total || a.function.localeCompare(b.function));
  for (const [index, frame] of list.entries()) frame.handle = `f${index + 1}`;
  return table;
}

const nameOf = (text) => text.split(' @ ')[0];

function topFrames(rows, from, to, frames, limit = 8) {
  const totals = new Map();
  for (const row of rows.slice(from, to)) {
    for (const [stack, count] of row.stacks) {
      for (const name of new Set(stack.map(nameOf))) {
        const entry = totals.get(name) ?? { self: 0, total: 0 };
        totals.set(name, entry);
        entry.total += count;
      }
      totals.get(nameOf(stack[stack.length - 1])).self += count;
    }
  }
  return [...totals]
    .filter(([, { self }]) => self > 0)
    .sort(([, a], [, b]) => b.self - a.self)
    .slice(0, limit)
    .map(([name, { self, total }]) => {
      const { handle, file, line } = frames.get(name);
      return {
        handle,
        function: name,
        file,
        line,
        runtime: null,
        whose: 'program',
        self_nanos: self * PERIOD_NANOS,
        total_nanos: total * PERIOD_NANOS,
        samples: total,
        lines: [],
      };
    });
}

function linksOf(rows, from, to, none = 0) {
  const links = { record: 0, journal: 0, label: 0, inferred: 0, ambiguous: 0, none };
  for (const row of rows.slice(from, to)) links[row.evidence ?? (row.flags & FLAG.process ? 'inferred' : 'record')] += row.samples;
  return links;
}

/** On a CPU as long as the samples, in a child as long as children cover it, blocked as described; the rest is unaccounted. */
function statesOf(rows, index) {
  const row = rows[index];
  let covered = 0;
  let reach = row.start;
  for (const child of [...row.childRows].sort((a, b) => rows[a].start - rows[b].start)) {
    const from = Math.max(reach, rows[child].start);
    const to = Math.min(row.end, rows[child].end);
    if (to > from) covered += to - from;
    reach = Math.max(reach, to);
  }
  const onCpu = Math.min(row.duration - covered, row.samples * PERIOD_NANOS);
  let rest = row.duration - covered - onCpu;
  const blocked = noWaits();
  for (const { kind, nanos } of row.waits) {
    const part = Math.min(rest, nanos);
    blocked[kind] += part;
    rest -= part;
  }
  return { ...noStates(), on_cpu_nanos: onCpu, in_child_nanos: covered, blocked_nanos: blocked, unaccounted_nanos: rest, cpu_nanos: onCpu };
}

function noStates() {
  const parts = ['on_cpu', 'runnable', 'in_child', 'blocked_unseen', 'awaiting', 'remote', 'unaccounted', 'cpu'];
  const nothing = Object.fromEntries(parts.map((part) => [`${part}_nanos`, 0]));
  return { ...nothing, blocked_nanos: noWaits(), exact: false, evidence: 'samples' };
}

function noWaits() {
  return Object.fromEntries(WAIT_KINDS.map((kind) => [kind, 0]));
}

/** The states on the path of these rows: each row's own states, in proportion. */
function statesOnPath(rows, indices, path) {
  const states = noStates();
  for (const index of indices) {
    const own = statesOf(rows, index);
    const onPath = onPathOf(path, index);
    const share = onPath / Math.max(1, rows[index].duration - own.in_child_nanos);
    const onCpu = Math.round(own.on_cpu_nanos * share);
    const blocked = WAIT_KINDS.map((kind) => Math.round(own.blocked_nanos[kind] * share));
    states.on_cpu_nanos += onCpu;
    for (const [place, kind] of WAIT_KINDS.entries()) states.blocked_nanos[kind] += blocked[place];
    states.unaccounted_nanos += onPath - onCpu - blocked.reduce((sum, nanos) => sum + nanos, 0);
  }
  return states;
}

/** Path time in each span itself, and in all spans before it in pre-order, so that a sum over a subtree is one subtraction. */
function timeOnPath(rows, path) {
  const own = new Float64Array(rows.length);
  for (const piece of path) own[piece.span] += piece.end - piece.start;
  const before = new Float64Array(rows.length + 1);
  for (let index = 0; index < rows.length; index++) before[index + 1] = before[index] + own[index];
  return { pieces: path, own, before };
}

function onPathOf(path, index) {
  return path.own[index];
}

function onPathBelow(path, rows, index) {
  return path.before[index + rows[index].subtree + 1] - path.before[index];
}

/** The states of the whole path; time outside every span is unaccounted. */
function pathStates(path, rows, wall) {
  const indices = [...new Set(path.pieces.map((piece) => piece.span))];
  const states = statesOnPath(rows, indices, path);
  return { ...states, unaccounted_nanos: states.unaccounted_nanos + wall - indices.reduce((sum, index) => sum + onPathOf(path, index), 0) };
}

function savingsOf(rows, index, path) {
  const row = rows[index];
  const whole = onPathBelow(path, rows, index);
  const own = onPathOf(path, index);
  const high = Math.round(row.saves === undefined ? whole * 0.98 : row.saves * MILLI);
  const declared = row.declared === true;
  const low = declared ? high : Math.round(high * (row.lowShare ?? 0.6));
  const ownHigh = Math.min(high, own);
  return {
    saves_if_zero_nanos: [low, high],
    saves_if_half_nanos: [Math.round(low / 2), Math.round(high / 2)],
    saves_own_nanos: [declared ? ownHigh : Math.min(low, ownHigh), ownHigh],
    evidence: declared ? 'declared' : 'inferred',
    on_path_nanos: own,
  };
}

function polesOf(rows, path, frames, description) {
  const byGroup = new Map();
  for (const index of new Set(path.pieces.map((piece) => piece.span))) {
    const row = rows[index];
    if (row.flags & FLAG.process) continue;
    const key = `${row.service}\n${row.name}\n${row.urn ?? (row.parent < 0 ? '' : rows[row.parent].name)}`;
    byGroup.set(key, byGroup.get(key) ?? []);
    byGroup.get(key).push(index);
  }
  const add = (a, b) => [a[0] + b[0], a[1] + b[1]];
  const poles = [...byGroup.values()]
    .map((indices) => {
      const row = rows[indices[0]];
      const savings = indices.map((index) => savingsOf(rows, index, path));
      const sum = (key) => savings.map((saving) => saving[key]).reduce(add, [0, 0]);
      const onPath = indices.reduce((total, index) => total + onPathOf(path, index), 0);
      const states = statesOnPath(rows, indices, path);
      const samples = indices.reduce((sum, index) => sum + rows[index].samples, 0);
      const share = onPath > 0 ? states.on_cpu_nanos / onPath : 0;
      const top = indices.length === 1 ? topFrames(rows, indices[0], indices[0] + 1, frames, 5) : [];
      const percent = `${Math.round(share * 100)} %`;
      const waiting = rows[indices[0]].waits[0]?.function ?? null;
      const locked = onPath > 0 ? states.blocked_nanos.lock / onPath : 0;
      const whole = indices.reduce((total, index) => total + rows[index].duration, 0);
      const onlyCalls = samples === 0 && onPath < whole / 10 && indices.some((index) => rows[index].childRows.length > 0);
      const plain = (text) => ({ kind: 'text', text });
      const reason =
        description.mode === 'off' || description.mode === 'refused'
          ? { code: 'no_samples', pieces: [plain('no samples')] }
          : onlyCalls
            ? { code: 'few_samples', pieces: [plain('hardly more than what it calls')] }
            : share > 0.6 && top[0] !== undefined
              ? { code: 'on_cpu', pieces: [plain(`${percent} on-CPU, most of it in `), { kind: 'function', text: top[0].function }] }
              : share > 0.2
                ? { code: 'mixed', pieces: [plain(`${percent} on-CPU; ${100 - Math.round(share * 100)} % unaccounted`)] }
                : locked > 0.6
                  ? {
                      code: 'waits',
                      pieces: [plain(`${Math.round(locked * 100)} % blocked on a lock, in `), { kind: 'waiting_function', text: waiting }],
                    }
                  : { code: 'waits', pieces: [plain(`${100 - Math.round(share * 100)} % unaccounted, ${percent} on-CPU`)] };
      return {
        service: row.service,
        name: row.name,
        context: row.urn !== null ? titleOfUrn(row.urn) : row.parent < 0 ? null : rows[row.parent].name,
        count: indices.length,
        spans: indices.map((index) => `s${index + 1}`),
        truncated: { spans: 0 },
        on_path_nanos: onPath,
        saves_if_zero_nanos: sum('saves_if_zero_nanos'),
        saves_if_half_nanos: sum('saves_if_half_nanos'),
        saves_own_nanos: sum('saves_own_nanos'),
        evidence: savings.every((saving) => saving.evidence === 'declared') ? 'declared' : 'inferred',
        states,
        saves_with_those_before_nanos: null,
        reason: {
          ...reason,
          text: reason.pieces.map(({ text }) => text).join(''),
          function: reason.pieces.find(({ kind }) => kind !== 'text')?.text ?? null,
          mostly_in: null,
        },
        callee: null,
        blocked_by: null,
        contains: null,
        contains_all: false,
        limited_by: indices.length === 1 ? limitOf(rows, row) : null,
        resource: row.urn,
        top_frames: top,
        samples,
        weight_nanos: samples * PERIOD_NANOS,
        few_samples: samples < FEW_SAMPLES,
      };
    })
    .sort((a, b) => b.saves_own_nanos[1] - a.saves_own_nanos[1])
    .map((pole, index) => ({ handle: `p${index + 1}`, ...pole }));
  nameContained(rows, poles);
  return poles;
}

/** For each pole, the one that saves most among those with all spans below its own. */
function nameContained(rows, poles) {
  const poleOf = new Map(poles.flatMap((pole) => pole.spans.map((handle) => [indexOf(rows, handle), pole])));
  const largestFirst = [...poles].sort((a, b) => b.saves_if_zero_nanos[1] - a.saves_if_zero_nanos[1]);
  for (const inner of largestFirst) {
    const below = new Map();
    for (const handle of inner.spans) {
      const outers = new Set();
      for (let above = rows[indexOf(rows, handle)].parent; above >= 0; above = rows[above].parent) outers.add(poleOf.get(above));
      for (const outer of outers) below.set(outer, (below.get(outer) ?? 0) + 1);
    }
    for (const [outer, count] of below) {
      if (outer !== undefined && outer !== inner && count === inner.spans.length) {
        outer.contains ??= inner.handle;
        outer.contains_all = true;
      }
    }
  }
}

/** The described operation that ends last if a row takes no time. */
function limitOf(rows, row) {
  if (row.limitedBy === undefined) return null;
  const index = rows.findIndex((other) => other.name === row.limitedBy);
  return { handle: `s${index + 1}`, name: row.limitedBy, pole: null, within: null };
}

/** `modern:index:Step database` of `urn:pulumi:dev::shop::modern:index:Step::database`. */
function titleOfUrn(urn) {
  const [, , type, name] = urn.split('::');
  return `${type} ${name}`;
}

function treeOf(rows, path, base, wall, description) {
  const services = [...new Set(rows.map((row) => row.service))];
  const names = [...new Set(rows.map((row) => row.name))];
  const resources = [...new Set(rows.flatMap((row) => row.urn ?? []).map(titleOfUrn))];
  const serviceOf = new Map(services.map((service, index) => [service, index]));
  const numberOf = new Map(names.map((name, index) => [name, index]));
  return {
    ...base,
    origin_unix_nano: String(description.startUnixNano),
    wall_nanos: wall,
    services,
    names,
    resources,
    spans: {
      parent: rows.map((row) => row.parent),
      depth: rows.map((row) => row.depth),
      subtree: rows.map((row) => row.subtree),
      start_nanos: rows.map((row) => row.start),
      duration_nanos: rows.map((row) => row.duration),
      service: rows.map((row) => serviceOf.get(row.service)),
      name: rows.map((row) => numberOf.get(row.name)),
      resource: rows.map((row) => (row.urn === null ? -1 : resources.indexOf(titleOfUrn(row.urn)))),
      flags: rows.map((row) => row.flags),
      on_path_nanos: [...path.own],
      samples: rows.map((row) => row.samples),
    },
    critical_path: {
      span: path.pieces.map((piece) => piece.span),
      start_nanos: path.pieces.map((piece) => piece.start),
      end_nanos: path.pieces.map((piece) => piece.end),
    },
    notes: (description.notes ?? []).map(titled),
  };
}

const hex = (seed, digits) =>
  [...Array(digits)]
    .map((_, index) => (((seed + 3) * 2654435761 * (index + 7)) >>> 11) % 16)
    .map((digit) => digit.toString(16))
    .join('');

function spanDocument(rows, index, path, frames, base) {
  const row = rows[index];
  const end = index + row.subtree + 1;
  const isProcess = (row.flags & FLAG.process) !== 0;
  const { on_path_nanos, ...savings } = savingsOf(rows, index, path);
  // Links, functions and `few_samples` count the span's own samples.
  const withDescendants = rows.slice(index, end).reduce((sum, other) => sum + other.samples, 0);
  return {
    ...base,
    handle: `s${index + 1}`,
    pole: null,
    part: null,
    trace_id: isProcess ? null : hex(1, 32),
    span_id: isProcess ? null : hex(index + 20, 16),
    parent: row.parent < 0 ? null : { handle: `s${row.parent + 1}`, edge: row.flags & FLAG.inferred ? 'inferred' : 'declared' },
    service: row.service,
    name: row.name,
    kind: isProcess ? 'internal' : (row.kind ?? 'internal'),
    status: row.flags & FLAG.error ? { code: 'error', message: row.message ?? 'failed' } : { code: 'unset', message: '' },
    start_nanos: row.start,
    duration_nanos: row.duration,
    process: row.process === undefined ? null : { exit: null, usage: null, ...row.process },
    attributes: row.attributes ?? [],
    resource: [
      { key: 'service.name', value: row.service },
      { key: 'telemetry.sdk.language', value: 'rust' },
    ],
    events: row.events ?? [],
    links: (row.linksTo ?? []).map((name) => {
      const target = rows.findIndex((other) => other.name === name);
      return { trace_id: hex(1, 32), span_id: hex(target + 20, 16), handle: target < 0 ? null : `s${target + 1}` };
    }),
    states: statesOf(rows, index),
    states_follow_threads: false,
    states_with_descendants: statesOf(rows, index),
    waits: row.waits.map(({ kind, syscall, function: name, nanos }) => ({
      kind,
      syscall,
      function: name,
      file: '',
      line: 0,
      nanos,
      threads: 1,
      in_other_threads: false,
      places: [],
      blocked_by: null,
    })),
    callee: null,
    samples: { own: row.samples, with_descendants: withDescendants, links: linksOf(rows, index, index + 1) },
    few_samples: row.samples < FEW_SAMPLES,
    same_name: null,
    savings: { ...savings, on_path_nanos },
    top_frames: topFrames(rows, index, index + 1, frames),
    children: row.childRows.length,
    is_run: index === 0,
    is_process: isProcess,
  };
}

function flameOf(rows, links, frames, title, time) {
  const sampled =
    time === 'off_cpu' ? [] : rows.flatMap((row) => row.stacks.map(([stack, count]) => [stack, count, count * PERIOD_NANOS, null]));
  const waiting = time === 'on_cpu' ? [] : rows.flatMap((row) => row.waits);
  const waited = waiting.flatMap(({ stack, nanos, kind }) => (stack === null ? [] : [[stack, 1, nanos, kind]]));
  const nodeNamed = (name) => ({ name, self: 0, total: 0, waits: new Map(), children: new Map() });
  const root = nodeNamed(null);
  let samples = 0;
  const pass = (node, nanos, kind) => {
    node.total += nanos;
    if (kind !== null) node.waits.set(kind, (node.waits.get(kind) ?? 0) + nanos);
  };
  for (const [stack, count, nanos, kind] of [...sampled, ...waited]) {
    samples += count;
    pass(root, nanos, kind);
    let node = root;
    for (const text of stack) {
      const name = nameOf(text);
      const child = node.children.get(name) ?? nodeNamed(name);
      node.children.set(name, child);
      pass(child, nanos, kind);
      node = child;
    }
    node.self += nanos;
  }
  const longestFirst = (waits) => [...waits].sort((a, b) => b[1] - a[1]);
  const waits = longestFirst(root.waits).map(([kind, nanos]) => ({ kind, nanos }));
  const list = [];
  const numberOf = new Map();
  const nodes = {
    parent: [],
    depth: [],
    frame: [],
    offset_nanos: [],
    total_nanos: [],
    self_nanos: [],
    waited_nanos: [],
    wait: [],
    line: [],
  };
  const stack = [{ node: root, parent: -1, depth: 0, offset: 0 }];
  while (stack.length > 0) {
    const { node, parent, depth, offset } = stack.pop();
    const index = nodes.parent.length;
    if (node.name !== null && !numberOf.has(node.name)) {
      numberOf.set(node.name, list.length);
      const { handle, file, line } = frames.get(node.name);
      const unnamed = /\+0x/.test(node.name) ? 'no symbols in the binary' : null;
      list.push({ handle, function: node.name, file, line, reason: unnamed, runtime: null, whose: 'program' });
    }
    nodes.parent.push(parent);
    nodes.depth.push(depth);
    nodes.frame.push(node.name === null ? -1 : numberOf.get(node.name));
    nodes.offset_nanos.push(offset);
    nodes.total_nanos.push(node.total);
    nodes.self_nanos.push(node.self);
    nodes.waited_nanos.push([...node.waits.values()].reduce((sum, nanos) => sum + nanos, 0));
    nodes.wait.push(waits.findIndex(({ kind }) => kind === longestFirst(node.waits)[0]?.[0]));
    nodes.line.push(node.name === null ? 0 : frames.get(node.name).line);
    let next = offset;
    const children = [...node.children.values()].sort((a, b) => b.total - a.total || a.name.localeCompare(b.name));
    const pending = children.map((child) => {
      const entry = { node: child, parent: index, depth: depth + 1, offset: next };
      next += child.total;
      return entry;
    });
    stack.push(...pending.reverse());
  }
  return {
    name: null,
    part_of: null,
    trace_id: null,
    title,
    time,
    samples,
    left_out_waits: 0,
    cut_samples: 0,
    weight_nanos: root.total,
    few_samples: time !== 'off_cpu' && samples < FEW_SAMPLES,
    same_name: null,
    links: time === 'off_cpu' ? { record: 0, journal: 0, label: 0, inferred: 0, ambiguous: 0, none: 0 } : links,
    waits,
    frames: list,
    nodes,
  };
}

function frameDocument(rows, frames, handle, base) {
  const found = [...frames.values()].find((frame) => frame.handle === handle);
  if (found === undefined) return null;
  const spans = rows
    .map((row) => {
      const samples = row.stacks
        .filter(([stack]) => stack.some((text) => nameOf(text) === found.function))
        .reduce((sum, [, count]) => sum + count, 0);
      return {
        handle: `s${row.index + 1}`,
        service: row.service,
        name: row.name,
        samples,
        total_nanos: samples * PERIOD_NANOS,
        waited_nanos: 0,
        share: row.samples > 0 ? samples / row.samples : 0,
        waited_share: 0,
      };
    })
    .filter((entry) => entry.samples > 0)
    .sort((a, b) => b.samples - a.samples);
  return {
    ...base,
    handle,
    function: found.function,
    file: found.file,
    runtime: null,
    whose: 'program',
    samples: found.total,
    total_nanos: found.total * PERIOD_NANOS,
    self_nanos: found.self * PERIOD_NANOS,
    waits: 0,
    waited_nanos: 0,
    waited_for: [],
    lines: [],
    operations: [],
    ambiguous_samples: 0,
    unlinked_waited_nanos: 0,
    spans: spans.slice(0, 100),
    unlinked_samples: 0,
    truncated: { spans: Math.max(0, spans.length - 100) },
  };
}

export { FLAG };
