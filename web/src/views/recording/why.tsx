import type { Pole, Poles } from '../../api/types';
import { containedPole, poleInWords, reasonPieces } from '../../logic/answer';
import { counted, formatPlace } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import type { SelectionActions } from '../../state/selection';
import css from './recording.module.css';

/** Why a pole is long: whose saving its own contains, and what its samples say. The pole and the function in it can be gone to. */
export function Why({ pole, poles, actions }: { readonly pole: Pole; readonly poles: Poles; readonly actions: SelectionActions }) {
  const { before, frame, after } = reasonPieces(pole);
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
                // A row of the table is itself clicked to select its pole.
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
      {frame !== null && (
        <button
          type="button"
          className={css.codeLink}
          title={`${frame.function}\n${formatPlace(frame.file, frame.line)}`}
          onClick={(event) => {
            event.stopPropagation();
            actions.selectPole(pole, 0, frame.handle);
          }}
        >
          {shortName(frame.function)}
        </button>
      )}
      {after}
      {pole.fewSamples && pole.samples > 0 && ` (only ${counted(pole.samples, 'sample')})`}
    </>
  );
}
