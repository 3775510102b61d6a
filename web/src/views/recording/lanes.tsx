import { useQuery } from '@tanstack/react-query';
import { type PointerEvent, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { Lane, Lanes as LanesView } from '../../api/types.gen';
import { clamp } from '../../base/math';
import { LANE_HEIGHT, type LanesScene } from '../../canvas/draw-lanes';
import type { Palette } from '../../canvas/palette';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import { type Excerpt, laneInWords, nameOfThread, statesOnLanes } from '../../logic/excerpt';
import { counted, formatCount } from '../../logic/format';
import { labelOfWait } from '../../logic/states';
import type { TimeRange } from '../../logic/waterfall';
import { lanesAtom } from '../../state/preferences';
import { lanesQuery } from '../../state/queries';
import type { SelectionActions } from '../../state/selection';
import { useAtom } from '../../state/store';
import type { createHover } from '../parts/hover-card';
import parts from '../parts/parts.module.css';
import css from './lanes.module.css';
import recordingCss from './recording.module.css';
import { CLICK_PIXELS, rangeOfPixels } from './waterfall-gestures';

/** Threads that are shown before a reader wants all, and then. */
const FEW = 6;
const MANY = 200;
/** A view that moves asks for new pieces when it has come to rest for so long. */
const SETTLE_MILLIS = 120;
/** Pieces are this number of pixels wide, and their number a multiple of another one: a resized window asks less often. */
const BIN_PIXELS = 2;
const BINS_STEP = 25;

/** The range on the screen once it has come to rest. */
function useSettledRange(engine: WaterfallEngine): TimeRange {
  const [range, setRange] = useState(engine.view.get().range);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unwatch = engine.view.watch(() => {
      clearTimeout(timer);
      timer = setTimeout(() => setRange(engine.view.get().range), SETTLE_MILLIS);
    });
    setRange(engine.view.get().range);
    return () => {
      clearTimeout(timer);
      unwatch();
    };
  }, [engine]);
  return range;
}

/** What the colours stand for, as far as they occur. */
function Kinds({ data }: { readonly data: LanesView }) {
  return (
    <ul className={css.kinds} aria-label="Colours of the threads">
      {statesOnLanes(data).map((state) => (
        <li key={state}>
          <span className={`${parts.swatch} ${parts[state]}`} aria-hidden="true" /> {state === 'on_cpu' ? 'on-CPU' : labelOfWait(state)}
        </li>
      ))}
    </ul>
  );
}

/** The name of a thread; a press selects it. */
function LaneName({ lane, selected, actions }: { readonly lane: Lane; readonly selected: boolean; readonly actions: SelectionActions }) {
  const name = nameOfThread(lane);
  return (
    <li>
      <button
        type="button"
        aria-pressed={selected}
        title={`${name}, thread ${lane.tid} of ${lane.process} (${lane.pid})${lane.isExact ? '' : '; from samples: waits are unknown'}`}
        onClick={() => actions.selectExcerpt({ thread: selected ? null : lane.tid })}
      >
        <span>{name}</span>
        <small>{name === lane.process ? lane.tid : `${lane.process} ${lane.tid}`}</small>
      </button>
    </li>
  );
}

/** The axis that the lanes share with the trace, what is selected, and how to select. */
interface LanesProps {
  readonly engine: WaterfallEngine;
  readonly excerpt: Excerpt;
  readonly hover: ReturnType<typeof createHover>;
  readonly palette: () => Palette;
  readonly choose: (range: TimeRange) => void;
  readonly actions: SelectionActions;
}

/** What the threads that matter most did, on the axis of the trace. */
export function Lanes({ recording, ...shared }: LanesProps & { readonly recording: string }) {
  const { engine } = shared;
  const isShown = useAtom(lanesAtom, (value) => value);
  const [isAll, setAll] = useState(false);
  const range = useSettledRange(engine);
  const box = useAtom(engine.box, (value) => value);
  const bins = Math.max(1, Math.ceil((box.width - box.nameWidth) / BIN_PIXELS / BINS_STEP)) * BINS_STEP;
  // Where the whole run has no threads, no part of it has.
  const first = useQuery({ ...lanesQuery(recording, engine.full, BINS_STEP, FEW), enabled: box.width > 0 }).data;
  const has = first !== undefined && first.threads.length > 0;
  const { data } = useQuery({ ...lanesQuery(recording, range, bins, isAll ? MANY : FEW), enabled: has && isShown && box.width > 0 });
  if (!has) return null;
  const total = first.threads.length + first.truncated;
  return (
    <section className={css.lanes} aria-label="Threads">
      <div className={`${recordingCss.bar} ${css.head}`}>
        <button
          type="button"
          className={css.toggle}
          aria-expanded={isShown}
          title="what each thread did (2)"
          onClick={() => lanesAtom.set(!isShown)}
        >
          <span aria-hidden="true">{isShown ? '▾' : '▸'}</span> <h2>Threads</h2>
        </button>
        <p>
          {isShown && data !== undefined && data.truncated > 0
            ? `${formatCount(data.threads.length)} of ${counted(data.threads.length + data.truncated, 'thread')}, most relevant first`
            : counted(total, 'thread')}
          {isShown && ' · drag to select a range'}
        </p>
        <span className={recordingCss.spread} />
        {isShown && data !== undefined && <Kinds data={data} />}
        {isShown && data !== undefined && (data.truncated > 0 || isAll) && (
          <button type="button" className={recordingCss.linkButton} onClick={() => setAll(!isAll)}>
            {isAll ? 'Fewer' : 'All'}
          </button>
        )}
      </div>
      {isShown && data !== undefined && <LaneRows data={data} nameWidth={box.nameWidth} {...shared} />}
    </section>
  );
}

function LaneRows({
  data,
  nameWidth,
  engine,
  excerpt,
  hover,
  palette,
  choose,
  actions,
}: LanesProps & { readonly data: LanesView; readonly nameWidth: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const press = useRef<number | null>(null);
  const scene = useRef<LanesScene | null>(null);
  useLayoutEffect(() => {
    scene.current = { lanes: data, thread: excerpt.thread };
    engine.redraw();
  }, [data, excerpt.thread, engine]);
  useEffect(
    () => (canvas.current === null ? undefined : engine.mountLanes(canvas.current, () => scene.current, palette)),
    [engine, palette],
  );

  const placeOf = (event: PointerEvent): readonly [number, number] => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  const point = (event: PointerEvent, x: number, y: number): void => {
    const lane = data.threads[Math.floor(y / LANE_HEIGHT)];
    const { width } = engine.box.get();
    if (lane === undefined || x < nameWidth || x >= width) {
      hover.set(null);
      engine.pointer.set({ ...engine.pointer.get(), row: null, x: null });
      return;
    }
    const time = engine.timeAt(x);
    const bin = Math.floor(((time - data.fromNanos) / (data.toNanos - data.fromNanos)) * data.bins);
    const content = (
      <>
        <strong>{nameOfThread(lane)}</strong>
        <p>{laneInWords(lane, data.states, bin)}</p>
      </>
    );
    engine.pointer.set({ ...engine.pointer.get(), row: null, x });
    hover.set({ x: event.clientX, y: event.clientY, content });
  };
  return (
    <div
      className={css.rows}
      style={{ '--lanes': data.threads.length, '--names': `${nameWidth}px` } as React.CSSProperties}
      onPointerDown={(event) => {
        const [x] = placeOf(event);
        if (event.button === 0 && x >= nameWidth) press.current = x;
      }}
      onPointerMove={(event) => {
        const [x, y] = placeOf(event);
        if (event.buttons === 0) press.current = null;
        const from = press.current;
        const { drag } = engine.pointer.get();
        if (from === null || (drag === null && Math.abs(x - from) <= CLICK_PIXELS)) {
          point(event, x, y);
          return;
        }
        event.currentTarget.setPointerCapture(event.pointerId);
        hover.set(null);
        const { width } = engine.box.get();
        engine.pointer.set({ ...engine.pointer.get(), x: null, drag: [from, clamp(x, nameWidth, width)] });
      }}
      onPointerUp={() => {
        const { drag } = engine.pointer.get();
        press.current = null;
        if (drag === null) return;
        engine.pointer.set({ ...engine.pointer.get(), drag: null });
        choose(rangeOfPixels(engine, drag));
      }}
      onPointerLeave={() => {
        hover.set(null);
        engine.pointer.set({ ...engine.pointer.get(), x: null });
      }}
    >
      <div className={css.canvas}>
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      <ul className={css.names} aria-label="Threads; select one to see its code">
        {data.threads.map((lane) => (
          <LaneName key={`${lane.pid} ${lane.tid} ${lane.name}`} lane={lane} selected={lane.tid === excerpt.thread} actions={actions} />
        ))}
      </ul>
    </div>
  );
}
