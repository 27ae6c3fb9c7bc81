import { Effect, Stream } from "effect"
import type { EmbedEvent, EmbedRequest, ModelContext, Task } from "../../core/ports/model.ts"
import type { DeploymentInProcess } from "../deployment/in-process.ts"
import { linesAtOnce, type TextKind, textOf } from "./deployment.ts"

const context: ModelContext = {
  callId: "00000000-0000-7000-8000-000000000000",
  tenant: { account: "bench", mode: "live" },
  priority: "batch",
  deadlineMs: Number.MAX_SAFE_INTEGER,
  meter: () => {},
  time: () => {},
}

/** The Model port alone, as many texts in flight as the worker has. Returns texts per second. */
export const runDirectly = async (
  { catalogue }: DeploymentInProcess,
  kind: TextKind,
  lines: number,
): Promise<number> => {
  const { task } = await Effect.runPromise(catalogue.open("embed", "svc-embed"))
  const port = task as Task<EmbedRequest, EmbedEvent>
  const one = (n: number) =>
    Effect.flatMap(
      port.plan({ items: [{ type: "text", text: textOf(kind, n) }], truncate: "END" }, context),
      ({ run }) => Stream.runDrain(run),
    )
  const startedMs = performance.now()
  await Effect.runPromise(
    Effect.forEach(
      Array.from({ length: lines }, (_, n) => n),
      one,
      { concurrency: linesAtOnce, discard: true },
    ),
  )
  return (lines * 1000) / (performance.now() - startedMs)
}
