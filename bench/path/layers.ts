import { Effect, Stream } from "effect"
import type { CallPath } from "../../core/call/contract.ts"
import type { ModelContext, Task, TaskName } from "../../core/ports/model.ts"
import type { DeploymentInProcess } from "../deployment/in-process.ts"
import { ownCpuUs, type Side } from "../measure/timed-calls.ts"
import { chatRequest, embedRequest } from "./requests.ts"

const context: ModelContext = {
  callId: "00000000-0000-7000-8000-000000000000",
  tenant: { account: "bench", mode: "live" },
  priority: "realtime",
  deadlineMs: Number.MAX_SAFE_INTEGER,
  meter: () => {},
  time: () => {},
}

const portOf = async ({ catalogue }: DeploymentInProcess, task: TaskName, model: string) => {
  const loaded = await Effect.runPromise(catalogue.open(task, model))
  const port = loaded.task as Task<unknown, unknown>
  return Effect.suspend(() =>
    Effect.flatMap(port.plan(task === "chat" ? chatRequest : embedRequest, context), ({ run }) =>
      Stream.runDrain(run),
    ),
  )
}

/** The Model port alone: plan, and the events to their end. */
export const portSide = async (
  deployment: DeploymentInProcess,
  name: string,
  task: TaskName,
  model: string,
): Promise<Side> => {
  const call = await portOf(deployment, task, model)
  return { name, cpuUs: ownCpuUs, call: () => Effect.runPromise(call) }
}

/** A call through the path: from a parsed body to the reply, or to the end of its events. */
export const pathSide = (
  { caller, endpoint }: DeploymentInProcess,
  name: string,
  path: CallPath,
  id: string,
  body: object,
): Side => {
  const target = endpoint(id)
  const call = Effect.suspend(() =>
    Effect.scoped(
      path
        .run(target, { caller, body, requestId: "req_bench", priority: "realtime", priceFactor: 1 })
        .pipe(
          Effect.flatMap(({ reply }) =>
            "events" in reply ? Stream.runDrain(reply.events) : Effect.void,
          ),
        ),
    ),
  )
  return { name, cpuUs: ownCpuUs, call: () => Effect.runPromise(call) }
}
