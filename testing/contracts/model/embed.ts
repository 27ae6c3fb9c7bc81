import { describe, expect, it } from "vitest"
import type { EmbedEvent, EmbedItem, EmbedRequest, Part } from "../../../core/ports/model.ts"
import { type OpenedModel, openOnce } from "./fixture.ts"

const texts = (...all: string[]): readonly Part[] => all.map((text) => ({ type: "text", text }))
const request = (items: readonly EmbedItem[], more: Partial<EmbedRequest> = {}): EmbedRequest => ({
  items,
  truncate: "END",
  ...more,
})
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0)
const sentences = [
  "The cat sleeps on the mat.",
  "Stock prices fell sharply today.",
  "Kucing itu tidur.",
  "a",
]

/**
 * `open` is called once. The model's window holds 72 tokens or more: sentences of up to 32
 * characters and an instruction of 40 are not cut.
 */
export const embedModelContract = (
  name: string,
  open: () => Promise<OpenedModel<"embed">>,
): void => {
  describe(`${name} keeps the contract of embedding models`, { timeout: 120_000 }, () => {
    const { ask, refusal, expectStops, long, loaded } = openOnce(open)
    const vectors = async (wanted: EmbedRequest) => {
      const { events } = await ask(wanted)
      return [...events]
        .sort((a: EmbedEvent, b: EmbedEvent) => a.index - b.index)
        .map((event) => event.vector)
    }

    it("gives one normalized vector for each item, all of one length, and names its space", async () => {
      const { events, used } = await ask(request(texts(...sentences)))
      expect(events.map((event) => event.index).sort()).toEqual([0, 1, 2, 3])
      expect(new Set(events.map((event) => event.vector.length)).size).toBe(1)
      for (const event of events) {
        expect(Math.sqrt(dot(event.vector, event.vector))).toBeCloseTo(1, 4)
        expect(event.truncated).toBe(false)
      }
      expect(used.inputTokens).toBeGreaterThan(0)
      expect(loaded().embeddingSpace).toMatch(/./)
    })

    it("gives equal texts equal vectors, alone or among others, and other texts others", async () => {
      const all = await vectors(request(texts(...sentences, sentences[0]!)))
      const alone = await vectors(request(texts(sentences[0]!)))
      expect(dot(all[0]!, all[4]!)).toBeGreaterThan(0.9999)
      expect(dot(all[0]!, alone[0]!)).toBeGreaterThan(0.9999)
      expect(dot(all[0]!, all[1]!)).toBeLessThan(0.999)
    })

    it("keeps all cosines within the width that it names", async () => {
      const { embeddingWidth } = loaded()
      if (embeddingWidth === undefined) return
      const all = await vectors(request(texts(...sentences)))
      const cut = all.map((vector) => vector.subarray(0, embeddingWidth))
      for (const [i, a] of cut.entries())
        for (const [j, b] of cut.entries())
          expect(dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))).toBeCloseTo(dot(all[i]!, all[j]!), 4)
    })

    it("lets an instruction change the vector", async () => {
      const [plain] = await vectors(request(texts(sentences[0]!)))
      const [instructed] = await vectors(
        request(texts(sentences[0]!), { instruction: "Represent this text for finding answers: " }),
      )
      expect(dot(plain!, instructed!)).toBeLessThan(0.9999)
    })

    it("cuts what is too long at the end that truncate names, and says so", async () => {
      const marked = [`${sentences[1]} ${long()}`, `${long()} ${sentences[1]}`] as const
      const { events } = await ask(request(texts(marked[0], "a")))
      expect(events.map((event) => [event.index, event.truncated]).sort()).toEqual([
        [0, true],
        [1, false],
      ])
      const [start, , plain] = await vectors(request(texts(marked[0], "a", long())))
      expect(dot(start!, plain!)).toBeLessThan(0.9999)
      const [kept, whole] = await vectors(request(texts(marked[1], long())))
      expect(dot(kept!, whole!)).toBeGreaterThan(0.9999)
      const [end, otherWhole] = await vectors(
        request(texts(marked[1], long()), { truncate: "START" }),
      )
      expect(dot(end!, otherWhole!)).toBeLessThan(0.9999)
    })

    it("takes tokens of its own vocabulary as a text, or refuses them by name", async () => {
      const tokens = (...ids: number[]) => ({ type: "tokens", ids: Int32Array.from(ids) }) as const
      const foreign = await refusal(request([tokens(2 ** 31 - 1)]))
      if (foreign?.code === "unsupported_parameter") return
      expect(foreign).toMatchObject({ code: "invalid_request_error", param: "input[0][0]" })
      const [one, same, text] = await vectors(request([tokens(9, 8), tokens(9, 8), ...texts("a")]))
      expect(dot(one!, same!)).toBeGreaterThan(0.9999)
      expect(dot(one!, text!)).toBeLessThan(0.9999)
      const many = tokens(...Array.from({ length: loaded().contextTokens + 1 }, () => 9))
      const { events } = await ask(request([many]))
      expect(events[0]?.truncated).toBe(true)
      expect(await refusal(request([many], { truncate: "NONE" }))).toMatchObject({
        code: "text_too_long",
      })
    })

    it("refuses what is too long with NONE, and images that it can't see", async () => {
      expect(await refusal(request(texts("a", long()), { truncate: "NONE" }))).toMatchObject({
        code: "text_too_long",
      })
      const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
      if (!loaded().modalities.includes("image"))
        expect(
          await refusal(request([{ type: "media", mediaType: "image/png", bytes: png }])),
        ).toMatchObject({ code: "unsupported_parameter" })
    })

    it("stops working when it is interrupted, or nobody reads on", async () => {
      const many = request(
        texts(...Array.from({ length: 64 }, (_, i) => `${i} ${"kata ".repeat(50)}`)),
      )
      await expectStops(many, () => ask(request(texts("a"))))
    })
  })
}
