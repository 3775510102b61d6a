import { formatDuration, formatPlace, formatShare, shortPath } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import css from './recording.module.css';

/** A row of the function table. */
export interface HotFrame {
  readonly handle: string;
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly selfNanos: number;
  readonly totalNanos: number;
  readonly selfShare: number;
  readonly totalShare: number;
}

/** The functions with the most self time. */
export function TopFrames({
  frames,
  selected,
  onSelect,
}: {
  readonly frames: readonly HotFrame[];
  readonly selected: string | null;
  readonly onSelect: (handle: string | null) => void;
}) {
  // Two functions of different modules may have one short name.
  const isAlone = ({ function: name }: HotFrame): boolean =>
    frames.every((other) => other.function === name || shortName(other.function) !== shortName(name));
  return (
    <table className={css.topFrames} aria-label="Functions with the most self time">
      <thead>
        <tr>
          <th>Function</th>
          <th className={css.number} title="time in the function itself">
            Self
          </th>
          <th className={css.number} title="time in the function and its callees">
            Total
          </th>
        </tr>
      </thead>
      <tbody>
        {frames.map((frame) => (
          <tr key={frame.handle} aria-current={frame.handle === selected}>
            <td>
              <button
                type="button"
                className={css.frameButton}
                title={`${frame.function}\n${formatPlace(frame.file, frame.line)}`}
                aria-pressed={frame.handle === selected}
                data-frame={frame.handle}
                onClick={() => onSelect(frame.handle === selected ? null : frame.handle)}
              >
                {isAlone(frame) ? shortName(frame.function) : frame.function}
              </button>
              {frame.file !== '' && <span className={css.sub}>{shortPath(formatPlace(frame.file, frame.line), 48)}</span>}
            </td>
            <td className={css.number}>
              {formatDuration(frame.selfNanos)} <span className={css.muted}>{formatShare(frame.selfShare)}</span>
            </td>
            <td className={css.number}>
              {formatDuration(frame.totalNanos)} <span className={css.muted}>{formatShare(frame.totalShare)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
