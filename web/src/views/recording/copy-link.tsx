import { useCallback, useEffect, useMemo, useState } from 'react';
import { commandList, useCommands } from '../../state/commands';
import { linkToHere } from '../../state/link';
import { useIsServer } from '../../state/queries';
import { CheckIcon, CopyIcon } from '../parts/icons';
import parts from '../parts/parts.module.css';

const COPIED_MILLIS = 1500;

/** Copies a link to what the page shows: the selection, the search, the range. */
export function CopyLink() {
  const isServer = useIsServer();
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null);
  useEffect(() => {
    if (outcome === null) return undefined;
    const timer = setTimeout(() => setOutcome(null), COPIED_MILLIS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = useCallback((): void => {
    linkToHere(isServer)
      .then((link) => navigator.clipboard.writeText(link))
      .then(
        () => setOutcome('copied'),
        () => setOutcome('failed'),
      );
  }, [isServer]);
  const source = useMemo(() => commandList([{ id: 'copy link', title: 'Copy a link to this view', kind: 'action', run: copy }]), [copy]);
  useCommands(source);
  const explanation = isServer
    ? 'Copy a link to this view'
    : 'Copy a link to this view: it opens in any browser of yours while “longpole open” runs, tomorrow too';
  return (
    <button type="button" className={parts.button} title={explanation} onClick={copy}>
      {outcome === 'copied' ? <CheckIcon /> : <CopyIcon />}
      <span className={parts.toolLabel} aria-live="polite">
        {outcome === null ? 'Copy link' : outcome === 'copied' ? 'Copied' : 'Could not copy'}
      </span>
    </button>
  );
}
