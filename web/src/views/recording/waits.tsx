import type { Span } from '../../api/types.gen';
import { formatDuration, formatShare } from '../../logic/format';
import { fileName } from '../../logic/placed-function';
import { blockedOn, labelOfWait } from '../../logic/states';
import { Name } from '../parts/name';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/** A span's own waits: duration, kind, system call, and the waiting function of the program. */
export function Waits({ waits }: { readonly waits: Span['waits'] }) {
  if (waits.length === 0) return null;
  return (
    <section className={css.section} aria-label="Waits">
      <div className={css.sectionHead}>
        <h3>Waits</h3>
        <p>in its own time, outside child spans, longest first</p>
      </div>
      <table className={css.waits}>
        <thead>
          <tr>
            <th className={css.number}>Time</th>
            <th>Blocked on</th>
            <th>System call</th>
            <th>Function</th>
          </tr>
        </thead>
        <tbody>
          {waits.map(({ kind, syscall, function: name, nanos, places, blockedBy }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: waits may be alike, and the list never changes
            <tr key={index}>
              <td className={css.number}>{formatDuration(nanos)}</td>
              <td title={`blocked ${blockedOn(kind)}`}>
                <span className={`${parts.swatch} ${parts[kind]}`} aria-hidden="true" /> {labelOfWait(kind)}
              </td>
              <td>{syscall === null ? <span className={css.muted}>unknown</span> : <code>{syscall}</code>}</td>
              <td className={css.waiting} title={name ?? undefined}>
                {name === null ? (
                  <span className={css.muted}>unknown</span>
                ) : (
                  <code>
                    <Name text={name} />
                  </code>
                )}
                {places.map(({ file, line, nanos: there }) => (
                  <small key={`${file}:${line}`} className={css.muted} title={file}>
                    {' '}
                    {fileName(file)}:{line}
                    {places.length > 1 && ` (${formatShare(there / nanos)})`}
                  </small>
                ))}
                {blockedBy !== null && <div className={css.muted}>{blockedBy.text}</div>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
