import type { Effect } from "effect"
import type { PortError } from "../errors.ts"

/** The pool of threads for CPU-heavy work (tokenization, chunking). */
export interface Workers {
  /** Calls the default export of `module` (`.js`, `.ts` or `.mts`) with `input` in a thread. Both ends are structured-cloned. Interruption gives up on the answer. */
  run<Input, Output>(module: URL, input: Input): Effect.Effect<Output, PortError>
}
