/** A made-up shop for browser stories: its spans as OTLP JSON, and the map that a server makes of them. */

const TRACES = 60;
const LONG_NAME = 'recommendations-production-eu-west-1';

/** Deterministic, from 0 to below 1. */
const noise = (number) => ((number * 7919) % 997) / 997;

/** Calls of one trace: caller (a place in this list, or -1), service, operation, begin and length in milliseconds. Each tenth payment fails. */
function callsOf(number) {
  const slow = 1 + noise(number) * 3;
  return [
    [-1, 'shop', 'POST /checkout', 0, 300 * slow],
    [0, 'checkout', 'Checkout.Place', 10, 260 * slow],
    // Work inside of a service.
    [1, 'checkout', 'validate', 12, 8],
    [1, 'cart', 'Cart.Get', 22, 30 * slow],
    [3, 'cart-db', 'SELECT items', 25, 20 * slow],
    [1, 'prices', 'Prices.Total', 24 + 30 * slow, 40 * slow],
    [5, 'currencies', 'Rates.Get', 26 + 30 * slow, 25 * slow],
    // Prices of currencies: through another service, prices call themselves.
    [6, 'prices', 'Prices.Rate', 28 + 30 * slow, 10],
    [1, 'payment', 'Payment.Charge', 30 + 80 * slow, 90 * slow],
    [1, 'cart', 'Cart.Empty', 40 + 180 * slow, 15],
    [9, 'cart-db', 'DELETE items', 42 + 180 * slow, 9],
    [0, LONG_NAME, 'List', 5, 60 * slow],
    [11, 'prices', 'Prices.Of', 8, 20],
  ];
}

const hasFailed = (number, service) => service === 'payment' && number % 10 === 0;

const id = (number, digits) => number.toString(16).padStart(digits, '0');

/** A request of OTLP with the spans of all traces, which end before this moment. */
export function shopSpans(nowMillis) {
  const byService = new Map();
  for (let number = 1; number <= TRACES; number += 1) {
    const start = nowMillis - 600_000 + number * 5_000;
    callsOf(number).forEach(([caller, service, name, from, millis], place) => {
      const spans = byService.get(service) ?? [];
      byService.set(service, spans);
      const micros = Math.round((start + from) * 1000);
      spans.push({
        traceId: id(0x5109_0000 + number, 32),
        spanId: id(number * 100 + place + 1, 16),
        ...(caller < 0 ? {} : { parentSpanId: id(number * 100 + caller + 1, 16) }),
        name,
        kind: 2,
        startTimeUnixNano: `${micros}000`,
        endTimeUnixNano: `${micros + Math.round(millis * 1000)}000`,
        ...(hasFailed(number, service) ? { status: { code: 2, message: 'card declined' } } : {}),
      });
    });
  }
  const attribute = (value) => [{ key: 'service.name', value: { stringValue: value } }];
  const resourceSpans = [...byService].map(([service, spans]) => ({
    resource: { attributes: attribute(service) },
    scopeSpans: [{ scope: { name: 'shop' }, spans }],
  }));
  return { resourceSpans };
}

function requestsOf(all) {
  const nanos = all.map(({ millis }) => Math.round(millis * 1000) * 1000).sort((a, b) => a - b);
  const quantile = (percent) => nanos[Math.max(1, Math.ceil((nanos.length * percent) / 100)) - 1];
  return {
    count: all.length,
    errors: all.filter(({ failed }) => failed).length,
    median_nanos: quantile(50),
    p95_nanos: quantile(95),
    p99_nanos: quantile(99),
  };
}

function mapOf(rows, traces) {
  const services = new Map();
  const calls = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.caller, row.service]);
    services.set(row.service, [...(services.get(row.service) ?? []), row]);
    if (row.caller !== null) calls.set(key, [...(calls.get(key) ?? []), row]);
  }
  return {
    traces,
    truncated: false,
    services: [...services].sort().map(([name, of]) => ({ name, requests: requestsOf(of) })),
    calls: [...calls].sort().map(([key, of]) => {
      const [caller, callee] = JSON.parse(key);
      return { caller, callee, requests: requestsOf(of) };
    }),
  };
}

/** The map of the shop. */
export function shopMap() {
  const rows = [];
  for (let number = 1; number <= TRACES; number += 1) {
    const calls = callsOf(number);
    for (const [caller, service, , , millis] of calls) {
      const by = calls[caller]?.[1] ?? null;
      if (by !== service) rows.push({ caller: by, service, millis, failed: hasFailed(number, service) });
    }
  }
  return mapOf(rows, TRACES);
}

/** The map of sixty services, whose calls have circles. The server has more traces of them. */
export function wideMap() {
  const name = (index) => (index % 7 === 3 ? `team-${index}-fulfilment-orchestrator-production-eu-west-1` : `service-${index}`);
  const rows = [];
  for (let index = 0; index < 60; index += 1) {
    const callers = index === 0 ? [null] : [...new Set([Math.floor((index - 1) / 3), (index * 17) % index])].map(name);
    for (const caller of callers) {
      for (let count = 0; count < 1 + ((index * 37) % 90); count += 1) {
        rows.push({
          caller,
          service: name(index),
          millis: 2 + index * noise(index + count) * 9,
          failed: index % 9 === 4 && count % 40 === 1,
        });
      }
    }
  }
  for (const [caller, service] of [
    [41, 2],
    [20, 6],
  ]) {
    rows.push({ caller: name(caller), service: name(service), millis: 3, failed: false });
  }
  return { ...mapOf(rows, 2000), truncated: true };
}

/** A map of a time without traces. */
export const NO_MAP = { traces: 0, truncated: false, services: [], calls: [] };
