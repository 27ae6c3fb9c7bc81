/// <reference types="@webgpu/types" />
import { DeviceIndex, makePipelines } from "./device-index.ts"
import type { FromDevice, ToDevice } from "./protocol.ts"

interface Port {
  postMessage(message: FromDevice): void
  on(event: "message", listener: (message: ToDevice) => void): void
  close(): void
}

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Keeps indices in the device's process, and searches them message by message. */
export const startOnDevice = async (
  port: Port,
  _: unknown,
  sessions: { readonly gpu: () => Promise<GPUDevice> },
): Promise<void> => {
  const gpu = await sessions.gpu()
  const pipelines = makePipelines(gpu)
  const indices = new Map<number, DeviceIndex>()
  const drop = (index: number) => {
    indices.get(index)?.close()
    indices.delete(index)
  }
  const open = async (message: Extract<ToDevice, { type: "open" }>) => {
    const { index } = message
    drop(index)
    try {
      indices.set(index, await DeviceIndex.open(gpu, pipelines, message))
      port.postMessage({ type: "opened", index })
    } catch (cause) {
      port.postMessage({ type: "refused", index, reason: textOf(cause) })
    }
  }
  const serve = async (message: ToDevice): Promise<void> => {
    if (message.type === "close") {
      for (const index of [...indices.keys()]) drop(index)
      port.close()
      return
    }
    const known = indices.get(message.index)
    if (message.type === "open") await open(message)
    else if (message.type === "drop") drop(message.index)
    else if (message.type === "rows") {
      known?.store(message.first, message.int8, message.columns)
      await gpu.queue.onSubmittedWorkDone()
      port.postMessage({ type: "stored", index: message.index })
    } else {
      const rows = await known?.search(message)
      port.postMessage({ type: "found", id: message.id, ...(rows && { rows }) })
    }
  }
  let last = Promise.resolve()
  port.on("message", (message) => {
    // what throws here is a device that was lost, and ends the process
    last = last.then(() => serve(message))
  })
}
