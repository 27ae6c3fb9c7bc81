import { type ChildProcess, fork } from "node:child_process"
import { EventEmitter } from "node:events"
import type { EngineChannel } from "../../../core/ports/execution-provider.ts"
import type { FromProcess, PlacedNodes, ToProcess } from "../process/protocol.ts"
import { childEntry, childEnvironment } from "./child-entry.ts"

export interface ProcessOptions {
  readonly driver: string | undefined
  readonly hangSeconds: number
  /** The device has 16-bit floats. */
  readonly hasFp16: boolean
  /** A graph was opened. */
  graph(path: string, nodes: PlacedNodes): void
  /** It ended by itself, or was killed because it hung; before its channels say so. */
  ended(reason: string): void
}

const openingSeconds = 3_600
const mostStderr = 4_096

/** The engine's channel, as its host sees it. */
class Channel extends EventEmitter implements EngineChannel {
  readonly postMessage: (message: unknown) => void
  isOpening = true

  constructor(postMessage: (message: unknown) => void) {
    super()
    this.postMessage = postMessage
  }

  end(code: number, reason?: string): void {
    if (reason !== undefined && this.listenerCount("error")) this.emit("error", new Error(reason))
    this.emit("exit", code)
    this.removeAllListeners()
  }
}

/**
 * A device's process with its engines. It ends with the last of them. A native crash ends it, and
 * with it all that runs in it, but not the server.
 */
export class DeviceProcess {
  private readonly options: ProcessOptions
  private readonly child: ChildProcess
  private readonly channels = new Map<number, Channel>()
  private readonly watch: NodeJS.Timeout
  private nextEngine = 0
  /** Seconds since it last said something, while it owes an answer to a ping. */
  private silentSeconds = 0
  private stderr = ""
  private reason: string | undefined
  private isStopped = false
  private hasEnded = false

  constructor(options: ProcessOptions) {
    this.options = options
    this.child = fork(childEntry, ["serve", options.hasFp16 ? "fp16" : "fp32"], {
      env: childEnvironment(options.driver),
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    })
    this.child.stderr!.on("data", (bytes: Buffer) => {
      this.stderr = (this.stderr + bytes).slice(-mostStderr)
    })
    this.child.on("message", this.receive)
    this.child.on("error", (cause) => this.end(cause.message))
    this.child.on("exit", (code, signal) => this.end(signal ?? `code ${code}`))
    this.watch = setInterval(this.ask, 1_000)
    this.watch.unref()
  }

  get pid(): number | undefined {
    return this.child.pid
  }

  /** Whether engines can be started in it. */
  get isOpen(): boolean {
    return !this.isStopped && !this.hasEnded
  }

  start(entry: URL, data: unknown): EngineChannel {
    const engine = this.nextEngine++
    const channel = new Channel((message) => this.send({ type: "message", engine, message }))
    this.channels.set(engine, channel)
    this.send({ type: "start", engine, entry: entry.href, data })
    return channel
  }

  private send(message: ToProcess): void {
    // what a process that has just ended does not get is failed by its end
    if (this.child.connected) this.child.send(message, () => {})
  }

  /** Asks whether it still answers. Ticks are counted, as this process may have been stopped itself. */
  private readonly ask = (): void => {
    this.send({ type: "ping" })
    this.silentSeconds++
    const opens = [...this.channels.values()].some((channel) => channel.isOpening)
    if (this.silentSeconds <= (opens ? openingSeconds : this.options.hangSeconds)) return
    this.reason ??= `it said nothing for ${this.silentSeconds} seconds`
    this.child.kill("SIGKILL")
  }

  private readonly receive = (message: FromProcess): void => {
    this.silentSeconds = 0
    if (message.type === "pong") return
    if (message.type === "lost") {
      this.reason = `the device is lost: ${message.reason}`
      return
    }
    if (message.type === "graph") {
      this.options.graph(message.path, message.nodes)
      return
    }
    const channel = this.channels.get(message.engine)
    if (message.type === "message") channel?.emit("message", message.message)
    else if (message.type === "started") {
      if (channel) channel.isOpening = false
    } else {
      this.channels.delete(message.engine)
      channel?.end(message.reason === undefined ? 0 : 1, message.reason)
      if (this.channels.size === 0) this.stop()
    }
  }

  private stop(): void {
    this.isStopped = true
    clearInterval(this.watch)
    // it ends when it is cut off
    if (this.child.connected) this.child.disconnect()
  }

  private end(how: string): void {
    if (this.hasEnded) return
    this.hasEnded = true
    clearInterval(this.watch)
    if (this.isStopped) return
    const said = this.stderr.trimEnd().split("\n").at(-1)
    const reason = this.reason ?? (said ? `${how}: ${said}` : how)
    this.options.ended(reason)
    const lost = [...this.channels.values()]
    this.channels.clear()
    for (const channel of lost) channel.end(1, reason)
  }
}
