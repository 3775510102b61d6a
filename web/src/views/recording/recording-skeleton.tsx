import type { CSSProperties } from 'react';
import { panelShareAtom } from '../../state/preferences';
import { useAtom } from '../../state/store';
import { Skeleton } from '../parts/notice';
import css from './recording.module.css';

/** The parts of a recording's page at their places, until its summary is there. */
export function RecordingSkeleton() {
  const share = useAtom(panelShareAtom, (value) => value);
  return (
    <>
      <div className={css.answer}>
        <Skeleton lines={4} label="Loading the recording" />
      </div>
      <main className={css.split} style={{ '--panel-share': share } as CSSProperties}>
        <div className={css.left}>
          <div className={css.polesSkeleton}>
            <Skeleton lines={8} label="Loading the long poles" />
          </div>
          <Skeleton lines={14} label="Loading the trace" />
        </div>
        <div className={css.splitter} />
        <div className={css.panel}>
          <Skeleton lines={14} label="Loading the selection" />
        </div>
      </main>
    </>
  );
}
