import { Effect, Schema } from "effect"
import { apiError } from "../../core/errors.ts"
import { defineEndpoint, megabyte } from "../../core/ports/endpoint.ts"
import type { SchemaChecker, SchemaReport } from "../../core/ports/schema-checker.ts"
import { JsonSchemaBody } from "./json-schema-limits.ts"

const Body = Schema.Struct({ schema: JsonSchemaBody }).annotate({
  identifier: "SchemaCheckRequest",
  examples: [{ schema: { type: "object", properties: { city: { type: "string" } } } }],
})

const Keyword = Schema.Struct({
  path: Schema.String.annotate({ description: "JSON pointer: `/properties/age/minimum`." }),
  keyword: Schema.String,
  verdict: Schema.Literals(["enforced", "annotation", "refused"]).annotate({
    description: "`annotation`: it changes nothing. `refused`: strict requests are 400.",
  }),
  reason: Schema.optionalKey(Schema.String).annotate({
    description: "Why it is refused, or what of it is kept.",
  }),
}).annotate({ identifier: "KeywordVerdict" })

const SchemaCheck = Schema.Struct({
  object: Schema.Literal("schema.check"),
  accepted: Schema.Boolean.annotate({
    description: "Whether a strict request with this schema is accepted.",
  }),
  keywords: Schema.Array(Keyword),
  compile_ms: Schema.Finite,
  error: Schema.optionalKey(Schema.String).annotate({ description: "Why it does not compile." }),
}).annotate({ identifier: "SchemaCheck" })

const toWire = ({
  accepted,
  keywords,
  compileMs,
  error,
}: SchemaReport): typeof SchemaCheck.Type => ({
  object: "schema.check",
  accepted,
  keywords: keywords.map(({ path, keyword, verdict, reason }) => ({
    path,
    keyword,
    verdict,
    ...(reason !== undefined && { reason }),
  })),
  compile_ms: compileMs,
  ...(error !== undefined && { error }),
})

/** `checker` is called with every request: a deployment may have no schema checker. */
export const makeSchemaCheckEndpoint = (checker: () => SchemaChecker | undefined) =>
  defineEndpoint<typeof Body.Type>({
    id: "schemas.check",
    summary: "Says, keyword by keyword, what structured output keeps of a JSON Schema. Free.",
    method: "POST",
    path: "/v1/schemas/check",
    access: "key",
    body: Body,
    maxBodyBytes: megabyte,
    reply: SchemaCheck,
    plan: ({ body }) =>
      Effect.suspend(() => {
        const found = checker()
        if (!found)
          return Effect.fail(
            apiError(
              "not_found",
              "No model of this deployment has structured output, so there is nothing to check a schema against.",
            ),
          )
        return Effect.succeed({
          bound: {},
          run: Effect.map(found.check(body.schema), (report) => ({
            status: 200,
            json: toWire(report),
          })),
        })
      }),
  })
