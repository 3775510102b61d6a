import type { Pole, Poles } from '../../api/types';
import { ratio } from '../../base/math';
import { contextOf } from '../../logic/answer';
import { counted, formatDuration, formatRange } from '../../logic/format';
import type { SelectionActions } from '../../state/selection';
import { EvidenceMark, Saving } from '../parts/saving';
import css from './recording.module.css';

function PoleRow({
  pole,
  wallNanos,
  selected,
  onSelect,
}: {
  readonly pole: Pole;
  readonly wallNanos: Poles['wallNanos'];
  readonly selected: boolean;
  readonly onSelect: () => void;
}) {
  const context = contextOf(pole);
  return (
    // The button in the row is what the keyboard and a screen reader use; a click anywhere else in the row is for the mouse.
    <tr aria-current={selected} onClick={onSelect}>
      <td className={css.poleHandle}>{pole.handle}</td>
      <td>
        <button type="button" className={css.poleName} title={pole.name}>
          {pole.name}
          {pole.count > 1 && ` ×${pole.count}`}
        </button>
        <small title={context === null ? pole.service : `${pole.service} · in ${context}`}>
          {pole.service}
          {context !== null && ` · in ${context}`}
        </small>
      </td>
      <td className={css.number}>{formatDuration(pole.onPathNanos)}</td>
      <td>
        <Saving
          range={pole.savesIfZero}
          evidence={pole.evidence}
          shares={{ low: ratio(pole.savesIfZero.low, wallNanos), high: ratio(pole.savesIfZero.high, wallNanos) }}
        />
      </td>
      <td className={css.cellHalf}>
        <EvidenceMark evidence={pole.evidence} /> {formatRange(pole.savesIfHalf)}
        {pole.savesOwn.high < pole.savesIfZero.high && (
          <small title="if only its own time, outside its children, were zero: the order of this list">
            own {formatRange(pole.savesOwn)}
          </small>
        )}
      </td>
      <td className={css.cellWhy}>
        <span className={css.whyText} title={pole.reason.text}>
          {pole.reason.text}
          {pole.fewSamples && pole.samples > 0 && ` (only ${counted(pole.samples, 'sample')})`}
        </span>
      </td>
    </tr>
  );
}

/** What to fix, in the order of what it would save. */
export function PolesTable({
  poles,
  selected,
  actions,
}: {
  readonly poles: Poles;
  readonly selected: string | null;
  readonly actions: SelectionActions;
}) {
  return (
    <section className={poles.poles.length > 0 ? css.poles : css.noPoles} aria-label="Long poles">
      <div className={css.bar}>
        <h2>Long poles</h2>
        <p className={css.polesRemark}>what the run would end earlier without it · ◆ declared ◇ inferred</p>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by the keyboard */}
      <div className={css.polesScroll} tabIndex={0} role="group" aria-label="Table of long poles">
        {poles.poles.length > 0 && (
          <table className={css.polesTable}>
            <thead>
              <tr>
                <th className={css.colHandle}>#</th>
                <th>Operation</th>
                <th className={`${css.colPath} ${css.number}`} title="time of the critical path in which it was the innermost span">
                  On path
                </th>
                <th className={css.colSaves} title="how much earlier the run would end if it, with all below it, took no time">
                  Saves if 0
                </th>
                <th className={css.colHalf} title="how much earlier the run would end if it, with all below it, took half its time">
                  Saves if ½
                </th>
                <th className={css.colWhy}>Why</th>
              </tr>
            </thead>
            <tbody>
              {poles.poles.map((pole) => (
                <PoleRow
                  key={pole.handle}
                  pole={pole}
                  wallNanos={poles.wallNanos}
                  selected={pole.handle === selected}
                  onSelect={() => actions.selectPole(pole)}
                />
              ))}
            </tbody>
          </table>
        )}
        {poles.poles.length === 0 && <p className={css.more}>No span lies on the critical path of this run.</p>}
        {poles.polesTruncated > 0 && (
          <p className={css.more}>
            {counted(poles.polesTruncated, 'smaller pole')} not shown: <code>longpole poles {poles.recording}</code>
          </p>
        )}
      </div>
    </section>
  );
}
