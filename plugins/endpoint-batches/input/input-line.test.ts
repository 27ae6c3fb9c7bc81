import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isBatchError, readInputLine } from "./input-line.ts"

const endpoint = "/v1/embeddings"
const raw = (text: string | undefined, problem?: "too_long" | "not_utf8") => ({
  line: 7,
  offset: 0,
  end: 1,
  text,
  ...(problem && { problem }),
})
const read = (text: string) => readInputLine(raw(text), endpoint)
const good = { custom_id: "a", method: "POST", url: endpoint, body: { model: "m", input: "x" } }
const line = (more: object) => read(JSON.stringify({ ...good, ...more }))

describe("an input line", () => {
  it("gives its custom_id and its body; what else it holds is left alone", () => {
    expect(line({ later: 1 })).toEqual({ customId: "a", body: good.body })
    expect(line({ custom_id: "😀".repeat(256) })).toMatchObject({ customId: "😀".repeat(256) })
    expect(line({ body: { stream: true } })).toMatchObject({ body: { stream: true } })
  })

  it.each([
    [{ custom_id: undefined }, "invalid_request_error", "custom_id", "is missing"],
    [{ custom_id: null }, "invalid_request_error", "custom_id", "is missing"],
    [{ custom_id: 5 }, "invalid_request_error", "custom_id", "string"],
    [{ custom_id: "" }, "invalid_request_error", "custom_id", "empty"],
    [{ custom_id: "é".repeat(257) }, "invalid_request_error", "custom_id", "256"],
    [{ method: undefined }, "invalid_request_error", "method", "is missing"],
    [{ method: "GET" }, "invalid_request_error", "method", "POST"],
    [{ method: "post" }, "invalid_request_error", "method", "POST"],
    [{ url: undefined }, "invalid_request_error", "url", "is missing"],
    [{ url: 1 }, "invalid_request_error", "url", "string"],
    [{ url: "/v1/rerank" }, "mismatched_endpoint", "url", "'/v1/embeddings'"],
    [{ body: undefined }, "invalid_request_error", "body", "is missing"],
    [{ body: [] }, "invalid_request_error", "body", "object"],
    [{ body: "{}" }, "invalid_request_error", "body", "object"],
  ])("%o is refused", (more, code, param, message) =>
    expect(line(more)).toEqual({ code, param, line: 7, message: expect.stringContaining(message) }),
  )

  it.each([
    ["not json", "invalid_json", "at character 1."],
    ['{"custom_id": "a",}', "invalid_json", "at character 19."],
    ['{"custom_id": "a"', "invalid_json", "ends too early"],
    ["a\0b", "invalid_json", "at character 1."],
    ["[]", "invalid_request_error", "must be a JSON object"],
    ["null", "invalid_request_error", "must be a JSON object"],
    ['"text"', "invalid_request_error", "must be a JSON object"],
  ])("%o is refused", (text, code, message) =>
    expect(read(text)).toEqual({
      code,
      param: null,
      line: 7,
      message: expect.stringContaining(message),
    }),
  )

  it("that could not be read says why", () => {
    expect(readInputLine(raw(undefined, "too_long"), endpoint)).toMatchObject({
      code: "line_too_long",
      line: 7,
      param: null,
    })
    expect(readInputLine(raw(undefined, "not_utf8"), endpoint)).toMatchObject({
      code: "invalid_utf8",
      line: 7,
      param: null,
    })
  })

  it("takes its fields from itself only", () => {
    expect(read(`{"__proto__": ${JSON.stringify(good)}}`)).toMatchObject({ param: "custom_id" })
    expect(read(`{"__proto__": {"x": 1}, ${JSON.stringify(good).slice(1)}`)).toEqual({
      customId: "a",
      body: good.body,
    })
    expect(({} as { x?: number }).x).toBeUndefined()
  })

  it("is neither too deep nor too wide", () => {
    const deep = (levels: number) =>
      `{"custom_id":"a","method":"POST","url":"${endpoint}","body":{"input":${"[".repeat(levels)}${"]".repeat(levels)}}}`
    expect(read(deep(99))).toMatchObject({ customId: "a" })
    const refused = (message: string) => ({
      code: "invalid_request_error",
      message: expect.stringContaining(message),
    })
    expect(read(deep(100))).toMatchObject(refused("deeper than 101 levels"))
    expect(read("[".repeat(400_000))).toMatchObject(refused("deeper"))
    const wide = (count: number, one: (i: number) => string) =>
      Array.from({ length: count }, (_, i) => one(i)).join()
    const refusedBody = (body: string) => read(`{"body":{${body}}}`)
    expect(refusedBody(wide(50_000, (i) => `"${i}":1`))).toMatchObject(refused("40,000 keys"))
    expect(refusedBody(`"a":[${wide(200_000, () => "{}")}]`)).toMatchObject(refused("objects"))
    expect(refusedBody(`"a":[${wide(700_000, () => "1")}]`)).toMatchObject(refused("values"))
    expect(line({ body: { input: "[{,:".repeat(1_000_000) } })).toMatchObject({ customId: "a" })
  })

  it("is not searched for its fault where it is long", () => {
    expect(read(`["${"x".repeat(100_000)}`)).toMatchObject({
      code: "invalid_json",
      message: "The line is not valid JSON.",
    })
  })

  it("never throws, and never quotes what it was given", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.object().map((object) => JSON.stringify({ ...good, ...object })),
        ),
        (text) => {
          const found = read(text)
          if (isBatchError(found)) expect(found.message.length).toBeLessThan(120)
          else expect(typeof found.body).toBe("object")
        },
      ),
    )
  })
})
