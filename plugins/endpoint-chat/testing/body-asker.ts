import type { Json } from "../../../core/json.ts"
import { callPathFixture, fakeChatModel } from "../../../testing/index.ts"
import { chatEndpoint } from "./chat-endpoint.ts"

export const goodBody = { model: "svc-lyt", messages: [{ role: "user", content: "hi" }] } as const

/** Sends `goodBody` with `more` as a dry run: no model runs. */
export const bodyAsker = () => {
  const deps = callPathFixture([fakeChatModel({ says: ["ok"] })])
  const endpoint = chatEndpoint(deps)
  const often = { ...deps.caller, limits: { ...deps.caller.limits, rpm: 1e9 } }
  const answer = async (more: object): Promise<Json> =>
    (await deps.ask(endpoint, { ...goodBody, ...more }, { dryRun: true, caller: often })).json
  const codeAndParam = async (more: object): Promise<readonly (string | undefined)[]> => {
    const { object, code, param } = (await answer(more)) as {
      readonly object?: string
      readonly code?: string
      readonly param?: string | null
    }
    return object === "dry_run" ? ["ok"] : [code, param ?? undefined]
  }
  return { answer, codeAndParam }
}
