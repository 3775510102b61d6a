import { MARGIN, type PlotSize, type Tick } from '../../logic/scatter';

/** The times of a plot with lines through it, and the lines to the left of it and below. */
export function TimeAxis({
  size,
  ticks,
  frame,
}: {
  readonly size: PlotSize;
  readonly ticks: readonly Tick[];
  readonly frame: string | undefined;
}) {
  const [right, bottom] = [size.width - MARGIN.right, size.height - MARGIN.bottom];
  return (
    <>
      {ticks.map(({ place, label }) => (
        <g key={place}>
          <line x1={place} x2={place} y1={MARGIN.top} y2={bottom} />
          <text x={place} y={bottom + 15} textAnchor={place > right - 20 ? 'end' : 'middle'}>
            {label}
          </text>
        </g>
      ))}
      <path className={frame} d={`M${MARGIN.left} ${MARGIN.top}V${bottom}H${right}`} />
    </>
  );
}
