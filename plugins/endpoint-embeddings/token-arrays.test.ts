import { describe, expect, it } from "vitest"
import { callPathFixture, fakeEmbedModel } from "../../testing/index.ts"
import { makeEmbeddingsEndpoint } from "./endpoint.ts"
import type { EmbeddingsReply } from "./schema.ts"

const open = () => {
  const model = fakeEmbedModel({ entry: { contextTokens: 100 } })
  const fixture = callPathFixture([model])
  const endpoint = makeEmbeddingsEndpoint(fixture)
  const ask = (more: object) => fixture.ask(endpoint, { model: "svc-embed", ...more })
  const reply = async (more: object) => {
    const answer = await ask(more)
    expect(answer).toMatchObject({ status: 200 })
    return answer.json as EmbeddingsReply
  }
  return { model, ask, reply }
}

describe("token arrays", () => {
  it("are texts of the model's own tokens: one, or several, beside strings", async () => {
    const { reply, model } = open()
    const { data, usage } = await reply({ input: [5, 6, 7] })
    expect(data).toMatchObject([{ index: 0, type: "text" }])
    expect(usage).toMatchObject({ prompt_tokens: 3, truncated_count: 0 })
    const several = await reply({ input: [[5, 6, 7], "apel", [8]] })
    expect(several.data.map(({ index }) => index)).toEqual([0, 1, 2])
    expect(several.data[0]!.embedding).toEqual(data[0]!.embedding)
    expect(model.runs.map(({ request }) => request.items)).toEqual([
      [{ type: "tokens", ids: Int32Array.of(5, 6, 7) }],
      [
        { type: "tokens", ids: Int32Array.of(5, 6, 7) },
        { type: "text", text: "apel" },
        { type: "tokens", ids: Int32Array.of(8) },
      ],
    ])
  })

  it("follow truncate, beyond the model's window and beyond the most tokens", async () => {
    const { reply, ask } = open()
    const ids = Array.from({ length: 10_001 }, (_, id) => id)
    for (const input of [ids, ids.slice(0, 300)]) {
      const [end, start] = await Promise.all(
        ["END", "START"].map((truncate) => reply({ input, truncate })),
      )
      expect([end, start].map((one) => one!.usage.truncated_count)).toEqual([1, 1])
      expect(end!.data[0]!.embedding).not.toEqual(start!.data[0]!.embedding)
      expect(await ask({ input, truncate: "NONE" })).toMatchObject({
        status: 422,
        json: { code: "text_too_long", param: "input" },
      })
    }
    expect(await ask({ input: ["a", ids], truncate: "NONE" })).toMatchObject({
      status: 422,
      json: { param: "input[1]" },
    })
  })

  it("may be as many as the operator allows", async () => {
    const fixture = callPathFixture([fakeEmbedModel()])
    const endpoint = makeEmbeddingsEndpoint({ ...fixture, maxInputs: 200 })
    const ask = (count: number) =>
      fixture.ask(endpoint, { model: "svc-embed", input: Array(count).fill([1, 2]) })
    expect(await ask(200)).toMatchObject({ status: 200 })
    expect(await ask(201)).toMatchObject({ status: 400, json: { param: "input" } })
  })
})
