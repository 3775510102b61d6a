/** A typed array of numbers. */
export type Column = Float64Array | Float32Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

/** The value at an index that the caller knows to be valid. */
export function at(column: Column, index: number): number {
  return column[index] as number;
}

/** First position in an ascending column whose value is not below `value`. */
export function lowerBound(column: Column, value: number, from = 0, to = column.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(column, middle) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First position in an ascending column whose value is above `value`. */
export function upperBound(column: Column, value: number, from = 0, to = column.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(column, middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
