/** How a program begins to send spans or profiles. */
export interface FirstSteps {
  readonly language: string;
  /** Commands or code, in their order, each to copy by itself. */
  readonly steps: readonly string[];
  /** What the steps leave open. */
  readonly note: string;
}
