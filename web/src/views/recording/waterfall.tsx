import { type ReactNode, useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Pole } from '../../api/types.gen';
import type { SpanIndex } from '../../base/brand';
import type { WaterfallScene } from '../../canvas/draw-waterfall';
import { createWaterfallEngine } from '../../canvas/waterfall-engine';
import type { Excerpt } from '../../logic/excerpt';
import { counted, formatCount } from '../../logic/format';
import { spanHandle } from '../../logic/handles';
import { ALL_FOLDED, type Fold, NOTHING_FOLDED, rowOf, toggled } from '../../logic/rows';
import { namedService } from '../../logic/span-words';
import { RULER_HEIGHT, rowsThatFit, type TimeRange, topRowMax } from '../../logic/waterfall';
import type { PreparedTree, SpanMarks } from '../../state/derived';
import type { SelectionActions } from '../../state/selection';
import { useAtom } from '../../state/store';
import { createHover, HoverCard } from '../parts/hover-card';
import { FitIcon, FoldIcon, UnfoldIcon, ZoomInIcon, ZoomOutIcon } from '../parts/icons';
import parts from '../parts/parts.module.css';
import { ScrollThumb } from '../parts/scroll-thumb';
import { IconButton } from '../parts/tip';
import { usePalette } from '../parts/use-palette';
import { FindBox, type Found } from './find-box';
import { Lanes } from './lanes';
import { Minimap } from './minimap';
import css from './recording.module.css';
import { RowsMirror } from './rows-mirror';
import { TraceLegend } from './trace-legend';
import { useWaterfallGestures } from './waterfall-gestures';
import { useMarkSteps, useRowFocus, useRowKeys, useTimelineKeys, ZOOM_STEP } from './waterfall-keys';
import { useRangeInUrl, useSelectedInSight } from './waterfall-url';

/** The trace as rows: names on the left, time on the right. */
export function Waterfall({
  prepared,
  rows,
  fold,
  marks,
  found,
  selected,
  selectedPole,
  poles,
  currentPole,
  urlRange,
  excerpt,
  rootTag,
  whole,
  head,
  actions,
}: {
  readonly prepared: PreparedTree;
  readonly rows: Uint32Array;
  readonly fold: Fold;
  readonly marks: SpanMarks;
  readonly found: Found;
  readonly selected: SpanIndex | null;
  readonly selectedPole: string | null;
  /** All poles, by rank. */
  readonly poles: readonly Pole[];
  /** The selected pole, or that of the selected span. */
  readonly currentPole: string | null;
  /** The time range in the URL. */
  readonly urlRange: TimeRange | null;
  /** The selected range of time and thread. */
  readonly excerpt: Excerpt;
  /** What the first row stands for. */
  readonly rootTag: WaterfallScene['rootTag'];
  /** What the rows show all of: the word after `whole`. */
  readonly whole: string;
  /** The switch to the operations. */
  readonly head: ReactNode;
  readonly actions: SelectionActions;
}) {
  const { tree, path, full } = prepared;
  const hint = useId();
  const host = useRef<HTMLDivElement>(null);
  const rowsCanvas = useRef<HTMLCanvasElement>(null);
  const pointerCanvas = useRef<HTMLCanvasElement>(null);
  const [focused, setFocused] = useState<SpanIndex | null>(null);
  const hover = useMemo(createHover, []);

  const scene = useMemo<WaterfallScene>(
    () => ({ tree, path, rows, fold, selected, marked: marks.spans, shareOf: marks.shareOf, poleOf: marks.poleOf, selectedPole, rootTag }),
    [tree, path, rows, fold, selected, marks, selectedPole, rootTag],
  );
  // One engine per tree; later changes go through its setters.
  const first = useRef({ scene, urlRange });
  const engine = useMemo(() => createWaterfallEngine(first.current.scene, full, first.current.urlRange), [full]);
  useLayoutEffect(() => engine.setScene(scene), [engine, scene]);
  const palette = usePalette(host, engine.redraw);
  useEffect(() => {
    if (rowsCanvas.current === null || pointerCanvas.current === null) return undefined;
    return engine.mount(rowsCanvas.current, pointerCanvas.current, palette);
  }, [engine, palette]);
  useEffect(() => engine.halt, [engine]);

  const select = useCallback((span: SpanIndex) => actions.selectSpan(spanHandle(span)), [actions]);
  const toggle = useCallback((span: SpanIndex) => actions.setFold(toggled(engine.scene().fold, span)), [actions, engine]);
  useLayoutEffect(() => engine.chosen.set(excerpt.range), [engine, excerpt.range]);
  const choose = useCallback((range: TimeRange) => actions.selectExcerpt({ range }), [actions]);
  const gestures = useWaterfallGestures(engine, host, hover, select, toggle, choose, whole);
  const onKeyDown = useRowKeys(engine, focused, useRowFocus(host, focused, setFocused), select, toggle);
  const step = useMarkSteps(engine, poles, currentPole, actions);
  useTimelineKeys(engine, actions, step, whole);
  useRangeInUrl(engine, urlRange, actions);
  const box = useAtom(engine.box, (value) => value);
  useSelectedInSight(engine, rows, selected, box.height > 0, actions);

  const focusedRow = focused === null ? null : rowOf(rows, focused);
  useEffect(() => engine.pointer.set({ ...engine.pointer.get(), focus: focusedRow }), [engine, focusedRow]);

  const most = topRowMax(box, rows.length);
  const seen = rowsThatFit(box) / Math.max(1, rows.length);
  const scrollable = useMemo(
    () => ({
      watch: engine.view.watch,
      position: () => ({ fraction: most > 0 ? engine.view.get().topRow / most : 0, seen: most > 0 ? seen : 1 }),
      scrollTo: (fraction: number) => engine.setView({ ...engine.view.get(), topRow: fraction * most }),
    }),
    [engine, most, seen],
  );

  const services = tree.services.filter((service) => namedService(service) !== '').length;
  const spans = tree.spans.parent.length - prepared.processes;
  // The root of a trace or file is no process.
  const processes = prepared.processes - (rootTag === 'process' ? 0 : 1);
  return (
    <section className={css.trace} aria-label="Trace">
      <div className={css.bar}>
        <h2 className={parts.visuallyHidden}>Trace</h2>
        {head}
        <p>
          {[
            ...(spans > 0 || prepared.processes === 0 ? [counted(spans, 'span')] : []),
            ...(processes > 0 ? [counted(processes, 'process', 'processes')] : []),
          ].join(' and ')}
          {services > 0 && ` from ${counted(services, 'service')}`}
          {rows.length < tree.spans.parent.length &&
            !found.isOnly &&
            `, ${formatCount(tree.spans.parent.length - rows.length)} of ${counted(tree.spans.parent.length, 'row')} collapsed`}
        </p>
        <span className={css.spread} />
        <FindBox found={found} selected={selected} step={step} actions={actions} />
        <IconButton label="Collapse all" shortcut="[" onClick={() => actions.setFold(ALL_FOLDED)}>
          <FoldIcon />
        </IconButton>
        <IconButton label="Expand all" shortcut="]" onClick={() => actions.setFold(NOTHING_FOLDED)}>
          <UnfoldIcon />
        </IconButton>
        <IconButton label="Zoom in" shortcut="W" onClick={() => engine.zoom(ZOOM_STEP, 0.5)}>
          <ZoomInIcon />
        </IconButton>
        <IconButton label="Zoom out" shortcut="S" onClick={() => engine.zoom(1 / ZOOM_STEP, 0.5)}>
          <ZoomOutIcon />
        </IconButton>
        <IconButton label={`Whole ${whole}`} shortcut="0" onClick={() => engine.moveTo(full, null)}>
          <FitIcon />
        </IconButton>
      </div>
      <Minimap engine={engine} palette={palette} whole={whole} />
      <div
        className={css.rows}
        ref={host}
        role="group"
        aria-label="Rows of the trace"
        aria-describedby={hint}
        onKeyDown={onKeyDown}
        {...gestures}
      >
        <canvas ref={rowsCanvas} aria-hidden="true" />
        <canvas ref={pointerCanvas} aria-hidden="true" />
        <RowsMirror engine={engine} scene={scene} focused={focused} onFocus={setFocused} onActivate={select} />
        <ScrollThumb target={scrollable} top={RULER_HEIGHT} />
        <p id={hint} className={parts.visuallyHidden}>
          Arrow keys move between rows, Enter selects, the question mark lists all keys.
        </p>
      </div>
      <Lanes
        recording={tree.recording}
        engine={engine}
        excerpt={excerpt}
        hover={hover}
        palette={palette}
        choose={choose}
        actions={actions}
      />
      <HoverCard atom={hover} />
      <TraceLegend tree={tree} found={found} isMarked={marks.spans.length > 0} actions={actions} />
    </section>
  );
}
