import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { SchemaReport } from "../../core/ports/schema-checker.ts"
import { callPathFixture } from "../../testing/index.ts"
import { makeSchemaCheckEndpoint } from "./schema-check-endpoint.ts"
import { openClient } from "./testing/open-client.ts"

const report: SchemaReport = {
  accepted: false,
  keywords: [
    { path: "/type", keyword: "type", verdict: "enforced" },
    {
      path: "/properties/when/format",
      keyword: "format",
      verdict: "annotation",
      reason: "not checked",
    },
    {
      path: "/properties/a~1b/not",
      keyword: "not",
      verdict: "refused",
      reason: "it can't be kept",
    },
  ],
  compileMs: 1.25,
  error: "not is not supported",
}

const open = (answer: ReturnType<Parameters<typeof makeSchemaCheckEndpoint>[0]>) => {
  const deps = callPathFixture()
  return {
    deps,
    ask: (body: unknown, more = {}) =>
      deps.ask(
        makeSchemaCheckEndpoint(() => answer),
        body,
        more,
      ),
  }
}

describe("POST /v1/schemas/check", () => {
  it("answers keyword by keyword, for nothing", async () => {
    const seen: unknown[] = []
    const { ask, deps } = open({
      check: (schema) =>
        Effect.as(
          Effect.sync(() => seen.push(schema)),
          report,
        ),
    })
    const schema = { type: "object", properties: { when: { format: "date" }, "a/b": { not: {} } } }
    const { status, json } = await ask({ schema })
    expect([status, json]).toEqual([
      200,
      {
        object: "schema.check",
        accepted: false,
        keywords: report.keywords,
        compile_ms: 1.25,
        error: "not is not supported",
      },
    ])
    expect(seen).toEqual([schema])
    expect(deps.billing.calls).toMatchObject([{ costMicros: 0n }])
    expect(await Effect.runPromise(deps.billing.balance("acct_1"))).toEqual({
      balanceMicros: 50_000_000_000n,
      heldMicros: 0n,
    })
  })

  it("checks nothing when it is only tried, and takes true and false", async () => {
    const { ask } = open({
      check: (schema) =>
        schema === true
          ? Effect.succeed({ accepted: true, keywords: [], compileMs: 0 })
          : Effect.die("must not run"),
    })
    expect(await ask({ schema: {} }, { dryRun: true })).toMatchObject({
      status: 200,
      json: { object: "dry_run", cost_idr: 0 },
    })
    expect((await ask({ schema: true })).json).toEqual({
      object: "schema.check",
      accepted: true,
      keywords: [],
      compile_ms: 0,
    })
  })

  it("says what is no schema, here or in the checker", async () => {
    const refuse = apiError(
      "invalid_request_error",
      "schema: 'type' must be a string or an array of strings",
      { param: "schema" },
    )
    const { ask } = open({ check: () => Effect.fail(refuse) })
    const deep = (levels: number): object => (levels === 1 ? {} : { items: deep(levels - 1) })
    for (const schema of [
      undefined,
      null,
      5,
      "x",
      [],
      deep(65),
      deep(99),
      { $comment: "x".repeat(512 * 1024) },
    ])
      expect(await ask({ schema })).toMatchObject({
        status: 400,
        json: { code: "invalid_request_error", ...(schema && { param: expect.anything() }) },
      })
    expect(await ask({ schema: { type: 5 } })).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param: "schema", message: refuse.message },
    })
  })

  it("is 404 where nothing can check", async () => {
    const { ask, deps } = open(undefined)
    expect(await ask({ schema: {} })).toMatchObject({
      status: 404,
      json: { code: "not_found", message: expect.stringContaining("structured output") },
    })
    expect(deps.billing.calls).toEqual([])
  })

  it("stands in /openapi.json, and takes bodies up to 1 MB over HTTP", async () => {
    const { deps, post } = await openClient({}, { check: () => Effect.succeed(report) })
    const document = (await (await fetch(`${deps.url}/openapi.json`)).json()) as {
      paths: Record<string, unknown>
      components: { schemas: { SchemaCheckRequest: { examples: readonly object[] } } }
    }
    expect(document.paths["/v1/schemas/check"]).toMatchObject({
      post: {
        operationId: "schemasCheck",
        security: [{ apiKey: [] }],
        requestBody: { description: expect.stringContaining("1048576") },
      },
    })
    expect(document.components.schemas).toMatchObject({
      SchemaCheck: { required: ["object", "accepted", "keywords", "compile_ms"] },
      SchemaCheckRequest: {},
      JsonSchema: {},
    })
    const [example] = document.components.schemas.SchemaCheckRequest.examples
    expect((await post("/v1/schemas/check", example!)).json).toMatchObject({
      object: "schema.check",
      compile_ms: 1.25,
    })
    expect(await post("/v1/schemas/check", { schema: {}, pad: "x".repeat(2 ** 20) })).toMatchObject(
      { status: 413, json: { error: { code: "payload_too_large" } } },
    )
    await deps.close()
  })
})
