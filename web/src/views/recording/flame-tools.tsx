import { Toggle } from '@base-ui/react/toggle';
import type { FlameEngine } from '../../canvas/flame-engine';
import { levelsAbove } from '../../logic/flame-graph';
import type { Unfolded } from '../../logic/foreign-runs';
import { counted } from '../../logic/format';
import { useAtom } from '../../state/store';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/** What a flame graph does not show, and buttons that show it: runs of foreign frames, and callers above its box. */
export function FlameTools({
  engine,
  unfolded,
  onFoldForeign,
}: {
  readonly engine: FlameEngine;
  readonly unfolded: Unfolded;
  readonly onFoldForeign: (isFolded: boolean) => void;
}) {
  const { graph, topMax } = useAtom(engine.layout, (layout) => layout);
  const above = useAtom(engine.view, levelsAbove);
  if (!graph.boxes.hasRuns && topMax === 0) return null;
  return (
    <div className={css.flameTools}>
      {graph.boxes.hasRuns && (
        <Toggle
          className={parts.button}
          pressed={unfolded !== 'all'}
          onPressedChange={onFoldForeign}
          title="draw consecutive frames of libraries, the language and the system as one box"
        >
          fold foreign frames
        </Toggle>
      )}
      {unfolded !== 'all' && unfolded.size > 0 && (
        <button type="button" className={parts.button} onClick={() => onFoldForeign(true)}>
          Fold {counted(unfolded.size, 'run')} again
        </button>
      )}
      {above > 0 && (
        <button type="button" className={parts.button} onClick={() => engine.setTop(0)} title="show the root of the graph">
          ↑ {counted(above, 'level')} of callers above
        </button>
      )}
    </div>
  );
}
