import { Cause, Effect, Exit, Option } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { decodeBody } from "../../core/decode.ts"
import { isApiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import { runs } from "../../testing/property.ts"
import { mediaTypeOf, toMedia } from "./image-decoding.ts"
import { shorten, toBase64, toText } from "./reply-encoding.ts"
import { readItems } from "./request-decoding.ts"
import { embeddingsBody } from "./schema.ts"

const EmbeddingsBody = embeddingsBody(64)

const apiErrorOrSuccess = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isSuccess(exit) || isApiError(Option.getOrUndefined(Cause.findErrorOption(exit.cause)))

it("any JSON is read or refused with an ApiError", () => {
  const item = fc.oneof(
    fc.string(),
    fc.array(fc.oneof(fc.nat(), fc.double(), fc.constant("x")), { maxLength: 4 }),
    fc.record(
      {
        type: fc.constantFrom("image", "image_url", "x"),
        image: fc.base64String(),
        image_url: fc.oneof(fc.jsonValue(), fc.record({ url: fc.string() })),
      },
      { requiredKeys: ["type"] },
    ),
  )
  const body = fc.record({
    model: fc.constant("m"),
    input: fc.oneof(item, fc.array(item, { maxLength: 4 }), fc.jsonValue()),
    truncate: fc.constantFrom("END", "START", "NONE"),
  })
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), body), (json) => {
      expect(
        apiErrorOrSuccess(
          Effect.runSyncExit(Effect.flatMap(decodeBody(EmbeddingsBody, json), readItems)),
        ),
      ).toBe(true)
    }),
    { numRuns: runs(1000) },
  )
})

it("an image's bytes arrive whole, in every form", () => {
  const signatures = {
    "image/png": "\x89PNG\r\n\x1a\n",
    "image/jpeg": "\xff\xd8\xff",
    "image/gif": "GIF89a",
    "image/webp": "RIFF....WEBP",
  }
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.entries(signatures)),
      fc.uint8Array({ maxLength: 64 }),
      ([mediaType, signature], rest) => {
        const bytes = Buffer.concat([Buffer.from(signature, "latin1"), rest])
        const base64 = bytes.toString("base64")
        const uri = `data:${mediaType};base64,${base64}`
        for (const item of [
          { type: "image", image: base64 },
          { type: "image", image_url: uri },
          { type: "image_url", image_url: { url: uri } },
        ] as const)
          expect(Effect.runSync(toMedia(item, "input[0]"))).toEqual({
            type: "media",
            mediaType,
            bytes,
          })
      },
    ),
  )
})

it("text in base64 is taken exactly when it is the canonical alphabet, padded, and an image", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 24 }), (text) => {
      const strict = text !== "" && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
      const fits = strict && mediaTypeOf(Buffer.from(text, "base64")) !== undefined
      expect(
        Exit.isSuccess(Effect.runSyncExit(toMedia({ type: "image", image: text }, "input"))),
      ).toBe(fits)
    }),
    { numRuns: runs(1000) },
  )
})

it("a shortened vector has norm 1 and the direction of the prefix; zeros stay zeros", () => {
  const vectors = fc
    .array(fc.float({ noNaN: true, min: -1, max: 1 }), { minLength: 1, maxLength: 64 })
    .map((xs) => Float32Array.from(xs))
  fc.assert(
    fc.property(vectors, fc.integer({ min: 1, max: 80 }), (vector, dimensions) => {
      const short = shorten(vector, dimensions)
      expect(short).toHaveLength(Math.min(dimensions, vector.length))
      expect(
        short.every((x, i) => Number.isFinite(x) && Math.sign(x) * Math.sign(vector[i] ?? 0) >= 0),
      ).toBe(true)
      expect(
        new Float32Array(new Uint8Array(Buffer.from(toBase64(short), "base64")).buffer),
      ).toEqual(short)
      if (
        dimensions < vector.length &&
        vector.slice(0, dimensions).some((x) => Math.abs(x) > 1e-15)
      )
        expect(Math.hypot(...short)).toBeCloseTo(1, 5)
    }),
    { numRuns: runs(500) },
  )
})

it("a reply in base64 has the text that JSON.stringify would write; lists are left to it", () => {
  const item = fc.record({
    object: fc.constant("embedding" as const),
    index: fc.nat(),
    embedding: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("base64")),
    type: fc.constantFrom("text" as const, "image" as const),
  })
  const usage = fc.record({
    prompt_tokens: fc.nat(),
    total_tokens: fc.nat(),
    image_count: fc.nat(),
    truncated_count: fc.nat(),
    cost_idr: fc.double({ noNaN: true, noDefaultInfinity: true }),
  })
  fc.assert(
    fc.property(fc.array(item), fc.string(), usage, (data, model, used) => {
      const reply = { object: "list" as const, data, model, usage: used }
      expect(toText(reply)).toBe(JSON.stringify(reply))
      const numbers = { ...data[0]!, embedding: [0.5, -1] }
      if (data.length) expect(toText({ ...reply, data: [...data, numbers] })).toBe(undefined)
    }),
    { numRuns: runs(300) },
  )
})

it("drops a long text from the asked end, and no half of a surrogate pair", () => {
  const keptOf = (text: string, truncate: "START" | "END") => {
    const [item] = Effect.runSync(readItems({ model: "m", input: text, truncate }))
    return item?.part
  }
  const tail = `${"😀".repeat(9_999)}b`
  expect(keptOf(`a😀${tail}`, "START")).toEqual({ type: "text", text: tail })
  const head = `a${"😀".repeat(9_999)}`
  expect(keptOf(`${head}😀b`, "END")).toEqual({ type: "text", text: head })
})

it("says where an image's data belongs", () => {
  const uri = "data:image/png;base64,AAAA"
  const messageFor = (item: object) => {
    const body = decodeBody(EmbeddingsBody, { model: "m", input: ["a", item as Json] })
    return Effect.runSync(Effect.flip(Effect.flatMap(body, readItems))).message
  }
  const inNeither = "input[1].image: must be base64; or `image_url` a data URI, as a string"
  expect(messageFor({ type: "image" })).toBe(inNeither)
  expect(messageFor({ type: "image", image_url: { url: uri } })).toBe(inNeither)
  expect(messageFor({ type: "image", image: uri })).toBe(
    "input[1].image: must be base64 alone; a data URI goes into image_url",
  )
  expect(messageFor({ type: "image", image: "a*b=" })).toBe("input[1].image: is not valid base64")
  expect(messageFor({ type: "image_url", image_url: uri })).toBe(
    "input[1].image_url: must be an object with a `url`",
  )
})
