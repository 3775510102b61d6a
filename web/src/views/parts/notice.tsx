import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { ApiError } from '../../api/error';
import { useIsServer } from '../../state/queries';
import { CheckIcon, CopyIcon, WarnIcon } from './icons';
import css from './parts.module.css';
import { IconButton } from './tip';

/** A fact that readers need to understand the numbers. */
export function Notice({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className={css.notice} role="note">
      <WarnIcon />
      <p>
        <strong>{title}</strong> {children}
      </p>
    </div>
  );
}

/** A command to copy. */
export function Command({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <span className={css.command}>
      <code>{text}</code>
      <IconButton
        label={copied ? 'Copied' : `Copy: ${text}`}
        onClick={() => {
          navigator.clipboard.writeText(text).then(
            () => setCopied(true),
            // Without permission, the reader can still select the text by hand.
            () => setCopied(false),
          );
        }}
      >
        {copied ? <CheckIcon /> : <CopyIcon />}
      </IconButton>
    </span>
  );
}

function explain(error: unknown): {
  readonly title: string;
  readonly text: string;
  readonly command: string | null;
  readonly code: string;
} {
  if (!(error instanceof ApiError)) {
    return { title: 'This page has a bug', text: String(error), command: null, code: 'page_bug' };
  }
  const { code, message } = error;
  switch (error.kind) {
    case 'unauthorized':
      return {
        title: 'This page needs the token from your terminal',
        text: 'Open the URL that “longpole open” printed. It has a token that keeps other users of this machine out. For a new URL, run',
        command: 'longpole open',
        code,
      };
    case 'gone':
      return {
        title: 'The longpole server has stopped',
        text: '“longpole open” was stopped, or the machine was suspended. Loaded data stays usable. To continue, run',
        command: 'longpole open',
        code,
      };
    case 'not_found':
      return message.includes('trace')
        ? { title: 'Trace not found', text: `${sentence(message)}. The server keeps traces only for some time.`, command: null, code }
        : { title: 'Not found', text: `${sentence(message)}.`, command: 'longpole ls', code };
    case 'malformed':
      return {
        title: 'This page cannot read the server’s response',
        text: `${message}. If longpole was updated while this page was open, reload the page. Otherwise, please report this bug with the line below.`,
        command: null,
        code,
      };
    case 'refused':
      if (code === 'still_recording') return { title: 'This run is still running', text: `${message}.`, command: null, code };
      return { title: 'The server could not respond', text: `${message}.`, command: null, code };
  }
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Ways on from a page that has nothing. */
export function LinksToLists() {
  const isServer = useIsServer();
  return (
    <p>
      {isServer && (
        <>
          <Link to="/search">All traces</Link>
          {' · '}
        </>
      )}
      <Link to={isServer ? '/recordings' : '/'}>All recordings</Link>
    </p>
  );
}

/** An error: what failed, why, and what to do next. `isPage`: the page has nothing else. */
export function Failure({
  error,
  retry,
  isPage = false,
}: {
  readonly error: unknown;
  readonly retry?: (() => void) | undefined;
  readonly isPage?: boolean;
}) {
  const { title, text, command, code } = explain(error);
  // A retry does not help if the recording does not exist or the token is missing.
  const canHelp = error instanceof ApiError && (error.kind === 'gone' || error.kind === 'refused');
  return (
    <div className={css.failure} role="alert">
      {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
      <p>{text}</p>
      {command !== null && <Command text={command} />}
      {retry !== undefined && canHelp && (
        <button type="button" className={css.button} onClick={retry}>
          Try again
        </button>
      )}
      {isPage && <LinksToLists />}
      <p className={css.failureCode}>
        <code>
          {code}
          {error instanceof ApiError && ` · ${error.path}`}
        </code>
      </p>
    </div>
  );
}

/** A placeholder while data loads; it appears only after 150 ms. */
export function Skeleton({ lines, label }: { readonly lines: number; readonly label: string }) {
  return (
    <div className={css.skeleton} role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are alike and never change places
        <span key={line} />
      ))}
    </div>
  );
}
