import { useEffect, useRef, useState } from 'react';
import { ApiError } from '../../api/error';
import { openedFileAtom, useOpenFile } from '../../state/opened-file';
import { useIsServer } from '../../state/queries';
import { useAtom } from '../../state/store';
import { CloseIcon } from './icons';
import parts from './parts.module.css';
import { IconButton } from './tip';

const holdsFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') === true;

/** Takes files that are dropped anywhere on a page of a server, and says how far that is. */
export function FileDrop() {
  const isServer = useIsServer();
  const open = useOpenFile();
  const opened = useAtom(openedFileAtom, (value) => value);
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!isServer) return undefined;
    const onOver = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const onLeave = (event: DragEvent): void => {
      // It left the window, and did not go on to an element inside.
      if (event.relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file !== undefined) void open(file);
    };
    window.addEventListener('dragover', onOver);
    window.addEventListener('dragleave', onLeave);
    window.addEventListener('drop', onDrop);
    return () => {
      window.removeEventListener('dragover', onOver);
      window.removeEventListener('dragleave', onLeave);
      window.removeEventListener('drop', onDrop);
    };
  }, [isServer, open]);

  const error = opened?.error ?? null;
  return (
    <>
      {isOver && (
        <div className={parts.dropHere} aria-hidden="true">
          <p>Drop a trace, a profile or a recording to open it</p>
        </div>
      )}
      {opened !== null && (
        <div className={parts.openedFile} role={error === null ? 'status' : 'alert'}>
          <p>
            {error === null ? (
              <>
                Reading <code>{opened.name}</code> …
              </>
            ) : (
              <>
                <code>{opened.name}</code>: {error instanceof ApiError ? error.message : String(error)}
              </>
            )}
          </p>
          {error !== null && (
            <IconButton label="Close" onClick={() => openedFileAtom.set(null)}>
              <CloseIcon />
            </IconButton>
          )}
        </div>
      )}
    </>
  );
}

/** The same for those who choose a file from a list. */
export function OpenFileButton() {
  const open = useOpenFile();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        className={parts.button}
        title="Open a trace (OpenTelemetry, Jaeger, Zipkin, AppDash), a profile (OpenTelemetry, pprof, folded stacks) or a .lpole recording; the server keeps it as a recording. You can also drop the file on the page."
        onClick={() => input.current?.click()}
      >
        Open a file…
      </button>
      <input
        ref={input}
        type="file"
        className={parts.visuallyHidden}
        aria-label="File to open"
        tabIndex={-1}
        onChange={({ target }) => {
          const file = target.files?.[0];
          target.value = '';
          if (file !== undefined) void open(file);
        }}
      />
    </>
  );
}
