/** States of a server that its pages share: it has no spans yet, its first span has arrived, or it is gone. */
import type { UseQueryResult } from '@tanstack/react-query';
import { useRef } from 'react';
import { ApiError } from '../../api/error';
import { firstSpans } from '../../logic/first-span';
import { useReceivers } from '../../state/queries';
import { StepsByLanguage } from '../parts/first-steps';
import { CheckIcon } from '../parts/icons';
import list from '../parts/list.module.css';
import parts from '../parts/parts.module.css';
import css from './search.module.css';

/** What to do before the first span has arrived. */
export function FirstSpan() {
  const { host, otlpHttpPort, otlpGrpcPort, zipkinPort, needsToken } = useReceivers();
  return (
    <div className={list.empty}>
      <div role="status">
        <h2>Waiting for the first span</h2>
        <p>This page shows spans as soon as they arrive.</p>
      </div>
      <StepsByLanguage
        languages={firstSpans(host, otlpHttpPort, needsToken)}
        legend="How a program sends its first span"
        needsToken={needsToken}
      />
      <p>
        OTLP over gRPC goes to port {otlpGrpcPort}, Zipkin’s spans to{' '}
        <code>
          http://{host}:{zipkinPort}/api/v2/spans
        </code>
        . A program without any instrumentation: <code>longpole run -- COMMAND</code>.
      </p>
    </div>
  );
}

/** Whether the first span came while the page was open. */
export function useHasArrived(isNew: boolean): boolean {
  const hasWaited = useRef(false);
  if (isNew) hasWaited.current = true;
  return hasWaited.current && !isNew;
}

/** Says so. */
export function Arrived({ service }: { readonly service: string }) {
  return (
    <p className={css.arrived} role="status">
      <CheckIcon />
      <span>
        The first span has arrived, from <strong>{service}</strong>.
      </span>
    </p>
  );
}

/** Whether a request failed because no server took it. */
export const isGone = (error: Error | null): boolean => error instanceof ApiError && error.kind === 'gone';

/** Whether no server took one of these requests, or the last try of one. */
export const isServerGone = (...requests: readonly Pick<UseQueryResult, 'error' | 'failureReason'>[]): boolean =>
  requests.some(({ error, failureReason }) => isGone(error) || isGone(failureReason));

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
