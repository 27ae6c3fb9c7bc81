import { describe, expect, it } from "vitest"
import type { ChatEvent, ChatRequest } from "../../../core/ports/model.ts"
import { type OpenedModel, openOnce } from "./fixture.ts"

const greedy = { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0 }
const request = (text: string, more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: "user", content: [{ type: "text", text }] }],
  sampling: greedy,
  maxTokens: 12,
  stop: [],
  ...more,
})
const question = "Tell me a long story about the sea, the wind and a small boat."
const textOf = (events: readonly ChatEvent[]) =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("")

/**
 * `open` is called once. The model's window holds 240 tokens or more, and the suite's prompts of up
 * to 150 characters; greedy, and with the
 * seed 7 at temperature 1, it says more than 12 tokens to a question about the sea.
 */
export const chatModelContract = (name: string, open: () => Promise<OpenedModel<"chat">>): void => {
  describe(`${name} keeps the contract of chat models`, { timeout: 120_000 }, () => {
    const { ask, refusal, expectStops, long } = openOnce(open)
    const short = () => ask(request("Hi", { maxTokens: 2 }))

    it("plans with a bound, and ends with exactly one finish, last", async () => {
      const { events, bound, used } = await ask(request(question))
      expect(bound.inputTokens).toBeGreaterThan(0)
      expect(bound.outputTokens).toBeLessThanOrEqual(12)
      expect(used.inputTokens).toBeGreaterThan(0)
      expect(events.filter((event) => event.type === "finish")).toEqual([events.at(-1)])
      expect(textOf(events)).not.toMatch(/\p{Surrogate}/u)
    })

    it("stops at maxTokens, and says length", async () => {
      for (const maxTokens of [1, 5]) {
        const { events, used } = await ask(request(question, { maxTokens }))
        expect(used.outputTokens).toBe(maxTokens)
        expect(events.at(-1)).toEqual({ type: "finish", reason: "length" })
      }
    })

    it("says the same again when it is greedy, and with a seed", async () => {
      const seeded = { ...greedy, temperature: 1, seed: 7 }
      for (const sampling of [greedy, seeded]) {
        const [one, two] = [
          await ask(request(question, { sampling })),
          await ask(request(question, { sampling })),
        ]
        expect(textOf(two.events)).toBe(textOf(one.events))
      }
    })

    it("ends before the first stop string, wherever the tokens cut it", async () => {
      const whole = textOf((await ask(request(question))).events)
      expect(whole.length).toBeGreaterThan(8)
      for (const [from, to] of [
        [1, 3],
        [3, 8],
        [Math.floor(whole.length / 2), whole.length - 1],
      ] as const) {
        const stop = whole.slice(from, to)
        const { events } = await ask(request(question, { stop: ["\u0000never", stop] }))
        expect(textOf(events)).toBe(whole.slice(0, whole.indexOf(stop)))
        expect(events.at(-1)).toEqual({ type: "finish", reason: "stop" })
      }
    })

    it("refuses a prompt over its window, with the counts", async () => {
      const error = await refusal(request(long()))
      expect(error).toMatchObject({ code: "context_length_exceeded" })
      expect(error?.message).toMatch(/\d.*\d/)
    })

    it("serves several at once as it serves one", async () => {
      const alone = textOf(
        (await ask(request(question, { sampling: { ...greedy, seed: 1 } }))).events,
      )
      const together = await Promise.all(
        [1, 2, 3].map(() => ask(request(question, { sampling: { ...greedy, seed: 1 } }))),
      )
      expect(together.map(({ events }) => textOf(events))).toEqual([alone, alone, alone])
    })

    it("writes several answers to a prompt that it reads once, each with one end", async () => {
      const sampling = { ...greedy, temperature: 1, seed: 7 }
      const one = await ask(request(question, { sampling }))
      for (const answers of [2, 8]) {
        const { events, used, bound } = await ask(request(question, { sampling, answers }))
        expect(used.inputTokens).toBe(one.used.inputTokens)
        expect(bound).toMatchObject({
          inputTokens: one.bound.inputTokens,
          outputTokens: answers * one.bound.outputTokens,
        })
        const own = Array.from({ length: answers }, (_, index) =>
          events.filter(({ answer = 0 }) => answer === index),
        )
        expect(own.flat()).toHaveLength(events.length)
        for (const each of own)
          expect(each.filter(({ type }) => type === "finish")).toEqual([each.at(-1)])
        expect(textOf(own[0]!)).toBe(textOf(one.events))
        expect(used.outputTokens).toBeGreaterThan(one.used.outputTokens)
      }
      await expectStops(request(question, { sampling, answers: 8, maxTokens: 64 }), short)
    })

    it("keeps its bound when it thinks", async () => {
      const { events, used, bound } = await ask(request(question, { thinking: true }))
      expect(events.filter((event) => event.type === "finish")).toEqual([events.at(-1)])
      expect(used.reasoningTokens).toBeLessThanOrEqual(used.outputTokens)
      expect(bound.reasoningTokens).toBeLessThanOrEqual(bound.outputTokens)
    })

    it("keeps its bound when a marked beginning is in its cache", async () => {
      const marked: ChatRequest = request("Hi", {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "The sea. ".repeat(16), cacheBreakpoint: true },
              { type: "text", text: "Hi" },
            ],
          },
        ],
        maxTokens: 2,
      })
      for (let time = 0; time < 3; time++) {
        const { used } = await ask(marked)
        expect(used.cacheReadTokens + used.cacheWriteTokens).toBeLessThanOrEqual(used.inputTokens)
      }
    })

    it("stops working when it is interrupted, or nobody reads on", async () => {
      await expectStops(request(question, { maxTokens: 64 }), short)
    })
  })
}
