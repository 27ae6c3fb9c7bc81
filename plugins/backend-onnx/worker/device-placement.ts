import type { Device } from "../../../core/ports/execution-provider.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Placement } from "./host.ts"
import type { EngineSpec, FromThread } from "./protocol.ts"
import { engineEntry, startThread } from "./start-thread.ts"

const specFor = ({ hasFp16, maxBufferBytes }: Device, spec: EngineSpec): EngineSpec => ({
  ...spec,
  device: { hasFp16, maxBufferBytes },
})

/** A place that is the CPU, where a device was asked for. */
export const insteadOf = (provider: string): Placement => ({
  start: startThread,
  servedBy: () => `${provider}, now cpu`,
})

/**
 * Starts an engine on a device while the device serves and the engine's model opens there, then on
 * the CPU, and stays there.
 */
export const onDevice = (provider: string, device: Device, log: Log): Placement => {
  let refusal: string | undefined
  let said = false
  const fallBack = (model: string, reason: string) => {
    if (!said)
      log.warn("engine.now_on_cpu", "an engine runs on the CPU instead of its device", {
        model,
        device: device.name,
        reason,
      })
    said = true
  }
  const start = (spec: EngineSpec) => {
    const reason = refusal ?? device.failure()
    if (reason !== undefined) {
      fallBack(spec.path, reason)
      return startThread(spec)
    }
    const channel = device.start(engineEntry, specFor(device, spec))
    channel.on("message", (messages: readonly FromThread<never, never>[]) => {
      for (const message of messages) if (message.type === "unusable") refusal = message.message
    })
    return channel
  }
  const servedBy = () =>
    (refusal ?? device.failure()) === undefined
      ? `${provider} (${device.name})`
      : `${provider}, now cpu`
  return { start, servedBy }
}
