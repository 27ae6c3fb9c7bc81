import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { openEncoderEngine } from "../encoding/open-encoder-engine.ts"
import { openDecoderEngine } from "../generation/open-decoder-engine.ts"
import { guardSessions } from "../onnx/onnx-session.ts"
import { GrammarFailed } from "../sampling/token-mask.ts"
import { openVisionEngine } from "../vision/open-vision-engine.ts"
import type { OpenEngine } from "./open-engine.ts"
import type { FromThread, StageTime, Submit, ThreadData, ToThread } from "./protocol.ts"
import { Scheduler } from "./scheduler.ts"

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Serves jobs until a `close` message. */
const serve = <Job, Event, Info, Started>(
  port: MessagePort,
  engine: OpenEngine<Job, Event, Info, Started>,
  slots: number,
): void => {
  const post = (message: FromThread<Event | StageTime, Info>) => port.postMessage(message)
  const held = (size: number) => {
    const prefix = engine.prefixStats?.()
    if (prefix && engine.capacity !== undefined)
      post({ type: "stats", stats: { kvCacheUsage: size / engine.capacity, ...prefix } })
  }
  const scheduler = new Scheduler<Started>(
    engine.runner,
    {
      slots,
      capacity: engine.capacity ?? Number.POSITIVE_INFINITY,
      nowMs: () => performance.now(),
    },
    {
      done: (id) => post({ type: "done", id }),
      busy: (id) => post({ type: "busy", id }),
      held,
      failed: (id, cause) =>
        post({
          type: "failed",
          id,
          message: textOf(cause),
          ...(cause instanceof GrammarFailed && { why: cause.why }),
        }),
    },
  )
  const submit = ({ id, account, priority, waitMs, job }: Submit<Job>) => {
    const queuedMs = performance.now()
    const emit = (event: Event | StageTime) => post({ type: "event", id, event })
    const start = () => {
      emit({ type: "time", stage: "queue", durationMs: performance.now() - queuedMs })
      return engine.start(job, emit)
    }
    scheduler.submit({ id, account, priority, waitMs, size: engine.sizeOf?.(job) ?? 0, start })
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
  held(0)
}

const main = async (port: MessagePort): Promise<void> => {
  const { spec, guard } = workerData as ThreadData
  guardSessions(guard)
  const progress = (detail: string) =>
    port.postMessage({ type: "progress", detail } satisfies FromThread<never, never>)
  try {
    // queued texts and images take no memory of the model, so all requests run at once and those of
    // similar length are batched
    if (spec.kind === "encoder")
      serve(port, await openEncoderEngine(spec, progress), Number.POSITIVE_INFINITY)
    else if (spec.kind === "vision")
      serve(port, await openVisionEngine(spec, progress), Number.POSITIVE_INFINITY)
    else serve(port, await openDecoderEngine(spec, progress), spec.slots)
  } catch (cause) {
    port.postMessage({ type: "unusable", message: textOf(cause) } satisfies FromThread<
      never,
      never
    >)
  }
}

if (parentPort) void main(parentPort)
