import { Toggle } from '@base-ui/react/toggle';
import { useId } from 'react';
import type { Nanos, SpanIndex } from '../../base/brand';
import { lowerBound } from '../../base/column';
import { counted, formatCount, formatDuration } from '../../logic/format';
import type { SelectionActions } from '../../state/selection';
import { FindInput } from '../parts/find-input';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/** What a search found. */
export interface Found {
  /** What it asks for. */
  readonly text: string;
  readonly spans: Uint32Array;
  /** Time of these rows on the critical path. */
  readonly onPath: Nanos;
  /** What is wrong with the text; `null` if nothing is. */
  readonly wrong: string | null;
  /** Whether the trace shows only these, and what they are in. */
  readonly isOnly: boolean;
}

/** `3 of 17` if one of them is selected, else `17 rows, 1.20s on path`. */
function foundInWords({ spans, onPath }: Found, selected: SpanIndex | null): string {
  const place = selected === null ? -1 : lowerBound(spans, selected);
  if (place >= 0 && spans[place] === selected) return `${formatCount(place + 1)} of ${formatCount(spans.length)}`;
  return spans.length === 0 ? 'nothing found' : `${counted(spans.length, 'row')}, ${formatDuration(onPath)} on path`;
}

/** The box to search the trace with, and what it found. Enter goes to the next row. */
export function FindBox({
  found,
  selected,
  step,
  actions,
}: {
  readonly found: Found;
  readonly selected: SpanIndex | null;
  readonly step: (direction: 1 | -1) => void;
  readonly actions: SelectionActions;
}) {
  const hint = useId();
  const isAsked = found.text !== '';
  return (
    <search className={css.find}>
      <FindInput
        text={found.text}
        find={actions.find}
        onEnter={(event) => step(event.shiftKey ? -1 : 1)}
        aria-label="Find rows of the trace"
        aria-describedby={hint}
        aria-invalid={found.wrong !== null}
        placeholder="Find: cart dur>100ms   /"
        title="words of names, services and resources; name= service= (!= for the others, ~ for a part), dur>100ms, path>1ms, status=error"
      />
      <span id={hint} role="status" className={found.wrong === null ? css.findCount : css.findWrong}>
        {isAsked && (found.wrong ?? foundInWords(found, selected))}
        {!isAsked && <span className={parts.visuallyHidden}>Words, or conditions such as dur&gt;100ms</span>}
      </span>
      {isAsked && found.spans.length > 0 && (
        <Toggle
          className={parts.button}
          pressed={found.isOnly}
          onPressedChange={actions.showOnlyFound}
          title="show only these rows and their ancestors"
        >
          only these
        </Toggle>
      )}
    </search>
  );
}
