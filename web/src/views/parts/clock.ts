/** Minutes that the reader's clock is behind UTC, at a time in microseconds since 1970. */
export const zoneOf = (micros: number): number => new Date(micros / 1000).getTimezoneOffset();
