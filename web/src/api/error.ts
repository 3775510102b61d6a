/** How asking for a view can fail. */

/** What went wrong, in the terms the page tells apart. */
export type FailureKind = 'gone' | 'unauthorized' | 'not_found' | 'refused' | 'malformed';

/** A request that brought no view. */
export class ApiError extends Error {
  constructor(
    readonly kind: FailureKind,
    /** Stable word, for people to copy into a report. */
    readonly code: string,
    message: string,
    /** The requested path. */
    readonly path: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ApiError';
  }
}
