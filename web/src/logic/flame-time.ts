/** Which time a flame graph shows, in words. */
import type { Flame, FlameTime } from '../api/types';
import { counted } from './format';
import { linkedSamples, linksInWords } from './quality';

/** Shorter waits are not looked at. */
const WAIT_LEAST = '5\u00a0ms';

/** What can be chosen, in this order. */
export const FLAME_TIME_WORDS: readonly { readonly time: FlameTime; readonly label: string; readonly explanation: string }[] = [
  { time: 'on_cpu', label: 'on-CPU', explanation: 'where code was running' },
  {
    time: 'off_cpu',
    label: 'blocked',
    explanation: `where threads waited, for ${WAIT_LEAST} or longer and now and then for less; threads that wait for work are left out`,
  },
  { time: 'wall', label: 'both', explanation: 'where code was running, and where threads waited' },
];

/** `12 samples`, `3 samples and waits`. */
export function numberInWords(flame: Flame): string {
  if (flame.time === 'off_cpu') return counted(flame.samples, 'wait');
  return flame.time === 'wall' ? counted(flame.samples, 'sample or wait', 'samples and waits') : counted(flame.samples, 'sample');
}

/** What a graph is made of: samples by how they were tied to spans, and waits. */
export function madeOfInWords(flame: Flame): string {
  const waits = flame.samples - linkedSamples(flame.links);
  const waitsInWords = `${counted(waits, 'wait')} that ${waits === 1 ? 'was' : 'were'} seen`;
  if (flame.time === 'off_cpu') return waitsInWords;
  return waits > 0 ? `${linksInWords(flame.links)}; ${waitsInWords}` : linksInWords(flame.links);
}
