/** A number or string that the compiler distinguishes from others of its type, at no cost at run time. */
export type Brand<T, Name extends string> = T & { readonly __brand: Name };

/** Nanoseconds: a duration, or an offset from the origin of the recording. */
export type Nanos = Brand<number, 'Nanos'>;
/** A moment: microseconds since 1970, as Jaeger writes times. */
export type Micros = Brand<number, 'Micros'>;
/** CSS pixels. */
export type Pixels = Brand<number, 'Pixels'>;
/** Row of the span table, in tree pre-order; its handle is `s{index + 1}`. */
export type SpanIndex = Brand<number, 'SpanIndex'>;
/** Row of the list: position of a span among the visible ones. */
export type RowIndex = Brand<number, 'RowIndex'>;
/** Node of a flame graph, in pre-order. */
export type NodeIndex = Brand<number, 'NodeIndex'>;
/** Entry of a flame graph's table of functions. */
export type FrameIndex = Brand<number, 'FrameIndex'>;
