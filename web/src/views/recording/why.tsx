import type { Pole, Poles } from '../../api/types.gen';
import { containedPole, poleInWords, reasonPieces } from '../../logic/answer';
import { counted, formatPlace } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import type { SelectionActions } from '../../state/selection';
import css from './recording.module.css';

/** The operation that ends last if the pole takes no time. */
function Limit({ limit, actions }: { readonly limit: NonNullable<Pole['limitedBy']>; readonly actions: SelectionActions }) {
  return (
    <>
      ; then{' '}
      <button
        type="button"
        className={css.linkButton}
        title={`${limit.name} (${limit.handle})`}
        onClick={(event) => {
          event.stopPropagation();
          actions.selectSpan(limit.handle);
        }}
      >
        {limit.name}
      </button>{' '}
      ends last
    </>
  );
}

/**
 * Why a pole is long: the pole it contains, its samples and waits, and what limits its saving. The pole, the function and the span in the text are
 * links.
 */
export function Why({ pole, poles, actions }: { readonly pole: Pole; readonly poles: Poles; readonly actions: SelectionActions }) {
  const { before, function: named, after } = reasonPieces(pole);
  const inner = containedPole(pole, poles);
  return (
    <>
      {pole.contains !== null && (
        <>
          contains{' '}
          {inner === null ? (
            pole.contains
          ) : (
            <button
              type="button"
              className={css.linkButton}
              title={poleInWords(inner)}
              onClick={(event) => {
                // A click on the table row would select the row's own pole.
                event.stopPropagation();
                actions.selectPole(inner);
              }}
            >
              {inner.handle}
            </button>
          )}
          ;{' '}
        </>
      )}
      {before}
      {named !== null && (
        <button
          type="button"
          className={css.codeLink}
          title={named.frame === null ? named.name : `${named.name}\n${formatPlace(named.frame.file, named.frame.line)}`}
          onClick={(event) => {
            event.stopPropagation();
            if (named.frame === null) actions.selectWaits(pole);
            else actions.selectPole(pole, 0, named.frame.handle);
          }}
        >
          {shortName(named.name)}
        </button>
      )}
      {after}
      {pole.fewSamples && pole.samples > 0 && ` (only ${counted(pole.samples, 'sample')})`}
      {pole.blockedBy !== null && `; ${pole.blockedBy.text}`}
      {pole.limitedBy !== null && <Limit limit={pole.limitedBy} actions={actions} />}
    </>
  );
}
