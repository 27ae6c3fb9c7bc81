import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { lineOfError, placesIn } = await webModule("json-places.js")
const { annotated, checkSchema, examples, remarks } = await webModule("schema-check.js")
const { Problem } = await webModule("api.js")

const pointersOf = (value: unknown, at = ""): readonly string[] => [
  at,
  ...(typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, inner]) =>
        pointersOf(inner, `${at}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`),
      )
    : []),
]

describe("places in a JSON text", () => {
  it("are there for every member and item", () => {
    const text = '{"a/b": [1, {"c~": {}}],\n "d": {"e": "x{,"}}'
    const shown = [...placesIn(text)].map(([pointer, at]) => [pointer, text.slice(at, at + 4)])
    expect(Object.fromEntries(shown)).toEqual({
      "": '{"a/',
      "/a~1b": '"a/b',
      "/a~1b/0": "1, {",
      "/a~1b/1": '{"c~',
      "/a~1b/1/c~0": '"c~"',
      "/d": '"d":',
      "/d/e": '"e":',
    })
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, space) => {
        const places = placesIn(JSON.stringify(value, null, space))
        // of names that are there twice the last counts, and __proto__ is one of them
        for (const pointer of pointersOf(JSON.parse(JSON.stringify(value))))
          expect(places.has(pointer)).toBe(true)
      }),
    )
  })
})

describe("the line at which a text stops being JSON", () => {
  it.each([
    ['{\n "type": foo" }', 2],
    ['{"a": 1,\n}', 2],
    ["[1,\n2 3]", 2],
    ['{"a"\n\n 1}', 3],
    ["[1]\n]", 2],
    ["", 1],
    ["[01]", 1],
    ['[\n"a\n"]', 2],
    ['{\n"a": tru', 2],
  ])("%j", (text, line) => {
    expect(lineOfError(text)).toBe(line)
  })

  it("is found in whatever a browser refuses", () => {
    const cut = fc.tuple(fc.json(), fc.nat(), fc.string({ maxLength: 2 }))
    fc.assert(
      fc.property(cut, ([json, at, more]) => {
        const place = at % (json.length + 1)
        const text = json.slice(0, place) + more
        try {
          JSON.parse(text)
        } catch {
          expect(lineOfError(text)).toBeGreaterThan(0)
          expect(lineOfError(text)).toBeLessThanOrEqual(text.split("\n").length)
        }
      }),
    )
  })
})

describe("a check", () => {
  const v1 = (reply: object) => ({
    post: async () => {
      if (reply instanceof Error) throw reply
      return reply
    },
  })
  const refusal = (more: object) =>
    new Problem({ status: 400, code: "invalid_request_error", param: "schema", ...more })

  it("returns the report", async () => {
    const report = { accepted: true, keywords: [] }
    expect(await checkSchema(v1(report), "{}")).toBe(report)
  })

  it("says the place in what is no JSON Schema, as in a report", async () => {
    const message =
      'The schema is no JSON Schema at /properties/a b/type: type "foo" does not exist.'
    expect(await checkSchema(v1(refusal({ message })), "{}")).toEqual({
      accepted: false,
      isInvalid: true,
      keywords: [
        {
          path: "/properties/a b/type",
          keyword: "type",
          verdict: "refused",
          reason: 'type "foo" does not exist.',
        },
      ],
    })
  })

  it("fails with all other errors, in the reader's words where the text is no JSON", async () => {
    await expect(checkSchema(v1({}), "{\n")).rejects.toMatchObject({
      code: "schema_not_json_at",
      param: "schema",
      line: 2,
    })
    await expect(checkSchema(v1(new Problem({ code: "not_found" })), "{}")).rejects.toMatchObject({
      code: "schema_checker_missing",
    })
    const other = refusal({ message: "schema: must be nested at most 64 levels deep" })
    await expect(checkSchema(v1(other), "{}")).rejects.toBe(other)
  })

  it("is shown at the lines that it is about", () => {
    const path = "/properties/address/$ref"
    const keywords = [
      { path: "/type", keyword: "type", verdict: "enforced" },
      { path, keyword: "$ref", verdict: "refused", reason: "it is not here" },
    ]
    const lines = annotated(examples.refused, remarks({ keywords }))
    expect(lines.filter((line: { remarks: object[] }) => line.remarks.length > 0)).toEqual([
      { number: 9, text: expect.stringContaining('"$ref"'), remarks: [keywords[1]] },
    ])
    expect(lines).toHaveLength(examples.refused.split("\n").length)
  })

  it("of a long text is shown around its remarks", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 50 }, (_, at) => [`p${at}`, { type: "string" }]),
    )
    const text = JSON.stringify({ properties }, null, 2)
    const numbers = (paths: readonly string[]) =>
      annotated(
        text,
        paths.map((path) => ({ path, verdict: "refused" })),
      ).map(({ number }: { number: number }) => number)
    expect(numbers([])).toEqual([])
    expect(numbers(["/properties/p0/type", "/properties/p9"])).toEqual([
      1, 2, 3, 4, 5, 6, 7, 27, 28, 29, 30, 31, 32, 33,
    ])
  })
})
