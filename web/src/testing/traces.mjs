/** A made-up server of traces for browser stories, with the semantics of `/longpole/v1/traces`: what it filters by are its spans. */

/** The first start: 28 November 2026, 12:00 UTC. */
const NOON_MICROS = 1_795_867_200_000_000;
const TRACES = 120;

/** Its root is a span of the shop with the whole duration; a span of the cart takes a tenth of that, at its end. */
function traceOf(number, startMicros, wallMicros, errors = 0) {
  return { number, startMicros, wallMicros, errors };
}

function spansOf({ startMicros, wallMicros }) {
  return [
    { service: 'shop', name: 'GET /cart', startMicros, micros: wallMicros },
    { service: 'cart', name: 'SELECT items', startMicros: startMicros + wallMicros * 0.9, micros: wallMicros / 10 },
  ];
}

function rowOf({ number, startMicros, wallMicros, errors }) {
  return {
    trace_id: number.toString(16).padStart(32, '0'),
    service: 'shop',
    name: 'GET /cart',
    start_unix_nano: `${startMicros}000`,
    wall_nanos: wallMicros * 1000,
    spans: 2,
    errors,
    services: ['cart', 'shop'].map((name) => ({ name, spans: 1 })),
  };
}

/** Traces of ten minutes, five seconds apart, from 2 ms to 3 s; every tenth has an error. */
export function madeUpTraces() {
  const traces = Array.from({ length: TRACES }, (_, number) =>
    traceOf(number + 1, NOON_MICROS + number * 5_000_000, Math.round(2000 * 1.06 ** ((number * 37) % 126)), number % 10 === 9 ? 1 : 0),
  );
  return {
    /** A trace that starts after all others. */
    add: (wallMicros) => traces.push(traceOf(traces.length + 1, NOON_MICROS + traces.length * 5_000_000, wallMicros)),
    services: () => ({
      services: [
        { name: 'cart', operations: ['SELECT items'] },
        { name: 'shop', operations: ['GET /cart'] },
      ],
      truncated: false,
    }),
    search: (parameters) => {
      const service = parameters.get('service');
      const start = Number(parameters.get('start') ?? 0);
      const end = Number(parameters.get('end') ?? Infinity);
      const limit = Number(parameters.get('limit') ?? 100);
      const matches = (span) => (service === null || span.service === service) && span.startMicros >= start && span.startMicros <= end;
      const found = traces.filter((trace) => spansOf(trace).some(matches)).reverse();
      return { traces: found.slice(0, limit).map(rowOf), truncated: found.length > limit, next: null };
    },
  };
}
