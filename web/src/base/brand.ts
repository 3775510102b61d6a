/** A number or string that is kept apart from others of its kind by the compiler, at no cost when it runs. */
export type Brand<T, Name extends string> = T & { readonly __brand: Name };

/** Nanoseconds: a duration, or an offset from the origin of the recording. */
export type Nanos = Brand<number, 'Nanos'>;
/** CSS pixels. */
export type Pixels = Brand<number, 'Pixels'>;
/** Row of the span table, in tree pre-order; its handle is `s{index + 1}`. */
export type SpanIndex = Brand<number, 'SpanIndex'>;
/** Row on the screen list: position of a span among those not folded away. */
export type RowIndex = Brand<number, 'RowIndex'>;
/** Node of a flame graph, in pre-order. */
export type NodeIndex = Brand<number, 'NodeIndex'>;
/** Entry of a flame graph's table of functions. */
export type FrameIndex = Brand<number, 'FrameIndex'>;
