import type { States } from '../../api/types';
import { formatDuration, formatShare } from '../../logic/format';
import { stateParts } from '../../logic/states';
import css from './parts.module.css';

/** Where a time went: a bar, and the numbers it is made of. Without samples nobody knows what was on a CPU. */
export function StateBar({ states, sampled }: { readonly states: States; readonly sampled: boolean }) {
  const parts = stateParts(states);
  // A state that never was takes no room, but on-CPU is what one looks for.
  const shown = parts.filter((part) => part.nanos > 0 || (part.state === 'on_cpu' && sampled));
  return (
    <div className={css.states}>
      <div className={css.stateBar} aria-hidden="true">
        {parts
          .filter((part) => part.share > 0)
          .map((part) => (
            <span key={part.state} className={css[part.state]} style={{ flexGrow: part.share, flexBasis: 0 }} />
          ))}
      </div>
      <ul className={css.stateLabels}>
        {shown.map((part) => (
          <li key={part.state} title={part.explanation}>
            <span className={`${css.swatch} ${css[part.state]}`} aria-hidden="true" />
            <span>
              {part.label} <b>{formatDuration(part.nanos)}</b> <i>{formatShare(part.share)}</i>
            </span>
          </li>
        ))}
        {!sampled && (
          <li>
            <i>no samples, so on-CPU time is not known</i>
          </li>
        )}
      </ul>
    </div>
  );
}
