/** Words for what a thread waited for. */
import { EVERY_WAIT_KIND, type Thread } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { formatShare } from './format';
import { KEY_OF_WAIT, labelOfWait } from './states';

/** All the time in which it was blocked. */
export function sumOfBlocked(thread: Thread): Nanos {
  return EVERY_WAIT_KIND.reduce((sum, kind) => sum + thread.blockedNanos[KEY_OF_WAIT[kind]], thread.blockedUnseenNanos as number) as Nanos;
}

/** `lock 65%`: the kind of most of its blocked time; `null` if it was never blocked. */
export function longestWait(thread: Thread): string | null {
  const all = sumOfBlocked(thread);
  if (all === 0) return null;
  const kinds = EVERY_WAIT_KIND.map((kind) => [labelOfWait(kind), thread.blockedNanos[KEY_OF_WAIT[kind]] as number] as const);
  const [label, most] = [...kinds, ['not sampled', thread.blockedUnseenNanos as number] as const].reduce((a, b) => (b[1] > a[1] ? b : a));
  return `${label} ${formatShare(most / all)}`;
}
