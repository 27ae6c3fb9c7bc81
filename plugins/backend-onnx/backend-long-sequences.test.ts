import { afterAll, expect, test } from "vitest"
import type { LoadedModel } from "../../core/ports/model.ts"
import { fixtureFolder } from "./testing/fixtures.ts"
import { answer, chatRequest, context, openBackend } from "./testing/open-backend.ts"

const fixture = openBackend({ slots: 2 })
afterAll(() => fixture.close())

const text = "Is the answer yes? The cities aren't engines, are they?"

/** The first eight tokens of an answer that may have so many, to an account's request. */
const begin = async (model: LoadedModel<"chat">, account: string, maxTokens: number) => {
  const { events } = await answer(
    model,
    chatRequest(text, { maxTokens }),
    context({ tenant: { account, mode: "live" } }),
  )
  return events
    .flatMap((event) => (event.type === "text" ? [event.text] : []))
    .slice(0, 8)
    .join("|")
}

test("what may get longer than the original window is rotated in another way, and shares no keys with what may not", async () => {
  const model = await fixture.open("chat", fixtureFolder("phi4-mini"), {
    options: { precision: "fp32" },
  })
  // the prompt has about 50 tokens, the original window 128
  const [short, long] = [
    await begin(model, "short alone", 20),
    await begin(model, "long alone", 120),
  ]
  expect(short).not.toBe(long)
  expect([await begin(model, "a", 20), await begin(model, "a", 120)]).toEqual([short, long])
  expect([await begin(model, "b", 120), await begin(model, "b", 20)]).toEqual([long, short])
})
