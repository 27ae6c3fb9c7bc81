import type { Device } from "../../../core/ports/execution-provider.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { FoundAdapter, PlacedNodes } from "../process/protocol.ts"
import type { WebgpuSettings } from "../settings.ts"
import { DeviceProcess } from "./device-process.ts"
import { nameOf } from "./find-adapter.ts"

const hourMs = 3_600_000

export interface DeviceDeps {
  readonly settings: WebgpuSettings
  readonly clock: Clock
  readonly log: Log
}

const total = (operators: Readonly<Record<string, number>>): number =>
  Object.values(operators).reduce((sum, count) => sum + count, 0)

/** `214 webgpu, 3 cpu: Shape, Gather x2`. */
export const nodesText = ({ device, cpu }: PlacedNodes): string => {
  const islands = Object.entries(cpu).map(([name, count]) =>
    count > 1 ? `${name} x${count}` : name,
  )
  const onCpu = `${total(cpu)} cpu`
  return `${total(device)} webgpu, ${islands.length ? `${onCpu}: ${islands.join(", ")}` : onCpu}`
}

/** A device with its process, which is started again until it has ended too often. */
export const makeDevice = (
  adapter: FoundAdapter,
  { settings, clock, log }: DeviceDeps,
): Device & {
  /** The process that runs; for tests that end it. */
  readonly pid: () => number | undefined
} => {
  const name = nameOf(adapter)
  const hasFp16 = adapter.features.includes("shader-f16")
  let current: DeviceProcess | undefined
  let endsMs: readonly number[] = []
  let failure: string | undefined
  const ended = (reason: string) => {
    const nowMs = clock.nowMs()
    endsMs = [...endsMs.filter((ms) => nowMs - ms < hourMs), nowMs]
    if (endsMs.length > settings.restarts) failure = reason
    log.error("webgpu.process_ended", "the device's process ended", {
      device: name,
      reason,
      again: failure === undefined,
    })
  }
  return {
    name,
    isSoftware: adapter.isSoftware,
    hasFp16,
    maxBufferBytes: adapter.maxBufferBytes,
    failure: () => failure,
    pid: () => (current?.isOpen ? current.pid : undefined),
    start: (entry, data) => {
      if (failure !== undefined) throw new Error(`the device is given up: ${failure}`)
      if (!current?.isOpen)
        current = new DeviceProcess({
          driver: settings.driver,
          hangSeconds: settings.hangSeconds,
          hasFp16,
          graph: (graph, nodes) =>
            log.info("webgpu.graph_opened", "a graph was opened on the device", {
              device: name,
              graph,
              nodes: nodesText(nodes),
            }),
          ended,
        })
      return current.start(entry, data)
    },
  }
}
