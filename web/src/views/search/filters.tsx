import type { Service } from '../../api/types.gen';
import type { TracesSearch } from '../../logic/traces-search';
import parts from '../parts/parts.module.css';
import css from './search.module.css';

function Choice(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly onChange: (value: string) => void;
}) {
  return (
    <label className={`${parts.field} ${css.field}`}>
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.target.value)}>
        <option value="">any</option>
        {props.options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}

function Words(props: {
  readonly label: string;
  readonly title?: string;
  readonly value: string;
  readonly placeholder: string;
  readonly wide?: boolean;
  readonly onChange: (value: string) => void;
}) {
  return (
    <label className={`${parts.field} ${css.field} ${props.wide === true ? css.wide : ''}`} title={props.title}>
      <span>{props.label}</span>
      <input value={props.value} placeholder={props.placeholder} onChange={(event) => props.onChange(event.target.value)} />
    </label>
  );
}

/** What a span of a trace must have. */
export function Filters({
  services,
  search,
  change,
}: {
  readonly services: readonly Service[];
  readonly search: TracesSearch;
  readonly change: (part: TracesSearch) => void;
}) {
  const service = services.find(({ name }) => name === search.service);
  return (
    <form className={css.filters} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Choice
        label="Service"
        value={search.service ?? ''}
        options={services.map(({ name }) => name)}
        onChange={(value) => change({ service: value, operation: '' })}
      />
      <Choice
        label="Operation"
        value={search.operation ?? ''}
        options={service?.operations ?? []}
        onChange={(value) => change({ operation: value })}
      />
      <Words
        label="Attributes"
        wide
        value={search.tags ?? ''}
        placeholder="http.status_code=500 error=true"
        onChange={(value) => change({ tags: value })}
      />
      <Words
        label="Min span duration"
        title="shortest duration of the span that matches; drag in the plot for the duration of the trace"
        value={search.minDuration ?? ''}
        placeholder="100ms"
        onChange={(value) => change({ minDuration: value })}
      />
      <Words
        label="Max span duration"
        title="longest duration of the span that matches; drag in the plot for the duration of the trace"
        value={search.maxDuration ?? ''}
        placeholder="1.5s"
        onChange={(value) => change({ maxDuration: value })}
      />
      <label className={`${parts.field} ${css.field}`}>
        <span>Order</span>
        <select value={search.sort ?? ''} onChange={(event) => change({ sort: event.target.value === 'longest' ? 'longest' : '' })}>
          <option value="">newest first</option>
          <option value="longest">longest first</option>
        </select>
      </label>
    </form>
  );
}
