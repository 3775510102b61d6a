import type { Span, Usage } from '../../api/types.gen';
import { formatBytes, formatCount, formatDuration } from '../../logic/format';
import { memoryChart } from '../../logic/memory-chart';
import css from './recording.module.css';

/** Units of the drawing, which stretches to the available room. */
const WIDTH = 1000;
const HEIGHT = 100;

function MemoryChart({ usage, span }: { readonly usage: Usage; readonly span: Span }) {
  const chart = memoryChart(usage.readings, span.startNanos, (span.startNanos + span.durationNanos) as typeof span.startNanos);
  if (chart === null) return null;
  const { area, start, end, topBytes } = chart;
  const peak = usage.peakResidentBytes === null ? '' : `, at most ${formatBytes(usage.peakResidentBytes)}`;
  return (
    <figure className={css.memory} aria-label="Memory over time">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Memory from ${formatDuration(start)} to ${formatDuration(end)}${peak}`}
      >
        <rect
          className={css.memorySpan}
          x={chart.span.from * WIDTH}
          width={Math.max(1, (chart.span.to - chart.span.from) * WIDTH)}
          y={0}
          height={HEIGHT}
        />
        <polygon className={css.memoryArea} points={area.map(([x, y]) => `${x * WIDTH},${y * HEIGHT}`).join(' ')} />
      </svg>
      <figcaption>
        <span>{formatDuration(start)}</span>
        <span>peak: {formatBytes(topBytes)} resident</span>
        <span>{formatDuration(end)}</span>
      </figcaption>
    </figure>
  );
}

function readAndWritten(read: number | null, written: number | null): string | null {
  return read === null || written === null ? null : `${formatBytes(read)} read, ${formatBytes(written)} written`;
}

function peakWords({ peakResidentBytes, peakFrom, readBeforeEndNanos }: Usage): string | null {
  if (peakResidentBytes === null) return null;
  const last = readBeforeEndNanos === null || readBeforeEndNanos <= 0 ? '' : `, ${formatDuration(readBeforeEndNanos)} before its end`;
  return `${formatBytes(peakResidentBytes)}, ${peakFrom === 'exit' ? 'reported at exit' : `when last read${last}`}`;
}

/** The usage of a span's process, with a chart of its memory. */
export function ProcessUsageFacts({ usage, span }: { readonly usage: Usage; readonly span: Span }) {
  const { minorFaults, majorFaults, grows } = usage;
  const facts: readonly (readonly [string, string | null])[] = [
    ['peak memory', peakWords(usage)],
    ['memory growth', grows === null ? null : `from ${formatBytes(grows.fromBytes)} to ${formatBytes(grows.toBytes)}`],
    ['CPU time', usage.cpuNanos === null ? null : formatDuration(usage.cpuNanos)],
    [
      'page faults',
      minorFaults === null || majorFaults === null
        ? null
        : `${formatCount(minorFaults)} minor, ${formatCount(majorFaults)} major (from storage)`,
    ],
    ['I/O by system calls', readAndWritten(usage.readBytes, usage.writtenBytes) ?? 'not permitted'],
    ['I/O to and from storage', readAndWritten(usage.storageReadBytes, usage.storageWrittenBytes)],
  ];
  return (
    <>
      <MemoryChart usage={usage} span={span} />
      <dl className={css.pairs}>
        {facts.map(([key, value]) => value !== null && [<dt key={`${key} key`}>{key}</dt>, <dd key={`${key} value`}>{value}</dd>])}
      </dl>
    </>
  );
}
