import { Schema } from "effect"
import { withDefault } from "../../core/decode.ts"

/** OpenTelemetry traces of requests, exported as OTLP over HTTP. */
export const OtelConfig = Schema.Struct({
  endpoint: withDefault(
    Schema.String.check(
      Schema.isPattern(/^(https?:\/\/[^\s?#@]+)?$/, {
        message: "must be http(s)://host[:port][/path] without a password, or empty",
      }),
    ),
    "",
    "The collector, as http://localhost:4318; /v1/traces is added. Nothing is traced when empty.",
  ),
  headers: withDefault(
    Schema.Record(Schema.String, Schema.RedactedFromValue(Schema.String)),
    {},
    "Headers of each export, as an API key of the collector.",
  ),
  sampleRatio: withDefault(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    1,
    "The part of the requests that is traced; for those with a traceparent header its flag decides.",
  ),
  serviceName: withDefault(Schema.String, "", "The deployment's name when empty."),
})
export type OtelConfig = typeof OtelConfig.Type
