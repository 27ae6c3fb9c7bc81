import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { openBert } from "../embed/open-bert.ts"
import { guardSessions } from "./onnx-session.ts"
import type { EngineOpener } from "./open-engine.ts"
import { openLlama } from "./open-llama.ts"
import type { EngineSpec, FromThread, StageTime, ThreadData, ToThread } from "./protocol.ts"
import { Scheduler } from "./scheduler.ts"

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** The life of an engine's thread: open the model, then take jobs until `close`. */
const serve = async <Job, Event, Info>(port: MessagePort, spec: EngineSpec, open: EngineOpener<Job, Event, Info>): Promise<void> => {
  const post = (message: FromThread<Event | StageTime, Info>) => port.postMessage(message)
  const engine = await open(spec, (detail) => post({ type: "progress", detail }))
  const scheduler = new Scheduler(spec.slots, {
    done: (id) => post({ type: "done", id }),
    failed: (id, cause) => post({ type: "failed", id, message: textOf(cause) }),
  })
  const submit = ({ id, priority, job }: Extract<ToThread<Job>, { type: "submit" }>) => {
    const queuedMs = performance.now()
    const emit = (event: Event | StageTime) => post({ type: "event", id, event })
    scheduler.submit({
      id,
      priority,
      start: () => {
        emit({ type: "time", stage: "queue", durationMs: performance.now() - queuedMs })
        return engine.start(job, emit)
      },
    })
  }
  const close = async () => {
    await scheduler.stop()
    await engine.close()
    port.close()
  }
  port.on("message", (message: ToThread<Job>) => {
    if (message.type === "submit") submit(message)
    else if (message.type === "cancel") scheduler.cancel(message.id)
    else void close()
  })
  post({ type: "ready", info: engine.info })
}

const main = async (port: MessagePort): Promise<void> => {
  const { spec, guard } = workerData as ThreadData
  guardSessions(guard)
  try {
    await (spec.kind === "llama" ? serve(port, spec, openLlama) : serve(port, spec, openBert))
  } catch (cause) {
    port.postMessage({ type: "unusable", message: textOf(cause) } satisfies FromThread<never, never>)
  }
}

if (parentPort) void main(parentPort)
