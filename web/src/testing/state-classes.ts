/** Classes that code looks up by value: the states. */
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
