import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { IncrementalDetokenizer, type TokenDetail } from "./incremental-detokenizer.ts"
import { type ChosenLogprobs, logprobsOf } from "./logprobs.ts"

const chosen: ChosenLogprobs = { logprob: -1, top: [] }

/** A vocabulary of the pieces themselves. */
const write = (pieces: readonly Uint8Array[], stops: readonly string[]) => {
  const text = new IncrementalDetokenizer(stops, (token) => pieces[token]!, { isDetailed: true })
  const out: { readonly text: string; readonly details: readonly TokenDetail[] }[] = []
  let stopped = false
  for (const token of pieces.keys()) {
    const piece = text.push(token, chosen)
    out.push({ text: piece.text, details: piece.details! })
    stopped = piece.stopped
    if (stopped) break
  }
  if (!stopped) {
    const piece = text.end()
    out.push({ text: piece.text, details: piece.details! })
  }
  return {
    text: out.map((piece) => piece.text).join(""),
    details: out.flatMap((piece) => piece.details),
    out,
    stopped,
  }
}

const cutAt = (bytes: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] => {
  const edges = [
    0,
    ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ]
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge))
}
const bytesOf = (details: readonly TokenDetail[]) =>
  Buffer.concat(details.map((detail) => detail.bytes))

test("over every split into tokens: details of exactly the tokens whose text is out, never before it, and none behind a stop string", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), maxLength: 16 })
  fc.assert(
    fc.property(
      letters,
      fc.array(
        fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), minLength: 1, maxLength: 3 }),
        { maxLength: 3 },
      ),
      fc.array(fc.nat(), { maxLength: 10 }),
      (text, stops, cuts) => {
        const pieces = cutAt(Buffer.from(text), cuts)
        const result = write(pieces, stops)
        if (!result.stopped) expect(bytesOf(result.details).toString()).toBe(text)
        // the last one may be cut by the stop string
        else
          expect(
            bytesOf(result.details)
              .toString("latin1")
              .startsWith(Buffer.from(result.text).toString("latin1")),
          ).toBe(true)
        let sofar = ""
        let tokens = 0
        for (const { text: more, details } of result.out) {
          sofar += more
          tokens += details.length
          if (!result.stopped)
            expect(bytesOf(result.details.slice(0, tokens)).length).toBeLessThanOrEqual(
              Buffer.byteLength(sofar),
            )
        }
      },
    ),
    { numRuns: runs(1_000) },
  )
})

test("the first space goes where the tokenizer says so, once", () => {
  const pieces = [" ", " a", " b"].map((piece) => Buffer.from(piece))
  const text = new IncrementalDetokenizer([], (token) => pieces[token]!, { dropsFirstSpace: true })
  expect([1, 2, 0].map((token) => text.push(token).text)).toEqual(["a", " b", " "])
})

describe("log-probabilities", () => {
  test("are those of the softmax, the likeliest in order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.float({ min: -20, max: 20, noNaN: true }), { minLength: 21, maxLength: 60 }),
        fc.integer({ min: 0, max: 20 }),
        fc.nat(),
        (logits, count, pick) => {
          const values = Float32Array.from(logits)
          const total = values.reduce((sum, logit) => sum + Math.exp(logit), 0)
          const answer = logprobsOf(values, count)
          values.fill(0)
          const id = pick % logits.length
          const { logprob, top } = answer(id)
          expect(logprob).toBeCloseTo(Math.log(Math.exp(Math.fround(logits[id]!)) / total), 3)
          expect(top.map((other) => Math.fround(logits[other.id]!))).toEqual(
            [...Float32Array.from(logits)].sort((a, b) => b - a).slice(0, count),
          )
        },
      ),
    )
  })

  test("of what can't be are numbers too", () => {
    expect(logprobsOf(Float32Array.of(Number.NEGATIVE_INFINITY, 1), 0)(0).logprob).toBe(-9999)
  })
})
