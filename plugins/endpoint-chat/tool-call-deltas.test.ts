import { Effect, Stream } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import type { ChatEvent } from "../../core/ports/model.ts"
import { runs } from "../../testing/property.ts"
import { toCompletion } from "./reply-encoding.ts"
import { normalizeToolCalls } from "./tool-call-deltas.ts"

type ToolCallEvent = Extract<ChatEvent, { type: "toolCall" }>

const tidy = (events: readonly ChatEvent[]) => {
  let made = 0
  return Effect.runPromise(
    Stream.runCollect(normalizeToolCalls(Stream.fromIterable(events), () => `made_${++made}`)),
  )
}

/** Pieces of text, some of them empty. */
const cut = (text: string, cuts: readonly number[]): readonly string[] => {
  const places = [
    0,
    ...cuts.map((at) => Math.min(at, text.length)).sort((a, b) => a - b),
    text.length,
  ]
  return places.slice(1).map((to, index) => text.slice(places[index], to))
}

const aCall = fc.record({
  id: fc.option(fc.constantFrom("call_x", "call_y"), { nil: undefined }),
  name: fc.constantFrom("f", "g"),
  nameAt: fc.nat(9),
  text: fc
    .tuple(fc.constantFrom("", " ", "\n\t "), fc.jsonValue())
    .map(([spaces, value]) => spaces + JSON.stringify(value)),
  cuts: fc.array(fc.nat(40), { maxLength: 8 }),
})

const eventsOf = (
  call: typeof aCall extends fc.Arbitrary<infer A> ? A : never,
  index: number,
): readonly ToolCallEvent[] => {
  const pieces = cut(call.text, call.cuts)
  const nameAt = call.nameAt % pieces.length
  const event = (argumentsDelta: string, at: number): ToolCallEvent => ({
    type: "toolCall",
    index,
    argumentsDelta,
    ...(at === nameAt && { name: call.name }),
  })
  return pieces.map((piece, at) => ({
    ...event(piece, at),
    ...(at === 0 && call.id !== undefined && { id: call.id }),
  }))
}

const heading = { id: "chatcmpl-1", created: 1, model: "m" }

it("however a model cuts its calls, they are the same calls, and each begins with id and name", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aCall, { minLength: 1, maxLength: 3 }),
      fc.constantFrom("stop", "tool_calls"),
      async (calls, reason) => {
        const out = await tidy([...calls.flatMap(eventsOf), { type: "finish", reason }])
        expect(out.at(-1)).toEqual({ type: "finish", reason: "tool_calls" })
        for (const index of calls.keys()) {
          const [begin, ...rest] = out.filter(
            (event): event is ToolCallEvent => event.type === "toolCall" && event.index === index,
          )
          expect(begin).toEqual({
            type: "toolCall",
            index,
            id: calls[index]!.id ?? expect.stringMatching(/^made_/),
            name: calls[index]!.name,
            argumentsDelta: "",
          })
          expect(
            rest.every(
              (event) =>
                event.id === undefined && event.name === undefined && event.argumentsDelta !== "",
            ),
          ).toBe(true)
          expect(rest[0]?.argumentsDelta.trim()).not.toBe("")
        }
        const message = toCompletion(heading, 1, out, undefined as never)?.choices[0]?.message
        expect(
          message?.tool_calls?.map((call) => [call.function.name, call.function.arguments]),
        ).toEqual(calls.map((call) => [call.name, call.text]))
      },
    ),
    { numRuns: runs(300) },
  )
})

it("leaves everything else as it is", async () => {
  const events: readonly ChatEvent[] = [
    { type: "reasoning", text: "Hm" },
    { type: "text", text: "a" },
    { type: "finish", reason: "stop" },
  ]
  expect(await tidy(events)).toEqual(events)
  const cutOff: ChatEvent = { type: "finish", reason: "length" }
  expect(
    await tidy([{ type: "toolCall", index: 0, name: "f", argumentsDelta: "{" }, cutOff]),
  ).toHaveLength(3)
  expect(
    (await tidy([{ type: "toolCall", index: 0, name: "f", argumentsDelta: "{" }, cutOff])).at(-1),
  ).toEqual(cutOff)
  expect(
    await tidy([
      { type: "toolCall", index: 0, id: "x", argumentsDelta: "" },
      { type: "finish", reason: "stop" },
    ]),
  ).toEqual([{ type: "finish", reason: "stop" }])
})
