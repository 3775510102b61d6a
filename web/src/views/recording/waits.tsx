import type { Span } from '../../api/types.gen';
import { formatDuration, formatShare } from '../../logic/format';
import { fileName } from '../../logic/placed-function';
import { blockedOn, labelOfWait } from '../../logic/states';
import { Name } from '../parts/name';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/**
 * A span's own waits: duration, kind, system call, and the waiting function of the program; first those that held it up, then those of other
 * threads of a process.
 */
export function Waits({ waits, isProcess }: { readonly waits: Span['waits']; readonly isProcess: boolean }) {
  const heldUp = waits.filter((wait) => !wait.inOtherThreads);
  const ofOthers = waits.filter((wait) => wait.inOtherThreads);
  const children = isProcess ? 'its children' : 'child spans';
  return (
    <>
      <WaitsTable title="Waits" which={`in its own time, outside ${children}, longest first`} waits={heldUp} />
      <WaitsTable
        title="Waits in other threads meanwhile"
        which="the operation did not wait for them; time in which several threads waited counts once; longest first"
        waits={ofOthers}
      />
    </>
  );
}

function WaitsTable({ title, which, waits }: { readonly title: string; readonly which: string; readonly waits: Span['waits'] }) {
  if (waits.length === 0) return null;
  return (
    <section className={css.section} aria-label={title}>
      <div className={css.sectionHead}>
        <h3>{title}</h3>
        <p>{which}</p>
      </div>
      <table className={css.waits}>
        <thead>
          <tr>
            <th className={css.number}>Time</th>
            <th>Kind</th>
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
