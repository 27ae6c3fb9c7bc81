import { Effect } from "effect"
import type { Device, ExecutionProvider } from "../../core/ports/execution-provider.ts"
import { load } from "../deployment/code.ts"
import { consoleLog as log } from "./console-log.ts"

/** Where a model runs, as an argument of the child process that opens it. */
export type Place = "cpu" | "gpu" | "software"

/**
 * The device that `backend: webgpu` would use; undefined: the CPU. `software` also takes adapters
 * that a processor plays. Throws what to install where there is none.
 */
export const openDevice = async (place: Place): Promise<Device | undefined> => {
  if (place === "cpu") return undefined
  const { makeDevice } = await load<typeof import("../../plugins/backend-webgpu/device/device.ts")>(
    "plugins/backend-webgpu/device/device",
  )
  const { findAdapter } = await load<
    typeof import("../../plugins/backend-webgpu/device/find-adapter.ts")
  >("plugins/backend-webgpu/device/find-adapter")
  const { systemClock } = await load<typeof import("../../core/index.ts")>("core/index")
  const settings = {
    allowSoftware: place === "software",
    restarts: 0,
    hangSeconds: 600,
    driver: undefined,
  }
  const adapter = await Effect.runPromise(findAdapter(settings))
  return makeDevice(adapter, { settings, log, clock: systemClock })
}

export const providerOf = (device: Device): ExecutionProvider => ({
  name: "webgpu",
  device: Effect.succeed(device),
})
