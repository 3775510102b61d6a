/** Words for the time that a flame graph shows. */
import type { Flame, FlameTime } from '../api/types.gen';
import { counted } from './format';
import { linkedSamples, linksInWords } from './quality';

/** longpole samples most waits of this length or more, and some shorter ones. */
const WAIT_LEAST = '5ms';

/** The choices, in this order. */
export const FLAME_TIME_WORDS: readonly { readonly time: FlameTime; readonly label: string; readonly explanation: string }[] = [
  { time: 'on_cpu', label: 'on-CPU', explanation: 'where code ran' },
  {
    time: 'off_cpu',
    label: 'off-CPU',
    explanation: `where threads waited: most waits of ${WAIT_LEAST} or more, and some shorter ones; idle workers not included`,
  },
  { time: 'wall', label: 'wall', explanation: 'where code ran and where threads waited' },
];

/** `12 samples`, `3 samples and waits`. */
export function numberInWords(flame: Flame): string {
  if (flame.time === 'off_cpu') return counted(flame.samples, 'wait');
  return flame.time === 'wall' ? counted(flame.samples, 'sample or wait', 'samples and waits') : counted(flame.samples, 'sample');
}

/** The data behind a graph: samples by how they are matched to spans, and waits. `spans` is the number of spans in the recording. */
export function madeOfInWords(flame: Flame, spans: number): string {
  const waits = flame.samples - linkedSamples(flame.links);
  const waitsInWords = counted(waits, 'sampled wait');
  if (flame.time === 'off_cpu') return waitsInWords;
  const samplesInWords = linksInWords(flame.links, spans);
  return waits > 0 ? `${samplesInWords}; ${waitsInWords}` : samplesInWords;
}
