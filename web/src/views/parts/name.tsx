import { Fragment } from 'react';
import { breakablePieces, splitName } from '../../logic/format';
import css from './parts.module.css';

/**
 * A name on one line that shortens in the middle. `end` is the part that must stay. A screen reader reads the whole name if its container has a
 * label.
 */
export function Name({ text, end }: { readonly text: string; readonly end?: string | undefined }) {
  const [start, kept] = end !== undefined && text.endsWith(end) ? [text.slice(0, text.length - end.length), end] : splitName(text);
  return (
    <span className={css.name}>
      <span>{start}</span>
      {kept !== '' && <span>{kept}</span>}
    </span>
  );
}

/** A name that may wrap, after a separator rather than inside a word. */
export function Breakable({ text }: { readonly text: string }) {
  return breakablePieces(text).map((piece, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: pieces may be alike, and never change places
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {piece}
    </Fragment>
  ));
}
