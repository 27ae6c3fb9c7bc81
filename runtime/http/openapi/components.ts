import type { Json } from "../../../core/json.ts"

const text = { type: "string" }
const header = (description: string, schema: Json = text) => ({ description, schema })

export const headers = {
  RequestId: header("The request's own label, or a made one."),
  CallId: header("Our id of the call, as in usage and ledger rows."),
  CostIdr: header(
    "What the call cost in rupiah, a plain decimal with up to 6 places. A trailer on streams.",
  ),
  ServerTiming: header(
    "Milliseconds of the stages: auth, body, plan, tokenize, images, limits, hold, queue, prefill, decode, settle, total. A trailer with all of them on streams.",
  ),
  RateLimit: header("Requests that the key may make in any 60 s."),
  RateRemaining: header("How many of them are left."),
  RateReset: header("When all are there again, as in `1s` or `6m0s`."),
  RetryAfter: header("Seconds until a new try makes sense.", { type: "integer", minimum: 1 }),
  RetryAfterMs: header("The same in milliseconds.", { type: "integer", minimum: 1 }),
  Replayed: header("`true`: the reply of an earlier request with the same Idempotency-Key."),
  ETag: header("The tag of these bytes, for `If-Match`, `If-None-Match` and `If-Range`."),
  Disposition: header("The name to save the bytes under."),
  Location: header("A link that serves the bytes for a short time, also by `Range`."),
  ContentRange: header("Which part of the bytes this is, as `bytes 0-99/1234`."),
}

const parameter = (name: string, description: string, schema: Json) => ({
  name,
  in: "header",
  required: false,
  description,
  schema,
})

export const parameters = {
  RequestId: parameter("X-Request-ID", "A label of yours; every reply echoes it.", {
    type: "string",
    maxLength: 128,
  }),
  DryRun: parameter(
    "X-Dry-Run",
    "`1` or `true`: check the request and say what it would cost at most, without running it. The reply is a `DryRun`.",
    { type: "boolean" },
  ),
  IdempotencyKey: parameter(
    "Idempotency-Key",
    "For 24 h the same key with the same body gives the same reply.",
    { type: "string", maxLength: 255 },
  ),
  Range: parameter("Range", "A part of the bytes, as `bytes=0-99`.", text),
  IfNoneMatch: parameter("If-None-Match", "304 without the bytes, if they have this tag.", text),
}

export const securitySchemes = {
  apiKey: { type: "http", scheme: "bearer", description: "An API key." },
  session: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A session of the dashboard.",
  },
  admin: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A session of an administrator.",
  },
}

const money = { type: "number", description: "In rupiah." }
const count = { type: "integer", minimum: 0 }

/** What `X-Dry-Run` gets in place of an endpoint's own reply; core/call/dry-run.ts makes it. */
export const dryRunSchemas: Readonly<Record<string, Json>> = {
  DryRun: {
    type: "object",
    description:
      "What a call would cost at most. Endpoints may add fields of their own, as a batch its `lines`.",
    required: [
      ...["object", "endpoint", "model", "input_tokens", "max_output_tokens", "cost_idr"],
      ...["limits", "would_succeed"],
    ],
    properties: {
      object: { type: "string", const: "dry_run" },
      endpoint: { type: "string", description: "The path." },
      model: { type: ["string", "null"], description: "Null where no model is used." },
      input_tokens: count,
      max_output_tokens: count,
      cost_idr: money,
      limits: { $ref: "#/components/schemas/DryRunLimits" },
      would_succeed: {
        type: "boolean",
        description: "False: it would fail, or the balance or the key's cap does not cover it.",
      },
    },
  },
  DryRunLimits: {
    type: "object",
    description: "Those of the key.",
    required: ["rpm", "rpm_remaining", "rpd", "concurrency", "monthly_cap_idr", "body_mb"],
    properties: {
      rpm: count,
      rpm_remaining: count,
      rpd: count,
      concurrency: count,
      monthly_cap_idr: money,
      body_mb: count,
    },
  },
}
