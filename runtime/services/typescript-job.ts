import { register } from "tsx/esm/api"

// once for a thread
let isRegistered = false

interface Task {
  readonly module: string
  readonly input: unknown
}

/** A task of a plugin in TypeScript, run by the compiled server, whose threads have no loader. Without a namespace, as in load-plugins.ts. */
export default async ({ module, input }: Task): Promise<unknown> => {
  if (!isRegistered) register()
  isRegistered = true
  const { default: task } = (await import(/* @vite-ignore */ module)) as {
    readonly default: (input: unknown) => unknown
  }
  return task(input)
}
