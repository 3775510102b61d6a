import { useEffect, useRef } from 'react';
import type { Pole, Poles } from '../../api/types.gen';
import { ratio } from '../../base/math';
import { contextOf, nameOfPole, nameOfResource, poleInWords, wholeInWords, whyInWords } from '../../logic/answer';
import { counted, formatDuration, formatRange } from '../../logic/format';
import { namedService } from '../../logic/span-words';
import type { SelectionActions } from '../../state/selection';
import { readWithout } from '../../state/url';
import { Name } from '../parts/name';
import { EvidenceMark, Saving } from '../parts/saving';
import css from './recording.module.css';
import { WhatIfLine } from './what-if-line';
import { Why } from './why';

function PoleRow({
  pole,
  poles,
  selected,
  isWithout,
  actions,
}: {
  readonly pole: Pole;
  readonly poles: Poles;
  readonly selected: boolean;
  readonly isWithout: boolean;
  readonly actions: SelectionActions;
}) {
  const { wallNanos } = poles;
  const context = contextOf(pole);
  const service = namedService(pole.service);
  return (
    <>
      {/* Keyboard and screen readers use the button in the row; the mouse can click anywhere in the two rows of a pole. */}
      <tr aria-current={selected} onClick={() => actions.selectPole(pole)}>
        <td className={css.poleHandle}>{pole.handle}</td>
        <td className={css.cellName}>
          <button type="button" className={css.poleName} title={poleInWords(pole)} aria-label={poleInWords(pole)}>
            <Name text={nameOfPole(pole)} />
            {pole.count > 1 && <span>&nbsp;×{pole.count}</span>}
          </button>
          <small
            className={css.poleContext}
            title={pole.resource ?? [...(context === null ? [] : [`in ${context}`]), ...(service === '' ? [] : [service])].join(' · ')}
          >
            {context !== null && (
              <span className={css.inContext}>
                in&nbsp;
                <Name text={context} end={nameOfResource(pole)} />
              </span>
            )}
            <span className={css.ellipsis}>
              {context !== null && service !== '' && <>&nbsp;·&nbsp;</>}
              {service}
            </span>
          </small>
        </td>
        <td className={`${css.number} ${css.cellPath}`}>{formatDuration(pole.onPathNanos)}</td>
        <td>
          <Saving
            range={pole.savesIfZeroNanos}
            evidence={pole.evidence}
            shares={{ low: ratio(pole.savesIfZeroNanos.low, wallNanos), high: ratio(pole.savesIfZeroNanos.high, wallNanos) }}
          />
          {pole.savesOwnNanos.high < pole.savesIfZeroNanos.high && (
            <small title="saving if only its own time, without its children, were zero; the table is sorted by this saving">
              own time only {formatRange(pole.savesOwnNanos)}
            </small>
          )}
          {pole.savesWithThoseBeforeNanos !== null && pole !== poles.poles[0] && (
            <small title="saving if this pole and all above it took no time; savings of parallel operations do not simply add up">
              + all above {formatRange(pole.savesWithThoseBeforeNanos)}
            </small>
          )}
        </td>
        <td className={css.cellHalf}>
          <EvidenceMark evidence={pole.evidence} /> {formatRange(pole.savesIfHalfNanos)}
        </td>
      </tr>
      <tr className={css.whyRow} onClick={() => actions.selectPole(pole)}>
        <td className={css.withoutCell}>
          <label title={`what the ${wholeInWords(poles.of)} would take without ${pole.handle}`}>
            <input
              type="checkbox"
              checked={isWithout}
              aria-label={`without ${pole.handle}`}
              onClick={(event) => event.stopPropagation()}
              onChange={() => actions.toggleWithout(pole.handle)}
            />
          </label>
        </td>
        <td colSpan={4}>
          <span className={css.whyText} title={whyInWords(pole)}>
            <Why pole={pole} poles={poles} actions={actions} />
          </span>
        </td>
      </tr>
    </>
  );
}

/** The poles to fix, largest saving first. */
export function PolesTable({
  poles,
  isWhole,
  selected,
  without,
  actions,
}: {
  readonly poles: Poles;
  /** Whether these are all poles that the server lists. */
  readonly isWhole: boolean;
  readonly selected: string | null;
  /** The poles that the run is imagined without: `p1.p3`. */
  readonly without: string | undefined;
  readonly actions: SelectionActions;
}) {
  const table = useRef<HTMLDivElement>(null);
  const whole = wholeInWords(poles.of);
  const gone = without === undefined ? [] : readWithout(without);
  // When a selection comes from elsewhere, scroll only the table, not its container.
  useEffect(() => {
    const row = selected === null ? null : table.current?.querySelector('tr[aria-current="true"]');
    if (table.current === null || row === null || row === undefined) return;
    const [seen, wanted] = [table.current.getBoundingClientRect(), row.getBoundingClientRect()];
    const head = table.current.querySelector('th')?.offsetHeight ?? 0;
    if (wanted.top < seen.top + head) table.current.scrollTop -= seen.top + head - wanted.top;
    else if (wanted.bottom > seen.bottom) table.current.scrollTop += wanted.bottom - seen.bottom;
  }, [selected]);
  return (
    <section className={poles.poles.length > 0 ? css.poles : css.noPoles} aria-label="Long poles">
      <div className={css.bar}>
        <h2>Long poles</h2>
        <p className={css.polesRemark}>
          how much sooner the {whole} would end · check poles to sum them · dependencies ◆ certain ◇ inferred
        </p>
      </div>
      {without !== undefined && gone.length > 0 && <WhatIfLine poles={poles} without={without} actions={actions} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach every scroll container */}
      <div ref={table} className={css.polesScroll} tabIndex={0} role="group" aria-label="Table of long poles">
        {poles.poles.length > 0 && (
          <table className={css.polesTable}>
            <thead>
              <tr>
                <th className={css.colHandle}>#</th>
                <th>Operation</th>
                <th
                  className={`${css.colPath} ${css.number}`}
                  title="time on the critical path spent in the operation itself, not in a child"
                >
                  On path
                </th>
                <th
                  className={css.colSaves}
                  title={`how much sooner the ${whole} would end if the operation and all its descendants took no time`}
                >
                  Saves
                </th>
                <th
                  className={css.colHalf}
                  title={`how much sooner the ${whole} would end if the operation and all its descendants took half the time`}
                >
                  2× faster
                </th>
              </tr>
            </thead>
            <tbody>
              {poles.poles.map((pole) => (
                <PoleRow
                  key={pole.handle}
                  pole={pole}
                  poles={poles}
                  selected={pole.handle === selected}
                  isWithout={gone.includes(pole.handle)}
                  actions={actions}
                />
              ))}
            </tbody>
          </table>
        )}
        {poles.poles.length === 0 && <p className={css.more}>No span or process spent time of its own on the critical path.</p>}
        {isWhole && poles.truncated.poles > 0 && (
          <p className={css.more}>
            {counted(poles.truncated.poles, 'smaller pole')} not shown: <code>longpole poles {poles.recording}</code>
          </p>
        )}
      </div>
    </section>
  );
}
