import { expect, it } from 'vitest';
import { decodeSpan } from '../api/decode.gen';
import { deployRecording } from '../testing/recordings.mjs';
import { wholeNanos } from './states';

it('states of a span sum to its duration', () => {
  const documents = deployRecording();
  for (let index = 1; index <= documents.rows; index++) {
    const { states, statesWithDescendants, durationNanos } = decodeSpan(documents.span(`s${index}`));
    expect(wholeNanos(states)).toBe(durationNanos);
    if (statesWithDescendants !== null) expect(wholeNanos(statesWithDescendants)).toBe(durationNanos);
  }
});
