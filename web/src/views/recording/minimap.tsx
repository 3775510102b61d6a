import { type PointerEvent, useEffect, useRef } from 'react';
import type { Nanos } from '../../base/brand';
import type { Palette } from '../../canvas/palette';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import css from './recording.module.css';

/** The whole recording in a strip: operations in flight, the critical path, and the part that is on the screen. */
export function Minimap({
  engine,
  palette,
  whole,
}: {
  readonly engine: WaterfallEngine;
  readonly palette: () => Palette;
  /** What it shows all of: the word after `whole`. */
  readonly whole: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const from = useRef<Nanos | null>(null);
  const { full, view } = engine;
  useEffect(() => (canvas.current === null ? undefined : engine.mountMinimap(canvas.current, palette)), [engine, palette]);

  const timeOf = (event: PointerEvent): Nanos => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return engine.minimapTimeAt(event.clientX - bounds.left, bounds.width);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: for the mouse; W, S, A and D do the same from the keyboard
    <div
      className={css.minimap}
      title={`operations at once; drag to zoom to a range, double-click to show the whole ${whole}`}
      onPointerDown={(event) => {
        from.current = timeOf(event);
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const { current } = from;
        if (current === null) return;
        const time = timeOf(event);
        // A hand that trembles during a double click chooses nothing.
        if (Math.abs(time - current) < (full.end - full.start) / 200) return;
        const range = { start: Math.min(time, current) as Nanos, end: Math.max(time, current) as Nanos };
        engine.setView({ ...view.get(), range });
      }}
      onPointerUp={() => {
        from.current = null;
      }}
      onDoubleClick={() => engine.moveTo(full, null)}
    >
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}
