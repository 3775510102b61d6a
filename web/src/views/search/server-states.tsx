/** States of a server that its pages share: it has no spans yet, or it is gone. */
import { ApiError } from '../../api/error';
import { Command } from '../parts/notice';
import parts from '../parts/parts.module.css';
import css from './search.module.css';

/** What to do before the first span has come. */
export function First() {
  const host = window.location.hostname;
  return (
    <div className={css.empty} role="status">
      <h2>Waiting for the first span</h2>
      <p>Any OpenTelemetry SDK sends its spans here when this is set for the program; this page shows them as soon as they come.</p>
      <Command text={`OTEL_EXPORTER_OTLP_ENDPOINT=http://${host}:4318 OTEL_SERVICE_NAME=my-service`} />
      <p>
        OTLP over gRPC goes to port 4317, Zipkin’s spans to <code>http://{host}:9411/api/v2/spans</code>. A program without any
        instrumentation: <code>longpole run -- COMMAND</code>.
      </p>
    </div>
  );
}

/** Whether a request failed because no server took it. */
export const isGone = (error: Error | null): boolean => error instanceof ApiError && error.kind === 'gone';

/** The server does not respond. */
export function Gone({ isTrying, retry }: { readonly isTrying: boolean; readonly retry: () => void }) {
  return (
    <div className={css.gone} role="alert">
      <p>
        The longpole server does not respond. To start it again, run <code>longpole serve</code>.
        {isTrying && ' This page tries again every 5 seconds.'}
      </p>
      <button type="button" className={parts.button} onClick={retry}>
        Try again
      </button>
    </div>
  );
}
