import type { Effect } from "effect"
import type { PortError } from "../errors.ts"

/** The thread pool for CPU-heavy work (tokenization, chunking). */
export interface Workers {
  /**
   * Calls the default export of `module` (`.js`, `.ts` or `.mts`) with `input` in a pool thread.
   * Input and output are structured-cloned. Interruption abandons the result. With `limitMs`, a
   * task that runs longer in its thread fails with a `PortError` whose `why` is slow; waiting for
   * a thread does not count, and tasks without a limit never wait for one with it.
   */
  run<Input, Output>(module: URL, input: Input, limitMs?: number): Effect.Effect<Output, PortError>
}
