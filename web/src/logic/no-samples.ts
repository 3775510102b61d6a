/** Why there are no samples to show, and what to do. */

import type { FlameTime, Part, Quality, Span, Summary } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { formatDuration } from './format';
import { blockedNanos } from './states';

export interface NoSamples {
  readonly title: string;
  readonly text: string;
}

/** Whether the run was sampled. If it was not, on-CPU time is unknown rather than zero. */
export function wasSampled(summary: Summary): boolean {
  return summary.mode !== 'off' && summary.mode !== 'refused';
}

function ofRun(summary: Summary, notes: readonly Quality[]): NoSamples | null {
  if (summary.of === 'trace') {
    return {
      title: 'A trace holds no samples',
      text: 'It only has spans. Record a service with “longpole run” to see the code behind each span.',
    };
  }
  if (summary.of === 'file' && summary.spans > 0) {
    return {
      title: 'The file holds no samples',
      text: 'It only has spans. Record the command with “longpole run” to see the code behind each span.',
    };
  }
  if (summary.mode === 'off') {
    return {
      title: 'Profiling was off',
      text: 'Run the command again without --no-profile to see the code behind each span.',
    };
  }
  if (summary.mode === 'refused') {
    const detail = notes.find((note) => note.code === 'profiling_refused')?.detail ?? '';
    return {
      title: 'Profiling was not allowed',
      text: detail === '' ? 'The kernel did not allow profiling on this machine.' : `${detail}.`,
    };
  }
  return null;
}

/** Why there is no wait to show for a time that lasted `of`. */
function noWaits(of: string, blocked: Nanos): NoSamples {
  return {
    title: 'No waits were sampled',
    text:
      blocked > 0
        ? `Blocked for ${formatDuration(blocked)} of ${of}, but longpole did not sample the stacks of those waits.`
        : 'No wait was recorded here. Idle workers do not count.',
  };
}

/** Why the whole run has no samples, or no waits if `time` is off-CPU. */
export function whyRunHasNoSamples(summary: Summary, notes: readonly Quality[], time: FlameTime): NoSamples {
  const run = ofRun(summary, notes);
  if (run === null && time === 'off_cpu') return noWaits(formatDuration(summary.wallNanos), blockedNanos(summary.states));
  return (
    run ?? {
      title: 'This run has no samples',
      text: `It used ${summary.cpuNanos === null ? 'little CPU time' : `${formatDuration(summary.cpuNanos)} of CPU time`}, too little for a sample at ${summary.rateHz} samples a second.`,
    }
  );
}

/** Why a range of time or a thread has no samples, or no waits if `time` is off-CPU. */
export function whyExcerptHasNoSamples(summary: Summary, time: FlameTime, isOneThread: boolean): NoSamples {
  const run = ofRun(summary, []);
  if (run !== null) return run;
  return time === 'off_cpu'
    ? {
        title: 'No waits were sampled here',
        text: isOneThread
          ? 'The thread did not wait here for 5ms or longer, or longpole did not sample its stack.'
          : 'No thread waited here for 5ms or longer, or longpole did not sample its stack.',
      }
    : {
        title: 'No samples here',
        text: isOneThread
          ? 'The thread did not run here, or not long enough for a sample.'
          : 'No thread ran here, or not long enough for a sample.',
      };
}

/** Why a span has no samples, or no waits if `time` is off-CPU. */
export function whySpanHasNoSamples(span: Span, summary: Summary, notes: readonly Quality[], time: FlameTime): NoSamples {
  const run = ofRun(summary, notes);
  if (run !== null) return run;
  const blocked = blockedNanos(span.states);
  if (time === 'off_cpu') return noWaits(formatDuration(span.durationNanos), blocked);
  const period = (summary.rateHz > 0 ? 1e9 / summary.rateHz : 1e9) as Nanos;
  if (span.durationNanos < 2 * period) {
    return {
      title: 'Too short for a sample',
      text: `It took ${formatDuration(span.durationNanos)}. At ${summary.rateHz} samples a second, there is one sample per ${formatDuration(period)} of CPU time.`,
    };
  }
  if (span.states.onCpuNanos > 2 * period) {
    return {
      title: 'No sample was matched to this span',
      text: `Its threads ran for ${formatDuration(span.states.onCpuNanos)}, but no sample was matched to it. Data quality lists what was lost.`,
    };
  }
  if (blocked > span.durationNanos / 2) {
    return {
      title: 'It waited',
      text: `It was blocked for ${formatDuration(blocked)} of ${formatDuration(span.durationNanos)}, so it ran little or no code. Switch the flame graph to “off-CPU” to see where it waited.`,
    };
  }
  if (span.process === null && span.states.inChildNanos < span.durationNanos / 2) {
    return {
      title: 'No sample was matched to this span',
      text: 'Either it only waited, or the recorded command did not start its process, so longpole did not sample it.',
    };
  }
  if (span.states.unaccountedNanos > span.durationNanos / 2) {
    return {
      title: 'No sample was matched to this span',
      text: `longpole does not know what its threads did for ${formatDuration(span.states.unaccountedNanos)} of ${formatDuration(span.durationNanos)}.`,
    };
  }
  return {
    title: 'It used almost no CPU time of its own',
    text: `It was on a CPU for ${formatDuration(span.states.onCpuNanos)} of ${formatDuration(span.durationNanos)}, too little for a sample to show its code.`,
  };
}

/** Why a part of a span's own time has no samples, or no waits if `time` is off-CPU. A part that waits has none by what it is: nothing is lost. */
export function whyPartHasNoSamples(part: Part, span: Span, summary: Summary, notes: readonly Quality[], time: FlameTime): NoSamples {
  const run = ofRun(summary, notes);
  if (run !== null) return run;
  if (part.kind === 'waits' && time === 'on_cpu') {
    return {
      title: 'This part waited',
      text: `${part.text} is waiting time, so it has no on-CPU samples. Switch the flame graph to “off-CPU”.`,
    };
  }
  return time === 'off_cpu'
    ? { title: 'No waits were sampled in this part', text: `“wall” shows what ${span.name} did while this part was on the critical path.` }
    : {
        title: 'No samples in this part',
        text: `The part is too short for a sample; select ${span.handle} in the trace for all of ${span.name}.`,
      };
}
