import { memo, useLayoutEffect, useRef } from 'react';
import type { RowIndex, SpanIndex } from '../../base/brand';
import { at } from '../../base/column';
import type { WaterfallScene } from '../../canvas/draw-waterfall';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import { spanHandle } from '../../logic/handles';
import { isFolded, rowOf } from '../../logic/rows';
import { rowInWords } from '../../logic/span-words';
import { ROW_HEIGHT, rowsOnScreen, type WaterfallView } from '../../logic/waterfall';
import { useAtom } from '../../state/store';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

const firstRowOf = (view: WaterfallView) => Math.floor(view.topRow);

/**
 * Rows have positions relative to their block, so that a visible row does not change while the list scrolls. Positions relative to the first of a
 * million rows would exceed what browsers can place.
 */
const BLOCK_ROWS = 4096;
const blockOf = (row: number) => row - (row % BLOCK_ROWS);

const MirrorRow = memo(function MirrorRow({
  scene,
  row,
  top,
  isTabStop,
  onFocus,
  onActivate,
}: {
  readonly scene: WaterfallScene;
  readonly row: RowIndex;
  readonly top: number;
  readonly isTabStop: boolean;
  readonly onFocus: (span: SpanIndex | null) => void;
  readonly onActivate: (span: SpanIndex) => void;
}) {
  const { tree } = scene;
  const span = at(scene.rows, row) as SpanIndex;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the container handles the keys of its rows
    <div
      className={css.mirrorRow}
      style={{ top }}
      role="row"
      data-span={spanHandle(span)}
      tabIndex={isTabStop ? 0 : -1}
      aria-rowindex={row + 1}
      aria-level={at(tree.spans.depth, span) + 1}
      aria-selected={span === scene.selected}
      {...(at(tree.spans.subtree, span) > 0 ? { 'aria-expanded': !isFolded(scene.fold, span) } : {})}
      onFocus={() => onFocus(span)}
      onBlur={() => onFocus(null)}
      // The container handles mouse clicks by their position; this click comes from a screen reader.
      onClick={(event) => {
        if (event.detail === 0) onActivate(span);
      }}
    >
      <span role="gridcell" className={parts.visuallyHidden}>
        {rowInWords(tree, span, scene.poleOf.get(span), scene.shareOf.get(span))}
      </span>
    </div>
  );
});

/**
 * The rows on the screen as an invisible treegrid over the canvas, for the keyboard, screen readers and tests. It renders again when the top row
 * changes, not with every pixel.
 */
export function RowsMirror({
  engine,
  scene,
  focused,
  onFocus,
  onActivate,
}: {
  readonly engine: WaterfallEngine;
  readonly scene: WaterfallScene;
  readonly focused: SpanIndex | null;
  readonly onFocus: (span: SpanIndex | null) => void;
  readonly onActivate: (span: SpanIndex) => void;
}) {
  const { view } = engine;
  const box = useAtom(engine.box, (value) => value);
  const block = blockOf(useAtom(view, firstRowOf));
  const shifted = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const place = (): void => {
      if (shifted.current !== null) shifted.current.style.transform = `translateY(${(block - view.get().topRow) * ROW_HEIGHT}px)`;
    };
    place();
    return view.watch(place);
  }, [view, block]);

  const [first, lastSeen] = rowsOnScreen(view.get(), box, scene.rows.length);
  // One more row, which becomes visible before the top row changes.
  const last = Math.min(lastSeen + 1, scene.rows.length);
  const onScreen = Array.from({ length: last - first }, (_, position) => (first + position) as RowIndex);
  // The row with the focus stays in the document while the reader scrolls away from it: without it, the focus would be lost.
  const focusedRow = focused === null ? null : rowOf(scene.rows, focused);
  const shown = [
    ...(focusedRow !== null && focusedRow < first ? [focusedRow] : []),
    ...onScreen,
    ...(focusedRow !== null && focusedRow >= last ? [focusedRow] : []),
  ];
  const wanted = focused ?? scene.selected;
  const wantedRow = wanted === null ? first : rowOf(scene.rows, wanted);
  const tabStop = wantedRow >= first && wantedRow < last ? wantedRow : first;
  return (
    <div className={css.mirrorBox}>
      <div className={css.mirror} ref={shifted} role="treegrid" aria-label="Spans" aria-rowcount={scene.rows.length} aria-colcount={1}>
        {shown.map((row) => (
          <MirrorRow
            key={at(scene.rows, row)}
            scene={scene}
            row={row}
            top={(row - block) * ROW_HEIGHT}
            isTabStop={row === tabStop}
            onFocus={onFocus}
            onActivate={onActivate}
          />
        ))}
      </div>
    </div>
  );
}
