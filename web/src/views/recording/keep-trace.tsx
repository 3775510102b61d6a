import { useKeepTrace } from '../../state/kept-trace';
import parts from '../parts/parts.module.css';

/** Makes a recording of a trace, which stays when the trace is too old to be kept. */
export function KeepTrace({ trace }: { readonly trace: string }) {
  const keep = useKeepTrace(trace);
  return (
    <>
      {keep.error !== null && (
        <span role="alert" className={parts.keepError}>
          {keep.error.message}
        </span>
      )}
      <button
        type="button"
        className={parts.button}
        disabled={keep.isPending}
        title="Make a recording of this trace: it stays when the server removes old traces"
        onClick={() => keep.mutate()}
      >
        Keep
      </button>
    </>
  );
}
