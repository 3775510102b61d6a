import type { NodeIndex } from '../../base/brand';
import { at } from '../../base/column';
import { ratio } from '../../base/math';
import type { FlameEngine } from '../../canvas/flame-engine';
import { valueInWords } from '../../logic/drawn-flame';
import { boxesOnScreen, boxInWords, type FlameLevels, LEVEL_HEIGHT, samplesOf, selfOfBox, titleOfBox } from '../../logic/flame-graph';
import { statesInWords } from '../../logic/flame-legend';
import { counted, formatPlace, formatShare } from '../../logic/format';
import { useAtom } from '../../state/store';
import css from './recording.module.css';

/** Limits of the boxes for keyboard and screen reader: the least width in pixels, and the number of boxes. */
const MIRRORED_WIDTH_MIN = 6;
const MIRRORED_MAX = 300;

/** What a box shows, for the card beside the pointer. */
export function BoxCard({ graph, node }: { readonly graph: FlameLevels; readonly node: NodeIndex }) {
  const { flame, boxes } = graph;
  const isRun = boxes.folded.has(node);
  const frame = isRun ? undefined : flame.frames[at(flame.nodes.frame, node)];
  const total = at(flame.nodes.totalNanos, node);
  const self = selfOfBox(graph, node);
  const samples = samplesOf(flame, total);
  const states = statesInWords(flame, node);
  return (
    <>
      <strong>{titleOfBox(graph, node)}</strong>
      {isRun && <p>not the program’s own code; click to unfold</p>}
      {frame !== undefined && frame.file !== '' && <p>{formatPlace(frame.file, at(flame.nodes.line, node))}</p>}
      {frame?.reason !== null && frame?.reason !== undefined && <p>no function name: {frame.reason}</p>}
      <dl>
        <dt>total</dt>
        <dd>
          {valueInWords(flame, total)} · {formatShare(ratio(total, flame.weightNanos))}
          {samples !== null && ` · ${counted(samples, 'sample')}`}
        </dd>
        <dt>self</dt>
        <dd>
          {valueInWords(flame, self)} · {formatShare(ratio(self, flame.weightNanos))}
        </dd>
        {states !== '' && (
          <>
            <dt>states</dt>
            <dd>{states}</dd>
          </>
        )}
      </dl>
    </>
  );
}

/** The boxes on the screen as buttons over the canvas, for the keyboard, screen readers and tests. */
export function BoxesMirror({
  engine,
  selected,
  tabNode,
  onActivate,
}: {
  readonly engine: FlameEngine;
  /** Functions whose boxes are highlighted. */
  readonly selected: ReadonlySet<number>;
  readonly tabNode: NodeIndex;
  readonly onActivate: (node: NodeIndex) => void;
}) {
  const { pointer } = engine;
  const graph = useAtom(engine.layout, (layout) => layout.graph);
  const view = useAtom(engine.view, (value) => value);
  const { width, height } = useAtom(engine.size, (value) => value);
  const boxes = boxesOnScreen(graph, view, width, height, MIRRORED_WIDTH_MIN, MIRRORED_MAX);
  const tabStop = boxes.some(({ node }) => node === tabNode) ? tabNode : boxes[0]?.node;
  const focus = (focused: NodeIndex | null) => pointer.set({ ...pointer.get(), focused });
  return (
    <ul className={css.flameBoxes} aria-label="Functions of the flame graph, callers first">
      {boxes.map((box) => (
        <li key={box.node} style={{ left: box.x, top: box.y, width: box.width, height: LEVEL_HEIGHT }}>
          <button
            type="button"
            data-node={box.node}
            tabIndex={box.node === tabStop ? 0 : -1}
            aria-label={boxInWords(graph, box.node)}
            {...(graph.boxes.folded.has(box.node)
              ? { 'aria-expanded': false }
              : { 'aria-pressed': selected.has(at(graph.flame.nodes.frame, box.node)) })}
            onFocus={() => focus(box.node)}
            onBlur={() => focus(null)}
            // The container handles mouse clicks; this click comes from the keyboard or a screen reader.
            onClick={(event) => {
              if (event.detail === 0 && !event.shiftKey) onActivate(box.node);
            }}
          />
        </li>
      ))}
    </ul>
  );
}
