import { makeGpu } from "./adapter.ts"
import { checkHalves } from "./graph-types.ts"
import { nodesOf } from "./node-list.ts"
import type { FromProcess, ToProcess } from "./protocol.ts"
import { makeSessions } from "./session.ts"

type Listener = (message: unknown) => void

/** An engine's end of its channel, as of a `MessagePort`: what comes early waits for a listener. */
class EnginePort {
  private readonly send: (message: FromProcess) => void
  private readonly engine: number
  private listener: Listener | undefined
  private early: unknown[] = []

  constructor(engine: number, send: (message: FromProcess) => void) {
    this.engine = engine
    this.send = send
  }

  postMessage(message: unknown): void {
    this.send({ type: "message", engine: this.engine, message })
  }

  on(_: string, listener: Listener): void {
    this.listener = listener
    for (const message of this.early.splice(0)) listener(message)
  }

  close(): void {
    this.send({ type: "ended", engine: this.engine })
  }

  receive(message: unknown): void {
    if (this.listener) this.listener(message)
    else this.early.push(message)
  }
}

/** The module of an engine. */
interface Entry {
  startOnDevice(port: EnginePort, data: unknown, sessions: object): Promise<void>
}

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Runs the engines of a device until the parent is gone. */
export const serveEngines = ({ hasFp16 }: { readonly hasFp16: boolean }): void => {
  const send = (message: FromProcess) => void process.send!(message, () => {})
  const ports = new Map<number, EnginePort>()
  const lost = (reason: string) =>
    void process.send!({ type: "lost", reason } satisfies FromProcess, end)
  const sessions = {
    ...makeSessions({
      opening: (path) => {
        checkHalves(path, hasFp16)
        send({ type: "graph", path, nodes: nodesOf(path) })
      },
      lost,
    }),
    gpu: makeGpu(lost),
  }
  const start = async ({ engine, entry, data }: Extract<ToProcess, { type: "start" }>) => {
    const port = new EnginePort(engine, send)
    ports.set(engine, port)
    try {
      const { startOnDevice } = (await import(entry)) as Entry
      await startOnDevice(port, data, sessions)
      send({ type: "started", engine })
    } catch (cause) {
      send({ type: "ended", engine, reason: textOf(cause) })
    }
  }
  process.on("message", (message: ToProcess) => {
    if (message.type === "ping") send({ type: "pong" })
    else if (message.type === "start") void start(message)
    else ports.get(message.engine)?.receive(message.message)
  })
  process.once("disconnect", end)
}

/** Nothing is left to be written, and native destructors may hang. */
const end = (): void => {
  process.kill(process.pid, "SIGKILL")
}
