import type { Evidence, NanosRange } from '../../api/types';
import { formatRange } from '../../logic/format';
import css from './parts.module.css';

/** ◆ where what it waited for is declared, ◇ where it is inferred; never without words for those who do not see it. */
export function EvidenceMark({ evidence }: { readonly evidence: Evidence }) {
  return (
    <span className={css.evidence} title={evidence}>
      <span aria-hidden="true">{evidence === 'declared' ? '◆' : '◇'}</span>
      <span className={css.visuallyHidden}>{evidence}: </span>
    </span>
  );
}

/** What is saved, as a number and as a part of the whole run: solid what is certain, hatched what may come on top. */
export function Saving({
  range,
  shares,
  evidence,
}: {
  readonly range: NanosRange;
  /** Low and high end as shares of the wall time. */
  readonly shares: { readonly low: number; readonly high: number };
  readonly evidence: Evidence;
}) {
  return (
    <div className={css.saving}>
      <span>
        <EvidenceMark evidence={evidence} /> {formatRange(range)}
      </span>
      <div className={css.savingBar} aria-hidden="true">
        <span className={css.savingHigh} style={{ width: `${shares.high * 100}%` }} />
        <span className={css.savingLow} style={{ width: `${shares.low * 100}%` }} />
      </div>
    </div>
  );
}
