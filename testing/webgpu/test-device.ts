import { existsSync } from "node:fs"
import { Effect, Exit } from "effect"
import type { ExecutionProvider } from "../../core/ports/execution-provider.ts"
import { makeDevice } from "../../plugins/backend-webgpu/device/device.ts"
import { findAdapter } from "../../plugins/backend-webgpu/device/find-adapter.ts"
import type { WebgpuSettings } from "../../plugins/backend-webgpu/settings.ts"
import { fakeClock } from "../fakes/clock.ts"
import { fakeLog } from "../fakes/log.ts"

/** SwiftShader, as Debian's chromium brings it. */
const swiftShader = "/usr/lib/chromium/vk_swiftshader_icd.json"

/** The plugin's settings on this machine. */
export const settingsOf = (more: Partial<WebgpuSettings>): WebgpuSettings => ({
  allowSoftware: true,
  restarts: 1,
  hangSeconds: 120,
  ...(process.env.RAKIT_TEST_GPU === undefined &&
    existsSync(swiftShader) && { driver: swiftShader }),
  ...more,
})

const found = await Effect.runPromiseExit(findAdapter(settingsOf({})))

/** Why tests on a device are skipped; undefined: there is one. */
export const noDevice: string | undefined = Exit.isSuccess(found) ? undefined : String(found.cause)

if (noDevice !== undefined) console.warn(`tests on a GPU are skipped: ${noDevice}`)

/**
 * A provider of the adapter of this machine: SwiftShader, or with RAKIT_TEST_GPU that which the
 * driver chooses. Its clock stands still.
 */
export const testProvider = (more: Partial<WebgpuSettings> = {}) => {
  if (!Exit.isSuccess(found)) throw new Error(noDevice)
  const log = fakeLog()
  const clock = fakeClock()
  const device = makeDevice(found.value, { settings: settingsOf(more), log, clock })
  const provider: ExecutionProvider = { name: "webgpu", device: Effect.succeed(device) }
  return { provider, device, log, clock }
}

/** Operators that must not run on the CPU where a device is. */
const heavy = /MatMul|Gemm|Attention|Conv|Norm|Softmax|Einsum|Gelu|Resize|\ball\b/

/** What the log says of heavy operators on the CPU; throws where no graph was opened. */
export const heavyOnCpu = (log: ReturnType<typeof fakeLog>): readonly string[] => {
  const opened = log.lines.filter(({ event }) => event === "webgpu.graph_opened")
  if (opened.length === 0) throw new Error("no graph was opened on the device")
  return opened
    .map(({ fields }) => String(fields?.nodes))
    .map((nodes) => nodes.slice(nodes.indexOf(" cpu")))
    .filter((nodes) => heavy.test(nodes))
}
