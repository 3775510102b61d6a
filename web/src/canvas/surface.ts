/** A canvas that fills its box at the resolution of the screen and draws at most once per frame. */

export interface SurfaceSize {
  readonly width: number;
  readonly height: number;
}

export interface Surface {
  /** Requests a drawing before the next frame. */
  invalidate(): void;
  dispose(): void;
}

export type Draw = (context: CanvasRenderingContext2D, size: SurfaceSize) => void;

/** Keeps `canvas` as large as its parent. Calls `resized` first, then `draw`. */
export function createSurface(canvas: HTMLCanvasElement, draw: Draw, resized?: (size: SurfaceSize) => void): Surface {
  const context = canvas.getContext('2d');
  const host = canvas.parentElement;
  if (context === null || host === null) throw new Error('a canvas without a context or a parent');
  let size: SurfaceSize = { width: 0, height: 0 };
  let ratio = 1;
  let request = 0;

  const paint = (): void => {
    request = 0;
    if (size.width === 0 || size.height === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    draw(context, size);
  };
  const invalidate = (): void => {
    if (request === 0) request = requestAnimationFrame(paint);
  };
  const measure = (): void => {
    const width = host.clientWidth;
    const height = host.clientHeight;
    const next = window.devicePixelRatio;
    if (width === size.width && height === size.height && next === ratio) return;
    size = { width, height };
    ratio = next;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    resized?.(size);
    // Resizing empties the canvas; painting at once avoids a blank frame.
    cancelAnimationFrame(request);
    paint();
  };
  const observer = new ResizeObserver(measure);
  observer.observe(host);
  measure();
  return {
    invalidate,
    dispose: () => {
      observer.disconnect();
      cancelAnimationFrame(request);
    },
  };
}
