import { Effect } from "effect"
import { PortError } from "../../core/errors.ts"
import type { Workers } from "../../core/services/workers.ts"

/** Runs the module in the calling thread. */
export const fakeWorkers = (): Workers => ({
  run: <Input, Output>(module: URL, input: Input) =>
    Effect.tryPromise({
      try: async () => {
        const { default: task } = (await import(module.href)) as {
          default: (input: Input) => Output | Promise<Output>
        }
        return task(structuredClone(input))
      },
      catch: (cause) => new PortError({ port: "workers", message: String(cause), cause }),
    }),
})
