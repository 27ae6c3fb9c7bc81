import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { table } from "./table.ts"

/** docs/metrics.md, from the metrics that the sources make. */
const root = join(import.meta.dirname, "..")

export interface Metric {
  readonly name: string
  readonly kind: "counter" | "gauge" | "histogram"
  readonly about: string
  readonly labels: readonly string[]
  readonly path: string
}

const literal = String.raw`"(?:[^"\\]|\\.)*"|${"`"}(?:[^${"`"}\\]|\\.)*${"`"}`
const call = new RegExp(
  String.raw`(\.?)\b(counter|gauge|histogram)\(\s*"(rakit_\w+)",\s*(${literal})`,
  "g",
)

/** The strings of a constant list of the file. */
const stringsOf = (list: string): readonly string[] =>
  [...list.matchAll(/"(\w+)"/g)].map(([, text]) => text!)

const constantOf = (text: string, name: string): string =>
  new RegExp(String.raw`const ${name} = (\[[^\]]*\]|${literal})`).exec(text)?.[1] ?? ""

/** What stands between the help and the end of the call. */
const restOfCall = (text: string, from: number): string => {
  let depth = 1
  let at = from
  for (; at < text.length && depth > 0; at++) {
    if (text[at] === "(") depth++
    if (text[at] === ")") depth--
  }
  return text.slice(from, at - 1)
}

const labelsOf = (text: string, rest: string, isHelper: boolean): readonly string[] => {
  const shared = stringsOf(constantOf(text, "labels"))
  if (isHelper || /\blabels\b/.test(rest)) return [...shared, ...stringsOf(rest)]
  return stringsOf(rest)
}

export const metricsIn = (path: string, text: string): readonly Metric[] =>
  [...text.matchAll(call)].map((match): Metric => {
    const [whole, dot, kind, name, help] = match
    const about = help!
      .slice(1, -1)
      .replaceAll(/\$\{(\w+)\}/g, (_, constant) => constantOf(text, constant).slice(1, -1))
    const rest = restOfCall(text, match.index + whole.length)
    const labels = labelsOf(text, rest, dot === "")
    return { name: name!, kind: kind as Metric["kind"], about, labels, path }
  })

const isSource = (path: string): boolean =>
  path.endsWith(".ts") && !path.endsWith(".test.ts") && !path.split("/").includes("testing")

export const allMetrics = (): readonly Metric[] =>
  ["core", "plugins", "runtime"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
        (path) => `${folder}/${path}`,
      ),
    )
    .filter(isSource)
    .flatMap((path) => metricsIn(path, readFileSync(join(root, path), "utf8")))
    .sort((a, b) => (a.name < b.name ? -1 : 1))

/** What a metric is called elsewhere: vLLM's name, and that of OpenTelemetry's conventions. */
export const conventions: Readonly<Record<string, string>> = {
  rakit_num_requests_running: "vllm:num_requests_running",
  rakit_num_requests_waiting: "vllm:num_requests_waiting",
  rakit_kv_cache_usage_perc: "vllm:kv_cache_usage_perc",
  rakit_prefix_cache_queries_total: "vllm:prefix_cache_queries",
  rakit_prefix_cache_hits_total: "vllm:prefix_cache_hits",
  rakit_prompt_tokens_total: "vllm:prompt_tokens",
  rakit_generation_tokens_total: "vllm:generation_tokens",
  rakit_request_success_total: "vllm:request_success",
  rakit_request_prompt_tokens:
    "vllm:request_prompt_tokens, gen_ai.client.token.usage of gen_ai.token.type input",
  rakit_request_generation_tokens:
    "vllm:request_generation_tokens, gen_ai.client.token.usage of gen_ai.token.type output",
  rakit_time_to_first_token_seconds:
    "vllm:time_to_first_token_seconds, gen_ai.server.time_to_first_token",
  rakit_request_time_per_output_token_seconds:
    "vllm:request_time_per_output_token_seconds, gen_ai.server.time_per_output_token",
  rakit_e2e_request_latency_seconds:
    "vllm:e2e_request_latency_seconds, gen_ai.server.request.duration",
  rakit_request_queue_time_seconds: "vllm:request_queue_time_seconds",
  rakit_request_prefill_time_seconds: "vllm:request_prefill_time_seconds",
  rakit_request_decode_time_seconds: "vllm:request_decode_time_seconds",
  rakit_request_inference_time_seconds: "vllm:request_inference_time_seconds",
  rakit_http_request_duration_seconds: "http.server.request.duration",
  rakit_http_requests_in_flight: "http.server.active_requests",
  rakit_db_client_connection_count: "db.client.connection.count",
  rakit_db_client_connection_max: "db.client.connection.max",
  rakit_db_client_connection_pending_requests: "db.client.connection.pending_requests",
}

const codeList = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ")

const rowOf = ({ name, kind, labels, about, path }: Metric): readonly string[] => [
  `\`${name}\``,
  kind,
  codeList(labels),
  about,
  codeList(conventions[name]?.split(", ") ?? []),
  path.split("/").slice(0, 2).join("/"),
]

export const metricsPage = (): string => `# Metrics, logs and traces

\`/metrics\` has the Prometheus text format. By default it needs no key and is served beside the API; \`server.metrics\` gives it a port of its own or a token:

\`\`\`yaml
server:
  metrics: { port: 9464, host: 127.0.0.1, bearer: "\${RAKIT_METRICS_TOKEN}" }
\`\`\`

[config/grafana.json](../config/grafana.json) is a board of them for Grafana: import it and choose the Prometheus data source.

Names begin with \`rakit_\`. What vLLM has too is called as there behind the prefix, with the label \`model_name\` and its buckets; a column says what OpenTelemetry's conventions call it. Values of labels come from the config file and from fixed lists: ids of models and endpoints, error codes, states; never from requests. \`priority\` is \`realtime\` or \`batch\`.

The times and counts of a model are measured around it, for every backend alike: requests that a model has accepted. What was refused before, or failed, is in \`rakit_request_failure_total\`, by the [error code](errors.md). A metric of a plugin is there where the plugin is.
This page is generated from the sources by \`npm run docs\`; a test keeps them equal.

${table(["Name", "Kind", "Labels", "Meaning", "Elsewhere", "From"], allMetrics().map(rowOf))}

## The process

With prom-client's names: \`process_cpu_seconds_total\`, \`process_resident_memory_bytes\`, \`process_open_fds\`, \`process_start_time_seconds\`, \`nodejs_eventloop_lag_seconds\` (and its mean and percentiles), \`nodejs_gc_duration_seconds\`, \`nodejs_heap_size_used_bytes\`, \`nodejs_external_memory_bytes\`, \`nodejs_active_handles\` and others.

## Log lines of requests

A request is one line of the log, \`request.finished\`, when all of it is known: a stream when it has ended, a call that was cut when it is settled. Beside method, route, status, code and duration it has

| field | meaning |
|---|---|
| \`request_id\`, \`call_id\`, \`trace_id\` | the ids in \`X-Request-ID\` and \`X-Call-ID\`; the trace, if it is sampled |
| \`account\`, \`mode\`, \`key\` | who called: ids, never a key |
| \`model\`, \`input_tokens\`, \`output_tokens\`, \`cache_read_tokens\`, \`cost_idr\` | what was used, and what it cost |
| \`stages_ms\` | the stages of \`Server-Timing\` |
| \`cut\` | the reply is not whole: the client left, or the server ended |

Probes, pages and their files are logged as \`debug\`, unless they fail with 5xx (\`/readyz\` does while models load). Lines of batches have no log lines of their own; \`rakit_batch_lines_total\` counts them.

## Traces

\`\`\`yaml
otel: { endpoint: "http://localhost:4318", headers: { x-api-key: "\${COLLECTOR_KEY}" }, sampleRatio: 0.1 }
\`\`\`

With \`otel.endpoint\` each request is a span, and each of its stages (auth, body, plan, tokenize, images, limits, hold, queue, prefill, encode, denoise, decode, png, settle) a span of it, exported as OTLP/JSON over HTTP. A client's \`traceparent\` is continued, and its flag decides about sampling. The request has the attributes of the GenAI conventions (\`gen_ai.operation.name\`, \`gen_ai.request.model\`, \`gen_ai.usage.input_tokens\` ...), those of HTTP, account and cost: never a prompt, an answer or a key.
Failures of the server are errors, refusals are not. A collector that fails is left alone for a minute, and what comes meanwhile is dropped; the log says so (\`otel.export_failed\`). Lines of batches are not traced.
`
