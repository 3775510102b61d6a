import { ratio } from '../../base/math';
import css from './change-bar.module.css';

/** The change as a bar to the left or the right of the middle; the number beside it says it, too. */
export function ChangeBar({ change, largest }: { readonly change: number; readonly largest: number }) {
  const width = `${ratio(Math.abs(change), largest) * 50}%`;
  return (
    <span className={css.bar} aria-hidden="true">
      <span className={change > 0 ? css.more : css.less} style={change > 0 ? { left: '50%', width } : { right: '50%', width }} />
    </span>
  );
}

/** The heading of a column of such bars: what their sides mean. */
export function ChangeAxis({ less, more }: { readonly less: string; readonly more: string }) {
  return (
    <span className={css.axis}>
      <span>{less}</span> <span>{more}</span>
    </span>
  );
}
