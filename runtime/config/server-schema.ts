import { Schema } from "effect"
import { secretSetting, withDefault } from "../../core/decode.ts"
import { parseNetwork } from "../http/connection/client-address.ts"
import { defaultHttpLimits } from "../http/limits.ts"
import { isOriginEntry } from "../http/response/cors.ts"
import { defaultHttpTimings } from "../http/timings.ts"

/** `server` of the config file. */
export const ServerConfig = Schema.Struct({
  host: withDefault(Schema.String, "0.0.0.0", "The address that it listens on."),
  port: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65535 })),
    8080,
    "The port of the API; 0: a free one.",
  ),
  drainTimeoutMs: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3_600_000 })),
    30_000,
    "How long open requests may go on after SIGTERM.",
  ),
  drainDelayMs: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 })),
    0,
    "How long after SIGTERM new requests are still taken, while /readyz is 503: until load balancers have seen it.",
  ),
  ssePingMs: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 300_000 })),
    defaultHttpTimings.pingMs,
    "Interval of the comments on an event stream that keep proxies from closing a quiet one.",
  ),
  // at most below the lease of an Idempotency-Key (15 min): a running call must hold its key
  callTimeoutMs: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 1000, maximum: 600_000 })),
    300_000,
    "How long a call may take, its stream included; then it ends as `timeout`.",
  ),
  trustedProxies: withDefault(
    Schema.Array(
      Schema.String.check(
        Schema.makeFilter(
          (text: string) =>
            parseNetwork(text) !== undefined || "must be an IP address or a network, as 10.0.0.0/8",
        ),
      ),
    ),
    [],
    "Proxies whose X-Forwarded-For names the client.",
  ),
  metrics: withDefault(
    Schema.Struct({
      port: Schema.optionalKey(
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65535 })),
      ).annotate({
        description: "A port of its own for /metrics, which the API's port does not serve then.",
      }),
      host: withDefault(Schema.String, "127.0.0.1", "Where the own port listens."),
      bearer: secretSetting(
        Schema.String.check(
          Schema.makeFilter(
            (text: string) =>
              text === "" || text.length >= 16 || "must have at least 16 characters",
          ),
        ),
        "The token that readers of /metrics send, of at least 16 characters; none when empty.",
      ),
    }),
    {},
    "Who may read /metrics, and where.",
  ),
  cors: withDefault(
    Schema.Struct({
      origins: withDefault(
        Schema.Array(
          Schema.String.check(
            Schema.makeFilter(
              (text: string) =>
                isOriginEntry(text) ||
                'must be an origin as browsers send it, as https://app.example.com (http for localhost only, no path, no wildcard), or "*"',
            ),
          ),
        ),
        [],
        'Origins whose pages may call /v1 and read the answers; none by default. "*": any page, with test keys only. A key in a page is everybody\'s who opens it: give it a small monthly cap and few scopes, or better let your own server call.',
      ),
    }),
    {},
    "Which pages of other origins may call.",
  ),
  bodies: withDefault(
    Schema.Struct({
      megabytes: withDefault(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 })),
        defaultHttpLimits.maxBufferedBytes / 2 ** 20,
        "JSON bodies of all open requests together; one more is refused with 429.",
      ),
      megabytesPerAccount: withDefault(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 })),
        defaultHttpLimits.maxBufferedBytesPerAccount / 2 ** 20,
        "Those of one account. No JSON body may be larger.",
      ),
    }),
    {},
    "The memory for bodies; parsed, they may take three times as much. Files are never held.",
  ),
  workerThreads: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })),
    1,
    "Threads for tokenization and chunking; as many again compile schemas, which may take long.",
  ),
})
