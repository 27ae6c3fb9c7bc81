import { describe, expect, it } from "vitest"
import type { RerankRequest } from "../../../core/ports/model.ts"
import { type OpenedModel, openOnce } from "./fixture.ts"

const documents = [
  "Jakarta is the capital of Indonesia.",
  "Bananas are yellow.",
  "",
  "The capital of France is Paris.",
]
const query = "What is the capital of Indonesia?"

/**
 * `open` is called once. The model's window holds the suite's query and any of its documents, some
 * 100 characters, inside of its own template.
 */
export const rerankModelContract = (
  name: string,
  open: () => Promise<OpenedModel<"rerank">>,
): void => {
  describe(`${name} keeps the contract of rerank models`, { timeout: 120_000 }, () => {
    const { ask, refusal, expectStops, long } = openOnce(open)
    const scores = async (wanted: RerankRequest) =>
      new Map((await ask(wanted)).events.map(({ index, score }) => [index, score]))

    it("gives each document one score from 0 to 1, for one search unit", async () => {
      const { events, bound, used } = await ask({ query, documents })
      expect(events.map((event) => event.index).sort()).toEqual([0, 1, 2, 3])
      for (const { score } of events) expect(score >= 0 && score <= 1).toBe(true)
      expect([bound.searchUnits, used.searchUnits]).toEqual([1, 1])
    })

    it("scores a document alone as it scores it among others", async () => {
      const among = await scores({ query, documents })
      for (const [index, document] of documents.entries())
        expect((await scores({ query, documents: [document] })).get(0)).toBeCloseTo(
          among.get(index)!,
          5,
        )
    })

    it("reads a long document in windows, as many as are wanted, and takes an instruction", async () => {
      const documents = [`${long()} tail one`, `${long()} another tail`]
      const instruction = "Judge whether the document answers the question."
      const some = await ask({ query, documents, instruction, maxDocumentWindows: 2 })
      const first = await ask({ query, documents, instruction, maxDocumentWindows: 1 })
      expect(first.used.inputTokens).toBeLessThan(some.used.inputTokens)
      const cut = await scores({ query, documents, instruction, maxDocumentTokens: 10 })
      expect(cut.get(0)).toBe(cut.get(1)!)
    })

    it("refuses a query that alone exceeds the window", async () => {
      expect(await refusal({ query: long(), documents: ["a"] })).toMatchObject({
        code: "context_length_exceeded",
      })
    })

    it("stops working when it is interrupted, or nobody reads on", async () => {
      const many: RerankRequest = {
        query,
        documents: Array.from({ length: 64 }, (_, i) => `${i} ${"kata ".repeat(20)}`),
      }
      await expectStops(many, () => ask({ query, documents: ["a"] }))
    })
  })
}
