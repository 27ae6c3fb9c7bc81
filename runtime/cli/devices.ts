import { Effect } from "effect"
import type { ExecutionProvider } from "../../core/ports/execution-provider.ts"
import { resolve, resolveAll, Tokens } from "../../core/tokens.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"

/** The devices that models of a deployment ask for. */
export interface Devices {
  /** A backend with its device: `webgpu (NVIDIA H200)`, or `webgpu, now cpu`. */
  shown(backend: string): string
  /** One line for each device that is missing: why, and what to install. */
  readonly missing: readonly string[]
}

const lookFor = ({ name, device }: ExecutionProvider) =>
  Effect.match(device, {
    onSuccess: (found) => ({ name, shown: `${name} (${found.name})`, missing: [] }),
    onFailure: (reason) => ({
      name,
      shown: `${name}, now cpu`,
      missing: [`Models of the backend '${name}' run on the CPU: ${reason}.`],
    }),
  })

/** Looks for the devices of those backends that some model names. */
export const findDevices = ({ container }: AssembledDeployment): Effect.Effect<Devices> => {
  const { entries } = resolve(container, Tokens.catalogue)
  const wanted = resolveAll(container, Tokens.executionProviders).filter(({ name }) =>
    entries.some((entry) => entry.backend === name),
  )
  return Effect.map(Effect.forEach(wanted, lookFor), (found) => ({
    shown: (backend) => found.find(({ name }) => name === backend)?.shown ?? backend,
    missing: found.flatMap(({ missing }) => missing),
  }))
}
