/** A run without some of its poles, in words. */

const LISTED_MAX = 6;

/** `p1`, `p1 and p3`, `p1, p2 and p3`; the end of a long list is a number. */
export function polesInWords(handles: readonly string[]): string {
  const last = handles.at(-1);
  if (last === undefined) return '';
  if (handles.length === 1) return last;
  if (handles.length > LISTED_MAX) return `${handles.slice(0, LISTED_MAX - 1).join(', ')} and ${handles.length - LISTED_MAX + 1} more`;
  return `${handles.slice(0, -1).join(', ')} and ${last}`;
}
