/** A short animation from one value to another, unless the reader prefers reduced motion. */

const DURATION_MILLIS = 180;

/** Calls `apply` with 0 < t <= 1 on each frame, slowing down towards the end; returns a function that stops it. */
export function animate(apply: (t: number) => void): () => void {
  if (window.matchMedia('(prefers-reduced-motion: reduce)').matches) {
    apply(1);
    return () => undefined;
  }
  let start: number | null = null;
  let request = requestAnimationFrame(function step(now) {
    start ??= now;
    const t = Math.min(1, (now - start) / DURATION_MILLIS);
    apply(1 - (1 - t) ** 3);
    if (t < 1) request = requestAnimationFrame(step);
  });
  return () => cancelAnimationFrame(request);
}
