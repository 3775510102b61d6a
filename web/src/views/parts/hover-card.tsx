import type { ReactNode } from 'react';
import { createAtom, useAtom } from '../../state/store';
import css from './parts.module.css';

/** The content of the card for the item under the pointer. */
export interface Hover {
  readonly x: number;
  readonly y: number;
  readonly content: ReactNode;
}

export const createHover = () => createAtom<Hover | null>(null);

/** A card beside the pointer. Screen readers skip it: the list that mirrors the canvas has the same words. */
export function HoverCard({ atom }: { readonly atom: ReturnType<typeof createHover> }) {
  const hover = useAtom(atom, (value) => value);
  if (hover === null) return null;
  // The card stands on the side of the pointer where there is more room.
  const horizontal = hover.x > window.innerWidth / 2 ? { right: window.innerWidth - hover.x + 14 } : { left: hover.x + 14 };
  const vertical = hover.y > window.innerHeight * 0.6 ? { bottom: window.innerHeight - hover.y + 14 } : { top: hover.y + 14 };
  return (
    <div className={css.hoverCard} style={{ ...horizontal, ...vertical }} aria-hidden="true">
      {hover.content}
    </div>
  );
}
