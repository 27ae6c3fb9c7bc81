import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { BatchTables } from "../tables.ts"
import { type Fixture, lineOf, openFixture, targetPath } from "../testing/api-fixture.ts"

let test: Fixture
beforeAll(async () => {
  test = await openFixture()
})
afterAll(() => test?.close())

interface Said {
  readonly would_succeed: boolean
  readonly cost_idr: number
  readonly input_tokens: number
  readonly max_output_tokens: number
  readonly lines: number
  readonly invalid_lines: number
  readonly sampled_lines: number
  readonly errors: readonly {
    readonly code: string
    readonly line: number | null
    readonly param: string | null
    readonly message: string
  }[]
  readonly estimated_seconds: number | null
}

const dryRun = async (content: string, more: object = {}) => {
  const { id, tenant } = test.addFile(content)
  const { status, json } = await test.ask("batches.create", {
    body: { input_file_id: id, endpoint: targetPath },
    dryRun: true,
    ...more,
  })
  expect(tenant.account).toBe("acct_1")
  return { status, json: json as Said }
}

const lines = (count: number, body: (n: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, n) => lineOf(`c${n}`, body(n))).join("\n")

// Rp1,500 and Rp6,000 per million tokens, by half: 5 in and 10 out
const lineMicros = (5 * 1_500 + 10 * 6_000) / 2

describe("a dry run of a batch", () => {
  it("is exact where every line is in the sample, and makes nothing", async () => {
    const { status, json } = await dryRun(lines(50))
    expect([status, json]).toMatchObject([
      200,
      {
        object: "dry_run",
        endpoint: "/v1/batches",
        model: "svc-lyt",
        input_tokens: 250,
        max_output_tokens: 500,
        cost_idr: (50 * lineMicros) / 1e6,
        would_succeed: true,
      },
    ])
    expect(json).toMatchObject({
      lines: 50,
      invalid_lines: 0,
      sampled_lines: 50,
      errors: [],
      estimated_seconds: null,
    })
    expect(
      await test.deps.database
        .queries<BatchTables>()
        .selectFrom("batches_batch")
        .selectAll()
        .execute(),
    ).toEqual([])
  })

  it("estimates a long file by a sample, and says of how many lines", async () => {
    const { json } = await dryRun(lines(1_000, (n) => ({ input: "x".repeat(1 + (n % 9)) })))
    expect(json).toMatchObject({ lines: 1_000, invalid_lines: 0, would_succeed: true })
    expect(json.sampled_lines).toBeGreaterThanOrEqual(25)
    expect(json.sampled_lines).toBeLessThanOrEqual(50)
    expect(Math.abs(json.cost_idr / ((1_000 * lineMicros) / 1e6) - 1)).toBeLessThan(0.1)
    expect([Number.isInteger(json.input_tokens), json.max_output_tokens]).toEqual([true, 10_000])
  })

  it("is not taken in by a file whose lines take turns", async () => {
    const { json } = await dryRun(lines(2_048, (n) => ({ input: "x".repeat(n % 2 ? 400 : 1) })))
    expect(json.sampled_lines).toBe(50)
    const half = 2_048 * 200.5
    expect(Math.abs(json.input_tokens - half)).toBeLessThan(half / 2)
  })

  it("adds up several models", async () => {
    const { json } = await dryRun(lines(10, (n) => ({ model: n % 2 ? "svc-lyt" : "svc-omni" })))
    expect([json.input_tokens, json.max_output_tokens]).toEqual([50, 100])
  })

  it("says which lines would fail as they run, and that the batch would not", async () => {
    const content = [
      lineOf("a"),
      lineOf("b", { input: 5 }),
      lineOf("c", { input: "too long" }),
      lineOf("d", { model: undefined }),
      lineOf("e"),
    ].join("\n")
    const { json } = await dryRun(content)
    expect(json).toMatchObject({
      would_succeed: true,
      lines: 5,
      invalid_lines: 3,
      sampled_lines: 3,
      input_tokens: 10,
    })
    expect(json.errors).toEqual([
      {
        code: "invalid_request_error",
        line: 2,
        param: "body.input",
        message: "body.input: expected string",
      },
      {
        code: "context_length_exceeded",
        line: 3,
        param: "body.input",
        message: "The prompt is too long.",
      },
      {
        code: "invalid_request_error",
        line: 4,
        param: "body.model",
        message: expect.stringContaining("body.model: "),
      },
    ])
  })

  it("finds each line with a field that is refused by its name", async () => {
    const { json } = await dryRun(lines(1_000, (n) => (n % 2 ? { effort: "low" } : {})))
    expect(json).toMatchObject({ would_succeed: true, lines: 1_000, invalid_lines: 500 })
    expect(json.errors[0]).toMatchObject({ code: "unsupported_parameter", param: "body.effort" })
  })

  it("names lines that want a stream, as they would fail", async () => {
    const { json } = await dryRun(
      [lineOf("a", { stream: true }), lineOf("b", { stream: false }), lineOf("c")].join("\n"),
    )
    expect(json).toMatchObject({
      would_succeed: true,
      invalid_lines: 1,
      sampled_lines: 2,
      errors: [{ code: "unsupported_parameter", line: 1, param: "body.stream" }],
    })
  })

  it.each<[string, string, string, number]>([
    ["empty", "", "empty_file", 0],
    ["not JSON", `${lineOf("a")}\nx`, "invalid_json", 1],
    ["of one id twice", `${lineOf("a")}\n${lineOf("a")}`, "duplicate_custom_id", 1],
  ])(
    "says that pre-flight would refuse a file that is %s",
    async (_, content, code, invalid_lines) => {
      const { status, json } = await dryRun(content)
      expect([
        status,
        json.would_succeed,
        json.invalid_lines,
        json.errors.map((error) => error.code),
      ]).toEqual([200, false, invalid_lines, [code]])
    },
  )

  it("counts the lines of unknown models, which would fail alone", async () => {
    const { json } = await dryRun(lines(6, (n) => (n % 2 ? { model: "gpt-4" } : {})))
    expect(json).toMatchObject({
      would_succeed: true,
      lines: 6,
      invalid_lines: 3,
      sampled_lines: 3,
      max_output_tokens: 30,
      errors: [{ code: "model_not_found", line: 2, param: "body.model" }],
    })
    expect(json.errors[0]!.message).toContain("Lines that name it: 3.")
  })

  it("lists a hundred errors", async () => {
    const { json } = await dryRun(lines(150, () => ({ input: "" })))
    expect([json.errors.length, json.invalid_lines, json.would_succeed, json.cost_idr]).toEqual([
      101,
      150,
      true,
      0,
    ])
  })

  it("refuses as a creation does", async () => {
    const file = test.addFile(lineOf("a"))
    const ask = async (body: object) =>
      (
        await test.ask("batches.create", {
          body: { input_file_id: file.id, endpoint: targetPath, ...body },
          dryRun: true,
        })
      ).status
    expect([
      await ask({ input_file_id: "file-none" }),
      await ask({ endpoint: "/v1/other" }),
      await ask({}),
    ]).toEqual([404, 400, 200])
  })

  it("says what the balance does not cover", async () => {
    const { billing, caller } = test.core
    const tenant = { account: "acct_poor", mode: "live" as const }
    const { balanceMicros } = await Effect.runPromise(billing.balance(tenant.account))
    await Effect.runPromise(
      billing.adjust({
        id: "most",
        account: tenant.account,
        amountMicros: BigInt(2 * lineMicros) - balanceMicros,
        reason: "spent",
      }),
    )
    const dry = async (count: number) => {
      const { id } = test.addFile(lines(count), { tenant })
      return (
        (
          await test.ask("batches.create", {
            body: { input_file_id: id, endpoint: targetPath },
            dryRun: true,
            caller: { ...caller, tenant },
          })
        ).json as Said
      ).would_succeed
    }
    expect([await dry(2), await dry(3)]).toEqual([true, false])
  })

  it("of the sandbox costs nothing", async () => {
    const { core } = test
    const tenant = { account: "acct_1", mode: "test" as const }
    const { id } = test.addFile(lines(3), { tenant })
    const { json } = await test.ask("batches.create", {
      body: { input_file_id: id, endpoint: targetPath },
      dryRun: true,
      caller: { ...core.caller, tenant },
    })
    expect(json).toMatchObject({ cost_idr: 0, input_tokens: 15, would_succeed: true })
  })

  it("can't say anything while the model is loading", async () => {
    test.core.catalogue.set("svc-omni", { state: "loading", detail: "" })
    const { status, json } = await dryRun(lineOf("a", { model: "svc-omni" }))
    expect([status, json]).toMatchObject([503, { code: "model_loading" }])
  })

  it("estimates the time by the batches before", async () => {
    const at = new Date(0)
    const row = {
      account: "acct_1",
      mode: "live" as const,
      key_id: "key_1",
      endpoint: targetPath,
      input_file_id: "f",
      metadata: null,
      errors: null,
      cost_micros: 0n,
      epoch: 1,
    }
    const more = {
      status: "completed" as const,
      total: 1_000,
      completed: 990,
      failed: 10,
      done_through: 0,
      done_offset: 0n,
      created_at: at,
      deadline_at: at,
      expires_at: at,
    }
    await test.deps.database
      .queries<BatchTables>()
      .insertInto("batches_batch")
      .values({ id: "batch-1", ...row, ...more, in_progress_at: at, ended_at: new Date(100_000) })
      .execute()
    const { json } = await dryRun(lines(200))
    expect(json.estimated_seconds).toBe(20 + test.deps.limits.pollMs / 1000)
  })
})
