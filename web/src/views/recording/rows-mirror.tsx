import { useEffect, useRef } from 'react';
import type { RowIndex, SpanIndex } from '../../base/brand';
import { at } from '../../base/column';
import type { WaterfallScene } from '../../canvas/draw-waterfall';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import { spanHandle } from '../../logic/handles';
import { isFolded } from '../../logic/rows';
import { rowInWords } from '../../logic/span-words';
import { ROW_HEIGHT, rowsOnScreen, type WaterfallView } from '../../logic/waterfall';
import { useAtom } from '../../state/store';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

const firstRowOf = (view: WaterfallView) => Math.floor(view.topRow);

/**
 * The rows on the screen as a treegrid, for the keyboard, for screen readers and for tests. It lies over the canvas, row on row, and is not seen.
 * It is made anew when another row comes to the top, not with every pixel.
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
  const { tree } = scene;
  useAtom(view, firstRowOf);
  const box = useAtom(engine.box, (value) => value);
  const shifted = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = (): void => {
      const { topRow } = view.get();
      if (shifted.current !== null) shifted.current.style.transform = `translateY(${-(topRow - Math.floor(topRow)) * ROW_HEIGHT}px)`;
    };
    place();
    return view.watch(place);
  }, [view]);

  const [first, last] = rowsOnScreen(view.get(), box, scene.rows.length);
  const shown: { readonly row: RowIndex; readonly span: SpanIndex }[] = [];
  for (let row = first; row < last; row++) shown.push({ row: row as RowIndex, span: at(scene.rows, row) as SpanIndex });
  const wanted = focused ?? scene.selected;
  const tabStop = shown.some(({ span }) => span === wanted) ? wanted : shown[0]?.span;
  return (
    <div className={css.mirror} ref={shifted} role="treegrid" aria-label="Spans" aria-rowcount={scene.rows.length} aria-colcount={1}>
      {shown.map(({ row, span }, position) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the rows are handled by the box around them
        <div
          key={span}
          className={css.mirrorRow}
          style={{ top: position * ROW_HEIGHT }}
          role="row"
          data-span={spanHandle(span)}
          tabIndex={span === tabStop ? 0 : -1}
          aria-rowindex={row + 1}
          aria-level={at(tree.depth, span) + 1}
          aria-selected={span === scene.selected}
          {...(at(tree.subtree, span) > 0 ? { 'aria-expanded': !isFolded(scene.fold, span) } : {})}
          onFocus={() => onFocus(span)}
          onBlur={() => onFocus(null)}
          // A click of the mouse is judged by the box around the rows, by where it falls; this one is made by a screen reader.
          onClick={(event) => {
            if (event.detail === 0) onActivate(span);
          }}
        >
          <span role="gridcell" className={parts.visuallyHidden}>
            {rowInWords(tree, span, scene.poleOf.get(span), scene.shareOf.get(span))}
          </span>
        </div>
      ))}
    </div>
  );
}
