import { type PointerEvent, useEffect, useRef } from 'react';
import css from './parts.module.css';

/** What a thumb moves: a position between 0 and 1, and how much of the whole is seen. */
export interface Scrollable {
  readonly watch: (listener: () => void) => () => void;
  readonly position: () => { readonly fraction: number; readonly seen: number };
  readonly scrollTo: (fraction: number) => void;
}

const THUMB_HEIGHT_MIN = 24;

/** Our own scroll bar, because a million rows are taller than a browser can scroll. The keyboard scrolls by other keys, so it skips this bar. */
export function ScrollThumb({ target, top }: { readonly target: Scrollable; readonly top: number }) {
  const track = useRef<HTMLDivElement>(null);
  const thumb = useRef<HTMLDivElement>(null);
  const grip = useRef<{ readonly pointerY: number; readonly fraction: number } | null>(null);

  useEffect(() => {
    const place = (): void => {
      if (track.current === null || thumb.current === null) return;
      const { fraction, seen } = target.position();
      const room = track.current.clientHeight;
      const height = Math.max(THUMB_HEIGHT_MIN, room * seen);
      thumb.current.hidden = seen >= 1;
      thumb.current.style.height = `${height}px`;
      thumb.current.style.top = `${fraction * (room - height)}px`;
    };
    place();
    const observer = new ResizeObserver(place);
    if (track.current !== null) observer.observe(track.current);
    const unwatch = target.watch(place);
    return () => {
      observer.disconnect();
      unwatch();
    };
  }, [target]);

  const onMove = (event: PointerEvent): void => {
    if (grip.current === null || track.current === null || thumb.current === null) return;
    const room = track.current.clientHeight - thumb.current.clientHeight;
    if (room > 0) target.scrollTo(grip.current.fraction + (event.clientY - grip.current.pointerY) / room);
  };
  return (
    <div ref={track} className={css.thumbTrack} style={{ top, bottom: 0 }} aria-hidden="true">
      <div
        ref={thumb}
        className={css.thumb}
        onPointerDown={(event) => {
          event.stopPropagation();
          event.currentTarget.setPointerCapture(event.pointerId);
          grip.current = { pointerY: event.clientY, fraction: target.position().fraction };
        }}
        onPointerMove={onMove}
        onPointerUp={() => {
          grip.current = null;
        }}
      />
    </div>
  );
}
