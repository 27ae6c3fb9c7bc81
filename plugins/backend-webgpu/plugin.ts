import { Effect } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import type { Device, ExecutionProvider } from "../../core/ports/execution-provider.ts"
import { makeSingleFlight } from "../../core/single-flight.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeDevice } from "./device/device.ts"
import { findAdapter } from "./device/find-adapter.ts"
import { WebgpuSettings } from "./settings.ts"

export const plugin = definePlugin<WebgpuSettings>({
  name: "backend-webgpu",
  api: 1,
  about: "Runs the models of backend-onnx on a GPU through WebGPU, for entries of backend webgpu.",
  settings: WebgpuSettings,
  needs: [Tokens.clock, Tokens.log],
  provides: [Tokens.executionProviders],
  create: (settings) => ({
    register: (container) => {
      const searches = makeSingleFlight<Device, string>()
      let found: Device | undefined
      const search = Effect.map(findAdapter(settings), (adapter) => {
        found = makeDevice(adapter, {
          settings,
          clock: resolve(container, Tokens.clock),
          log: resolve(container, Tokens.log),
        })
        return found
      })
      const provider: ExecutionProvider = {
        name: "webgpu",
        device: Effect.suspend(() =>
          found ? Effect.succeed(found) : searches.run("device", search),
        ),
      }
      provide(container, Tokens.executionProviders, provider)
    },
  }),
})
