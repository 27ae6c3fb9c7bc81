import { Effect } from "effect"
import { expect, it } from "vitest"
import { callPathFixture, fakeRerankModel } from "../../testing/index.ts"
import { makeRerankEndpoint } from "./endpoint.ts"

const asked = {
  model: "svc-rerank",
  query: "kota tua",
  documents: ["kota tua Jakarta", "Bandung"],
}

/** What a receipt says of a call. */
const evidenceOf = async (more: object = {}, entry: object = {}) => {
  const calls = callPathFixture([fakeRerankModel({ entry })])
  const run = calls.path.runUnsettled(
    makeRerankEndpoint(calls),
    calls.input({ ...asked, ...more } as never),
  )
  const { settlement } = await Effect.runPromise(Effect.scoped(run))
  return settlement.evidence ?? {}
}

const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)

it("names request, entry and results, and is the same for the same call", async () => {
  const evidence = await evidenceOf()
  expect(evidence).toMatchObject({ request: digest, config: digest, answer: digest })
  expect(await evidenceOf({ top_n: null, return_documents: false })).toEqual(evidence)
})

it.each([
  { query: "kota" },
  { documents: ["kota tua Jakarta", "Surabaya"] },
  { documents: [{ text: "kota tua Jakarta" }, "Bandung"] },
  { instruction: "Find cities" },
  { top_n: 1 },
  { return_documents: true },
  { max_tokens_per_doc: 7 },
  { max_chunks_per_doc: 7 },
])("has another digest of the request with %j", async (more) => {
  const evidence = await evidenceOf()
  const other = await evidenceOf(more)
  expect(other.request).not.toBe(evidence.request)
  expect(other.config).toBe(evidence.config)
})

it("has other digests for another entry, and other results", async () => {
  const evidence = await evidenceOf()
  const other = await evidenceOf({}, { options: { instruction: "Find cities" } })
  expect(other).toEqual({ ...evidence, config: other.config })
  expect(other.config).not.toBe(evidence.config)
  expect((await evidenceOf({ top_n: 1 })).answer).not.toBe(evidence.answer)
})
