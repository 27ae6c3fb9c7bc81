import { register } from "tsx/esm/api"

// once per thread
let isRegistered = false

interface Task {
  readonly module: string
  readonly input: unknown
}

/**
 * Runs a plugin's TypeScript task under the compiled server, whose threads have no loader. Without
 * a namespace, as in load-plugins.ts.
 */
export default async ({ module, input }: Task): Promise<unknown> => {
  if (!isRegistered) register()
  isRegistered = true
  const { default: task } = (await import(/* @vite-ignore */ module)) as {
    readonly default: (input: unknown) => unknown
  }
  return task(input)
}
