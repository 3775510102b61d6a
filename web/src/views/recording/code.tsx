import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import type { Flame, FlameTime } from '../../api/types.gen';
import { at } from '../../base/column';
import { ratio } from '../../base/math';
import { frameTotals, hottestFrames } from '../../logic/flame-graph';
import { FLAME_TIME_WORDS, madeOfInWords, numberInWords } from '../../logic/flame-time';
import type { NoSamples } from '../../logic/no-samples';
import { flameQuery } from '../../state/queries';
import type { Selection } from '../../state/selection';
import { unfoldedOf } from '../../state/url';
import { Failure, Notice, Skeleton } from '../parts/notice';
import { FlameGraph } from './flame-graph';
import { FrameCard } from './frame-card';
import { CodeElsewhere } from './linked';
import css from './recording.module.css';
import { useFlameCommands } from './recording-commands';
import { type HotFrame, TopFrames } from './top-frames';

const TOP_FRAMES_MAX = 10;

/** A remark if there are too few samples for exact shares; the server decides by `few_samples`. */
function SampleRemark({ flame, spans }: { readonly flame: Flame; readonly spans: number }) {
  return (
    <>
      <p>{madeOfInWords(flame, spans)}</p>
      {flame.fewSamples && <Notice title={`Only ${numberInWords(flame)}:`}>shares from fewer than 20 are rough.</Notice>}
    </>
  );
}

/** The switch between on-CPU, off-CPU and wall time in the flame graph. */
function TimeSwitch({ time, onChange }: { readonly time: FlameTime; readonly onChange: (time: FlameTime) => void }) {
  return (
    <ToggleGroup
      className={css.times}
      aria-label="Time of the flame graph"
      value={[time]}
      onValueChange={(pressed: readonly FlameTime[]) => {
        // A second press keeps the choice.
        if (pressed[0] !== undefined) onChange(pressed[0]);
      }}
    >
      {FLAME_TIME_WORDS.map(({ time: value, label, explanation }) => (
        <Toggle key={value} value={value} title={explanation}>
          {label}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}

function NoSamplesBox({ reason, children }: { readonly reason: NoSamples; readonly children?: ReactNode }) {
  return (
    <div className={css.noSamples}>
      <strong>{reason.title}</strong>
      <p>{reason.text}</p>
      {children}
    </div>
  );
}

/** The functions of a flame graph with the most self time, after the one that the server names for the selection. */
function framesOfFlame(flame: Flame, named: string | null): readonly HotFrame[] {
  const totals = frameTotals(flame);
  return hottestFrames(flame, totals, named, TOP_FRAMES_MAX).flatMap((index) => {
    const frame = flame.frames[index];
    if (frame === undefined) return [];
    const selfNanos = at(totals.self, index);
    const totalNanos = at(totals.total, index);
    return [
      {
        ...frame,
        selfNanos,
        totalNanos,
        selfShare: ratio(selfNanos, flame.weightNanos),
        totalShare: ratio(totalNanos, flame.weightNanos),
      },
    ];
  });
}

/** The code of a selection, in the selected range and thread: flame graph, the selected function with its spans, and the functions with the most self time. */
export function Code({
  selection,
  span,
  spanId,
  spans,
  whole,
  named,
  noSamples,
  hasTimes = true,
}: {
  readonly selection: Selection;
  /** Whether there may be waits: a profile of sums has one kind of time. */
  readonly hasTimes?: boolean;
  /** Handle of the span, or of the pole if that is a part of it; null for the whole run. */
  readonly span: string | null;
  /** Its id, if it is one span. */
  readonly spanId: string | null;
  /** Number of spans in the recording. */
  readonly spans: number;
  /** What the recording is of: the word after `whole`. */
  readonly whole: string;
  /** Handle of the function that the server names first for the selection. */
  readonly named: (flame: Flame) => string | null;
  readonly noSamples: (time: FlameTime) => NoSamples;
}) {
  const { recording, search, excerpt, actions } = selection;
  const time = search.time ?? 'on_cpu';
  const { data: flame, error, refetch } = useQuery(flameQuery(recording, span, time, excerpt));
  const first = flame === undefined ? null : named(flame);
  const frames = useMemo(() => (flame === undefined ? [] : framesOfFlame(flame, first)), [flame, first]);
  const frame = search.frame ?? null;
  useFlameCommands(flame, hasTimes, actions);
  const unfoldText = search.unfold;
  // The graph stays the same object while other parts of the URL change.
  const unfolded = useMemo(() => unfoldedOf(unfoldText === undefined ? {} : { unfold: unfoldText }), [unfoldText]);
  return (
    <>
      <section className={css.section} aria-label="Flame graph">
        <div className={css.sectionHead}>
          <h3>Flame graph</h3>
          {hasTimes && <TimeSwitch time={time} onChange={actions.showTime} />}
          {flame !== undefined && flame.samples > 0 && <SampleRemark flame={flame} spans={spans} />}
        </div>
        {error !== null && <Failure error={error} retry={() => refetch()} />}
        {error === null && flame === undefined && <Skeleton lines={8} label="Loading the flame graph" />}
        {flame !== undefined && flame.samples === 0 && (
          <NoSamplesBox reason={noSamples(time)}>
            <CodeElsewhere trace={recording} spanId={spanId} />
          </NoSamplesBox>
        )}
        {flame !== undefined && flame.samples > 0 && (
          <FlameGraph
            flame={flame}
            selectedHandle={frame}
            zoomedNode={search.node ?? 0}
            unfolded={unfolded}
            onSelect={actions.selectFrame}
            onZoom={actions.zoomFlame}
            onToggleRun={actions.toggleRun}
            onFoldForeign={actions.foldForeign}
          />
        )}
      </section>
      {frame !== null && (
        <FrameCard
          recording={recording}
          handle={frame}
          whole={whole}
          selectedSpan={search.span ?? null}
          showsSource={search.source === 1}
          actions={actions}
        />
      )}
      {frames.length > 0 && (
        <section className={css.section} aria-label="Top functions">
          <div className={css.sectionHead}>
            <h3>Top functions</h3>
            <p>{spans === 0 ? 'select one to see its lines' : 'select one to see its spans'}</p>
          </div>
          <TopFrames frames={frames} selected={frame} onSelect={actions.selectFrame} />
        </section>
      )}
    </>
  );
}
