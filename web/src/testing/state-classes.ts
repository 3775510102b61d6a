/** Classes that are looked up by a value: the states of a time. */
export const STATE_CLASSES = [
  'on_cpu',
  'runnable',
  'in_child',
  'awaiting',
  'remote',
  'unaccounted',
  'lock',
  'join',
  'network',
  'disk',
  'sleep',
  'page_fault',
  'child',
  'pipe',
  'other',
  'unseen',
];
