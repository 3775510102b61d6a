import type { Piece, Pole, Poles } from '../../api/types.gen';
import { containedPole, containsInWords, frameOfPiece, limitInWords, placeInWords, poleInWords, withinInWords } from '../../logic/answer';
import { counted, formatPlace } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import type { SelectionActions } from '../../state/selection';
import css from './recording.module.css';

/** The operation that is on the path if the pole takes no time. */
function Limit({
  pole,
  limit,
  actions,
}: {
  readonly pole: Pole;
  readonly limit: NonNullable<Pole['limitedBy']>;
  readonly actions: SelectionActions;
}) {
  const [before, after] = limitInWords(pole);
  return (
    <>
      ; {before}
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
      </button>
      {withinInWords(limit)}
      {after}
    </>
  );
}

/** A piece of the reason. A function of the samples, and one that waits, is a link to its time. */
function ReasonPiece({ piece, pole, actions }: { readonly piece: Piece; readonly pole: Pole; readonly actions: SelectionActions }) {
  if (piece.kind === 'text') return piece.text;
  const frame = frameOfPiece(pole, piece);
  if (piece.kind === 'function' && frame === null) return <span title={piece.text}>{shortName(piece.text)}</span>;
  return (
    <button
      type="button"
      className={css.codeLink}
      title={frame === null ? piece.text : `${piece.text}\n${formatPlace(frame.file, frame.line)}`}
      onClick={(event) => {
        event.stopPropagation();
        if (frame === null) actions.selectWaits(pole);
        else actions.selectPole(pole, 0, frame.handle);
      }}
    >
      {shortName(piece.text)}
    </button>
  );
}

/**
 * Why a pole is long: the pole it contains, its samples and waits, and what limits its saving. The pole, the functions and the span in the text
 * are links.
 */
export function Why({ pole, poles, actions }: { readonly pole: Pole; readonly poles: Poles; readonly actions: SelectionActions }) {
  const inner = containedPole(pole, poles);
  return (
    <>
      {pole.contains !== null && (
        <>
          {containsInWords(pole)}{' '}
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
      {placeInWords(pole)}
      {pole.reason.pieces.map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a function may occur twice, and the list never changes
        <ReasonPiece key={index} piece={piece} pole={pole} actions={actions} />
      ))}
      {pole.fewSamples && pole.samples > 0 && pole.reason.code !== 'waits' && ` (only ${counted(pole.samples, 'sample')})`}
      {pole.blockedBy !== null && `; ${pole.blockedBy.text}`}
      {pole.limitedBy !== null && <Limit pole={pole} limit={pole.limitedBy} actions={actions} />}
    </>
  );
}
