import type { States } from '../../api/types.gen';
import { counted, formatDuration, formatShare } from '../../logic/format';
import { howKnown, type StatePart, type StateParts, stateParts } from '../../logic/states';
import css from './parts.module.css';

/** `lock 596.0ms (99%): blocked on a lock`. */
function inWords({ label, explanation, nanos, share }: StatePart): string {
  return `${label} ${formatDuration(nanos)} (${formatShare(share)}): ${explanation}`;
}

/** A state with its colour from the bar. */
function Label({ part }: { readonly part: StatePart }) {
  return (
    <span className={css.stateLabel} title={part.explanation}>
      <span className={`${css.swatch} ${css[part.state]}`} aria-hidden="true" /> {part.label} <b>{formatDuration(part.nanos)}</b>{' '}
      <i>{formatShare(part.share)}</i>
    </span>
  );
}

/** The states that took time. */
function Labels({ parts }: { readonly parts: readonly StatePart[] }) {
  return parts
    .filter(({ nanos }) => nanos > 0)
    .map((part) => (
      <li key={part.state}>
        <Label part={part} />
      </li>
    ));
}

/** `blocked 21% (lock 596.0ms 20%, disk 31.0ms 1%, 2 more)`. */
function Blocked({ blocked, kindsMax }: { readonly blocked: StateParts['blocked']; readonly kindsMax: number }) {
  const shown = blocked.kinds.slice(0, kindsMax);
  const rest = blocked.kinds.slice(kindsMax);
  return (
    <li>
      blocked <b>{formatShare(blocked.share)}</b>{' '}
      <ul className={css.kinds} aria-label="Blocked on">
        {shown.map((part) => (
          <li key={part.state}>
            <Label part={part} />
          </li>
        ))}
        {rest.length > 0 && <li title={rest.map(inWords).join('\n')}>{counted(rest.length, 'more', 'more')}</li>}
      </ul>
    </li>
  );
}

/**
 * A bar of states with their numbers. It names at most `kindsMax` kinds of waits. Without samples (`sampled` is false) on-CPU time is unknown. `isProcess` if they are
 * those of a process without spans.
 */
export function StateBar({
  states,
  sampled,
  isProcess = false,
  kindsMax = Number.POSITIVE_INFINITY,
}: {
  readonly states: States;
  readonly sampled: boolean;
  readonly isProcess?: boolean;
  readonly kindsMax?: number;
}) {
  const { onCpu, runnable, inChild, blocked, awaiting, remote, unaccounted } = stateParts(states);
  const known = howKnown(states, isProcess);
  return (
    <div className={css.states}>
      <div className={css.stateBar} aria-hidden="true">
        {[onCpu, runnable, inChild, ...blocked.kinds, awaiting, remote, unaccounted]
          .filter((part) => part.share > 0)
          .map((part) => (
            <span key={part.state} className={css[part.state]} style={{ flexGrow: part.share, flexBasis: 0 }} title={inWords(part)} />
          ))}
      </div>
      <ul className={css.stateLabels} aria-label="Where the time went">
        {/* States of length zero take no room, except on-CPU, which readers look for. */}
        {(onCpu.nanos > 0 || sampled) && (
          <li>
            <Label part={onCpu} />
          </li>
        )}
        <Labels parts={[runnable, inChild]} />
        {blocked.nanos > 0 && <Blocked blocked={blocked} kindsMax={kindsMax} />}
        <Labels parts={[awaiting, remote, unaccounted]} />
        <li>
          {sampled || states.evidence !== 'samples' ? (
            <i title={known.explanation}>{known.mark}</i>
          ) : (
            <i>on-CPU time unknown: no samples</i>
          )}
        </li>
      </ul>
    </div>
  );
}
