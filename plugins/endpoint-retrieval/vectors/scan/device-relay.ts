import type { Device, EngineChannel } from "../../../../core/ports/execution-provider.ts"
import type { Log } from "../../../../core/services/log.ts"
import type { DeviceNews, FromDevice, ToDevice } from "./device/protocol.ts"

const entry = new URL(
  import.meta.url.endsWith(".ts") ? "./device/entry-from-source.mjs" : "./device/entry.js",
  import.meta.url,
)

/** Carries the messages of the scan's thread to a device's process, which starts with the first. */
export class DeviceRelay {
  private readonly device: Device
  private readonly log: Log
  private readonly tell: (news: DeviceNews) => void
  private channel: EngineChannel | undefined
  private isClosed = false

  constructor(device: Device, log: Log, tell: (news: DeviceNews) => void) {
    this.device = device
    this.log = log
    this.tell = tell
  }

  send(message: ToDevice): void {
    // what an earlier process had is lost, so only a new index starts another
    if (this.isClosed || (!this.channel && message.type !== "open")) return
    this.channel ??= this.start()
    this.channel?.postMessage(message)
  }

  /** Gives the device's memory back. */
  close(): void {
    this.isClosed = true
    this.channel?.postMessage({ type: "close" } satisfies ToDevice)
  }

  private start(): EngineChannel | undefined {
    if (this.device.failure() !== undefined) return undefined
    const channel = this.device.start(entry, {})
    let reason = "its process ended"
    channel.on("message", (news: FromDevice) => this.receive(news))
    channel.on("error", (cause: Error) => {
      reason = cause.message
    })
    channel.on("exit", () => {
      this.channel = undefined
      if (this.isClosed) return
      this.warn(reason)
      this.tell({ type: "lost" })
    })
    return channel
  }

  private receive(news: FromDevice): void {
    if (news.type === "refused") this.warn(news.reason)
    if (news.type === "opened")
      this.log.info("retrieval.scan_on_device", "an account's vectors are searched on a device", {
        device: this.device.name,
      })
    this.tell(news)
  }

  private warn(reason: string): void {
    this.log.warn("retrieval.scan_on_cpu", "vectors are searched on the CPU instead of a device", {
      device: this.device.name,
      reason,
    })
  }
}
