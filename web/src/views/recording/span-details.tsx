import { type ReactNode, useState } from 'react';
import type { Attribute, Span } from '../../api/types.gen';
import { counted, formatCommand, formatDuration, formatExit, formatValue } from '../../logic/format';
import type { SelectionActions } from '../../state/selection';
import { ProcessUsageFacts } from './process-usage';
import css from './recording.module.css';

/** A value above the maximum (often a stack trace) shows only its first characters, so that it does not push all else off the screen. */
const VALUE_CHARACTERS_MAX = 320;
const VALUE_CHARACTERS = 160;

function Value({ value }: { readonly value: Attribute['value'] }) {
  const [whole, setWhole] = useState(false);
  const text = formatValue(value);
  if (text.length <= VALUE_CHARACTERS_MAX) return text;
  return (
    <>
      {whole ? text : `${text.slice(0, VALUE_CHARACTERS)}…`}{' '}
      <button type="button" className={css.linkButton} aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? 'less' : `all ${counted(text.length, 'character')}`}
      </button>
    </>
  );
}

function Pairs({ attributes }: { readonly attributes: readonly Attribute[] }) {
  return (
    <dl className={css.pairs}>
      {attributes.map(({ key, value }, index) => [
        // biome-ignore lint/suspicious/noArrayIndexKey: a key may occur twice, and the list never changes
        <dt key={`${index} key`}>{key}</dt>,
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <dd key={`${index} value`}>
          <Value value={value} />
        </dd>,
      ])}
    </dl>
  );
}

function Details({
  title,
  count,
  open = false,
  children,
}: {
  readonly title: string;
  readonly count?: number;
  readonly open?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <details className={css.details} open={open}>
      <summary>
        {title} {count !== undefined && <span>{count}</span>}
      </summary>
      <div>{children}</div>
    </details>
  );
}

/** Attributes, events and links of the span, and the process and resource it ran in. */
export function SpanDetails({ span, actions }: { readonly span: Span; readonly actions: SelectionActions }) {
  const ids: Attribute[] = [];
  if (span.traceId !== null) ids.push({ key: 'trace id', value: span.traceId });
  if (span.spanId !== null) ids.push({ key: 'span id', value: span.spanId });
  ids.push({ key: 'kind', value: span.kind });
  return (
    <>
      {span.attributes.length > 0 && (
        <Details title="Attributes" count={span.attributes.length} open>
          <Pairs attributes={span.attributes} />
        </Details>
      )}
      {span.events.length > 0 && (
        <Details title="Events" count={span.events.length} open>
          <ul className={css.events}>
            {span.events.map((event, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: events may be alike, and the list never changes
              <li key={index}>
                <strong>{event.name}</strong>{' '}
                <span className={css.muted}>{formatDuration(event.timeNanos - span.startNanos)} after the span’s start</span>
                <Pairs attributes={event.attributes} />
              </li>
            ))}
          </ul>
        </Details>
      )}
      {span.links.length > 0 && (
        <Details title="Links" count={span.links.length} open>
          <ul>
            {span.links.map(({ traceId, spanId, handle }) => (
              <li key={`${traceId} ${spanId}`}>
                {handle === null ? (
                  <>
                    <code>{spanId}</code> <span className={css.muted}>not in this recording</span>
                  </>
                ) : (
                  <button type="button" className={css.linkButton} onClick={() => actions.selectSpan(handle)}>
                    {handle}
                  </button>
                )}
              </li>
            ))}
          </ul>
        </Details>
      )}
      {span.process !== null && (
        <Details title="Process" open={span.process.usage !== null}>
          {span.process.usage !== null && <ProcessUsageFacts usage={span.process.usage} span={span} />}
          <Pairs
            attributes={[
              ...(span.process.exit === null ? [] : [{ key: 'exit', value: formatExit(span.process.exit) }]),
              { key: 'pid', value: span.process.pid },
              { key: 'name', value: span.process.name },
              { key: 'command', value: formatCommand(span.process.arguments) },
            ]}
          />
        </Details>
      )}
      {span.resource.length > 0 && (
        <Details title="Resource" count={span.resource.length}>
          <Pairs attributes={span.resource} />
        </Details>
      )}
      <Details title="Identity">
        <Pairs attributes={ids} />
      </Details>
    </>
  );
}
