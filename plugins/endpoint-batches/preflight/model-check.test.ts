import { Effect } from "effect"
import { expect, it } from "vitest"
import { apiError } from "../../../core/errors.ts"
import type { CallPath } from "../../../core/index.ts"
import { callPathFixture, fakeChatModel } from "../../../testing/index.ts"
import { echoTarget } from "../testing/api-fixture.ts"
import { makeModelCheck } from "./model-check.ts"

const adapters = [{ id: "legal", sources: [] }]

it("a line with an unknown adapter fails alone: its model is there for the others", async () => {
  const { catalogue, caller } = callPathFixture([fakeChatModel({ entry: { adapters } })])
  const refusals = [apiError("model_not_found", "No such adapter.", { param: "adapter" })]
  const callPath = {
    check: () => Effect.suspend(() => (refusals.length ? refusals.pop()! : Effect.void)),
  } as unknown as CallPath
  const check = makeModelCheck({ catalogue, callPath }, echoTarget({ catalogue }), caller, "r")
  const fails = (body: object) => Effect.runPromise(check.check(body as never, 1))
  expect(await fails({ model: "svc-lyt", adapter: "other" })).toBe(false)
  expect(await fails({ model: "svc-lyt:legal" })).toBe(false)
  expect(await fails({ model: "svc-lyt" })).toBe(false)
  expect([check.lines(), check.errors()]).toEqual([0, []])
})
