/** Why there are no samples to show: always one of a few true sentences, with what to do. */

import type { QualityNote, Span, Summary } from '../api/types';
import type { Nanos } from '../base/brand';
import { formatDuration } from './format';

export interface NoSamples {
  readonly title: string;
  readonly text: string;
}

/** Whether samples were taken at all. Where they were not, on-CPU time is not nothing but unknown. */
export function wasSampled(summary: Summary): boolean {
  return summary.mode !== 'off' && summary.mode !== 'refused';
}

/** Whether it came from a file of another tool. A command that is called so would have a process. */
export function isImport(summary: Summary): boolean {
  return summary.command[0] === 'import' && summary.processes === 0;
}

function ofRun(summary: Summary, notes: readonly QualityNote[]): NoSamples | null {
  if (isImport(summary)) {
    return {
      title: 'The file holds no samples',
      text: 'It has spans alone. Record the command with longpole run to see the code behind each span.',
    };
  }
  if (summary.mode === 'off') {
    return {
      title: 'Samples were not recorded',
      text: 'They were switched off for this run. Run the command again without --no-profile to see the code behind each span.',
    };
  }
  if (summary.mode === 'refused') {
    const detail = notes.find((note) => note.code === 'profiling_refused')?.detail ?? '';
    return {
      title: 'Samples were refused',
      text: detail === '' ? 'The kernel did not permit sampling on this machine.' : `${detail}.`,
    };
  }
  return null;
}

/** Why the whole run has no samples. */
export function whyRunHasNoSamples(summary: Summary, notes: readonly QualityNote[]): NoSamples {
  return (
    ofRun(summary, notes) ?? {
      title: 'Nothing was caught on a CPU',
      text: `The run used ${summary.cpuNanos === null ? 'little' : formatDuration(summary.cpuNanos)} of CPU time, and no sample fell into it at ${summary.rateHz} samples a second.`,
    }
  );
}

/** Why a span has no samples. */
export function whySpanHasNoSamples(span: Span, summary: Summary, notes: readonly QualityNote[]): NoSamples {
  const run = ofRun(summary, notes);
  if (run !== null) return run;
  const period = (summary.rateHz > 0 ? 1e9 / summary.rateHz : 1e9) as Nanos;
  if (span.durationNanos < 2 * period) {
    return {
      title: 'Too short for a sample',
      text: `It took ${formatDuration(span.durationNanos)}; at ${summary.rateHz} samples a second one falls every ${formatDuration(period)} of CPU time.`,
    };
  }
  if (span.states.onCpuNanos > 2 * period) {
    return {
      title: 'No sample was tied to this span',
      text: `Its threads ran for ${formatDuration(span.states.onCpuNanos)}, but no sample carries it. Data quality says what was lost.`,
    };
  }
  if (span.process === null && span.states.inChildNanos < span.durationNanos / 2) {
    return {
      title: 'No sample carries this span',
      text: 'Either it only waited, or the process that sent it was not started by this run and was not sampled.',
    };
  }
  return {
    title: 'It used no CPU time of its own',
    text: `Of ${formatDuration(span.durationNanos)} it was running for ${formatDuration(span.states.onCpuNanos)}: the rest it waited, so there is no code to show.`,
  };
}
