import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow } from "../tables.ts"
import { lineOf, openPreflightFixture, targetPath } from "../testing/api-fixture.ts"
import { type PreflightResult, preflight } from "./preflight.ts"

const at = new Date(0)

const rowOf = (inputFileId: string, more: Partial<BatchRow> = {}): BatchRow => ({
  id: "batch-1",
  seq: 1n,
  account: "acct_1",
  mode: "live",
  key_id: "key_1",
  endpoint: targetPath,
  status: "validating",
  input_file_id: inputFileId,
  output_file_id: null,
  error_file_id: null,
  metadata: null,
  errors: null,
  total: 0,
  completed: 0,
  failed: 0,
  cost_micros: 0n,
  epoch: 1,
  lease_until: null,
  done_through: 0,
  done_offset: 0n,
  created_at: at,
  in_progress_at: null,
  ended_at: null,
  deadline_at: at,
  expires_at: at,
  ...more,
})

const check = async (
  content: string | Buffer,
  limits: Partial<BatchDeps["limits"]> = {},
  more: Partial<BatchRow> = {},
): Promise<PreflightResult> => {
  const { deps, addFile } = openPreflightFixture()
  const file = addFile(content)
  return Effect.runPromise(
    preflight({ ...deps, limits: { ...deps.limits, ...limits } }, rowOf(file.id, more)),
  )
}

const faultsOf = (verdict: PreflightResult) =>
  "errors" in verdict ? verdict.errors.map(({ code, line, param }) => [code, line, param]) : verdict

const many = (count: number) => Array.from({ length: count }, (_, n) => lineOf(`c${n}`)).join("\n")
const sized = (bytes: number) => {
  const bare = lineOf("big", { input: "" })
  return lineOf("big", { input: "x".repeat(bytes - bare.length) })
}
const mb = 2 ** 20

describe("an input that is right", () => {
  it.each<[string, () => string | Buffer, number]>([
    ["one line", () => `${lineOf("a")}\n`, 1],
    ["no newline at the end", () => `${lineOf("a")}\n${lineOf("b")}`, 2],
    ["CRLF", () => `${lineOf("a")}\r\n${lineOf("b")}\r\n`, 2],
    ["a byte-order mark", () => `\ufeff${lineOf("a")}\n`, 1],
    ["blank lines", () => `\n\n${lineOf("a")}\n  \n\n${lineOf("b")}\n\n`, 2],
    ["several models", () => `${lineOf("a")}\n${lineOf("b", { model: "svc-omni" })}\n`, 2],
    ["a 5 MB line", () => `${lineOf("a")}\n${sized(5 * mb)}\n`, 2],
    ["a line of exactly 8 MB", () => sized(8 * mb), 1],
    ["50,000 lines", () => many(50_000), 50_000],
    ["any characters", () => lineOf("ж🙂\u2028", { input: "ж🙂\u2028" }), 1],
    ["ids that differ by a byte", () => `${lineOf("a")}\n${lineOf("a ")}\n${lineOf("A")}`, 3],
  ])("%s", async (_, content, total) => {
    expect(await check(content())).toEqual({ total, lineErrors: [] })
  })

  it("may hold lines that fail as they run: that is said of each then", async () => {
    const lines = [
      lineOf("a", { input: 5 }),
      lineOf("b", { model: 7 }),
      lineOf("c", { model: undefined }),
      lineOf("d", { input: "too long" }),
      lineOf("e", { stream: true }),
    ]
    expect(await check(lines.join("\n"))).toEqual({ total: 5, lineErrors: [] })
  })
})

describe("an input that is wrong", () => {
  it.each<[string, () => string | Buffer, readonly unknown[]]>([
    ["nothing", () => "", ["empty_file", null, "input_file_id"]],
    ["blank lines only", () => "\n \r\n\n", ["empty_file", null, "input_file_id"]],
    ["a byte-order mark only", () => "\ufeff", ["empty_file", null, "input_file_id"]],
    [
      "invalid UTF-8",
      () =>
        Buffer.concat([
          Buffer.from(`${lineOf("a")}\n"`),
          Buffer.from([0xff, 0xfe]),
          Buffer.from(`"\n${lineOf("b")}\n`),
        ]),
      ["invalid_utf8", 2, null],
    ],
    [
      "a line over 8 MB",
      () => `${lineOf("a")}\n${sized(8 * mb + 1)}\n${lineOf("b")}`,
      ["line_too_long", 2, null],
    ],
    ["a 9 MB line that is the only one", () => sized(9 * mb), ["line_too_long", 1, null]],
    ["50,001 lines", () => many(50_001), ["too_many_lines", 50_001, "input_file_id"]],
    ["no JSON", () => `${lineOf("a")}\nhello\n`, ["invalid_json", 2, null]],
    [
      "half a line at the end",
      () => `${lineOf("a")}\n${lineOf("b").slice(0, -5)}`,
      ["invalid_json", 2, null],
    ],
    [
      "an array line",
      () => `${lineOf("a")}\n\n[${lineOf("b")}]\n`,
      ["invalid_request_error", 3, null],
    ],
    ["a number", () => "5", ["invalid_request_error", 1, null]],
    [
      "one id twice",
      () => `${lineOf("a")}\n${lineOf("b")}\n\n${lineOf("a")}\n`,
      ["duplicate_custom_id", 4, "custom_id"],
    ],
    [
      "no id",
      () => lineOf("a", {}, { custom_id: undefined }),
      ["invalid_request_error", 1, "custom_id"],
    ],
    [
      "a number as id",
      () => lineOf("a", {}, { custom_id: 5 }),
      ["invalid_request_error", 1, "custom_id"],
    ],
    [
      "another url",
      () => `${lineOf("a")}\n${lineOf("b", {}, { url: "/v1/embeddings" })}`,
      ["mismatched_endpoint", 2, "url"],
    ],
    ["no url", () => lineOf("a", {}, { url: undefined }), ["invalid_request_error", 1, "url"]],
    [
      "another method",
      () => lineOf("a", {}, { method: "GET" }),
      ["invalid_request_error", 1, "method"],
    ],
    [
      "a body that is no object",
      () => lineOf("a", {}, { body: ["a"] }),
      ["invalid_request_error", 1, "body"],
    ],
    ["a body of null", () => lineOf("a", {}, { body: null }), ["invalid_request_error", 1, "body"]],
  ])("%s", async (_, content, fault) => {
    expect(faultsOf(await check(content()))).toEqual([fault])
  })

  it("is reported in the order of lines, whatever is wrong with each", async () => {
    const content = [lineOf("a"), "[]", lineOf("a"), "{", lineOf("b", { model: "gpt-4" })].join(
      "\n",
    )
    expect(faultsOf(await check(content))).toEqual([
      ["invalid_request_error", 2, null],
      ["duplicate_custom_id", 3, "custom_id"],
      ["invalid_json", 4, null],
      ["model_not_found", 5, "body.model"],
    ])
  })

  it("names both lines of an id that comes twice", async () => {
    const verdict = await check(`${lineOf("a")}\n\n${lineOf("a")}`)
    expect("errors" in verdict && verdict.errors[0]?.message).toBe(
      "custom_id: lines 1 and 3 have the same one",
    )
  })

  it("lists a hundred faults, and says how many more there are", async () => {
    const verdict = await check("x\n".repeat(1_250))
    const errors = "errors" in verdict ? verdict.errors : []
    expect([errors.length, errors[99]?.line]).toEqual([101, 100])
    expect(errors[100]).toEqual({
      code: "more_errors",
      message: "1,150 more errors are not listed.",
      line: null,
      param: null,
    })
  })

  it("of bytes is refused line by line, and nothing breaks", async () => {
    const bytes = Buffer.from(
      Array.from({ length: 30_000 }, (_, n) => (n * n * 2_654_435_761) >>> 13),
    )
    const codes = new Set(
      (faultsOf(await check(bytes)) as readonly (readonly string[])[]).map(([code]) => code),
    )
    expect(
      [...codes].filter((code) => !["invalid_utf8", "invalid_json", "more_errors"].includes(code!)),
    ).toEqual([])
    expect(codes.size).toBeGreaterThan(1)
  })
})

describe("a model that the key does not reach", () => {
  const linesOf = (verdict: PreflightResult) =>
    "errors" in verdict ? verdict : verdict.lineErrors.map(({ code, line }) => [code, line])
  it.each<[string, readonly string[], readonly number[]]>([
    ["that nobody has", [lineOf("a"), lineOf("b", { model: "gpt-4" })], [2]],
    ["that is for something else", [lineOf("b", { model: "svc-embed" })], [1]],
    ["in a line that is wrong otherwise", [lineOf("b", { model: "gpt-4", input: 5 })], [1]],
    [
      "for something else, after a line that is wrong otherwise",
      [lineOf("a", { model: "svc-embed", input: 5 }), lineOf("b", { model: "svc-embed" })],
      [1],
    ],
    ["and another", ["gpt-5", "svc-lyt", "gpt-4"].map((model) => lineOf(model, { model })), [1, 3]],
  ])("fails its lines, not the batch: %s", async (_, lines, errors) => {
    const verdict = await check(lines.join("\n"))
    expect(linesOf(verdict)).toEqual(errors.map((line) => ["model_not_found", line]))
  })

  it("is reported once, with the number of its lines", async () => {
    const gone = Array.from({ length: 1_200 }, (_, n) => lineOf(`c${n}`, { model: "gpt-4" }))
    const verdict = await check([lineOf("a"), ...gone].join("\n"))
    const message = expect.stringMatching(/Lines that name it: 1,200\.$/)
    expect(verdict).toMatchObject({ total: 1_201, lineErrors: [{ line: 2, message }] })
  })
})

describe("around the input", () => {
  it("a file that was deleted is a fault, also when its bytes go while they are read", async () => {
    const { deps, addFile, loseBytes } = openPreflightFixture()
    const gone = [["not_found", null, "input_file_id"]]
    expect(faultsOf(await Effect.runPromise(preflight(deps, rowOf("file-none"))))).toEqual(gone)
    const file = addFile(lineOf("a"))
    expect(
      faultsOf(await Effect.runPromise(preflight(deps, rowOf(file.id, { mode: "test" })))),
    ).toEqual(gone)
    loseBytes(file.id)
    expect(faultsOf(await Effect.runPromise(preflight(deps, rowOf(file.id))))).toEqual(gone)
  })

  it("an endpoint that is not served any more is a fault", async () => {
    expect(faultsOf(await check(lineOf("a"), {}, { endpoint: "/v1/other" }))).toEqual([
      ["unsupported_endpoint", null, "endpoint"],
    ])
  })

  it("a key that was revoked is none: its lines fail as they run", async () => {
    expect(
      await check(`${lineOf("a")}\n${lineOf("b", { model: "gpt-4" })}`, {}, { key_id: "key_gone" }),
    ).toEqual({ total: 2, lineErrors: [] })
  })

  it("a model that is still loading is none", async () => {
    const { deps, core, addFile } = openPreflightFixture()
    core.catalogue.set("svc-lyt", { state: "loading", detail: "" })
    expect(await Effect.runPromise(preflight(deps, rowOf(addFile(lineOf("a")).id)))).toEqual({
      total: 1,
      lineErrors: [],
    })
  })

  it("the limits are those of the settings", async () => {
    expect(faultsOf(await check(many(4), { maxLines: 3 }))).toEqual([
      ["too_many_lines", 4, "input_file_id"],
    ])
    expect(faultsOf(await check(lineOf("a"), { maxLineBytes: 20 }))).toEqual([
      ["line_too_long", 1, null],
    ])
  })

  it("others are served while it reads", async () => {
    const { deps, addFile } = openPreflightFixture()
    const file = addFile(many(300))
    let nowMs = 0
    const later = () => {
      nowMs += 20
      return nowMs
    }
    // every read of this clock takes long
    const clock = { nowMs: () => 0, monotonicMs: () => later() }
    const rest = new Set<number>()
    const watch = () => {
      rest.add(nowMs)
      next = setImmediate(watch)
    }
    let next = setImmediate(watch)
    await Effect.runPromise(preflight({ ...deps, clock }, rowOf(file.id))).finally(() =>
      clearImmediate(next),
    )
    expect(rest.size).toBeGreaterThan(250)
  })
})
