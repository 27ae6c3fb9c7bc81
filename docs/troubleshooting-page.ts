import { type ErrorCode, errorRegistry } from "../core/errors.ts"
import { table } from "./table.ts"

/** docs/troubleshooting.md: what to do about each refusal, and about a server that doesn't start. */
const mends: Readonly<Record<ErrorCode, string>> = {
  invalid_json: "Send JSON as a library writes it; the message says where it ends to be valid.",
  invalid_request_error: "Correct the field that `param` names; the message says what it may be.",
  invalid_http: "Use an HTTP library; a proxy in between may have broken the request.",
  model_not_found:
    "`GET /v1/models` lists the models of this deployment, and what each of them does.",
  unsupported_parameter:
    "Leave the field out, or name a model that can: `capabilities` and `modalities` of `GET /v1/models`.",
  context_length_exceeded:
    "Shorten the prompt, or lower `max_tokens`; the message has the counts. The operator: a model with a larger window.",
  content_policy_violation:
    "Ask for another picture. The operator: categories and thresholds of [safety-images](../plugins/safety-images/README.md).",
  unsupported_file_type: "The message names the types that this purpose takes.",
  authentication_error:
    "Send `Authorization: Bearer <key>`. A key that is expired or revoked is replaced on the dashboard's page of keys.",
  insufficient_quota:
    "The account's balance, or the key's monthly cap, does not cover the worst case of the call: lower `max_tokens`, raise the cap, or have an administrator grant credit.",
  email_not_verified:
    "Open the link in the mail; the dashboard sends it again. Without SMTP the operator finds mails in `<dataDir>/outbox`.",
  account_suspended: "Ask the operator; the audit log says who suspended it.",
  read_only_session: "Go back to the administrator's own session to change something there.",
  permission_denied: "Use a key with the scope that the message names, or an administrator.",
  origin_not_allowed:
    "Call from your server, or use a test key. The operator: the page's origin in `server.cors.origins`.",
  not_found:
    "Compare the path with `/openapi.json`. Objects of other accounts, and of the other mode (test, live), are not found, too.",
  method_not_allowed: "The header `Allow` has the methods of this path.",
  request_timeout: "Send the whole request sooner; a slow upload needs a better line.",
  conflict:
    "The message says which state forbids it. Another request with the same `Idempotency-Key` may still run: wait for `Retry-After`.",
  precondition_failed: "Download the file anew, without `If-Match` or `If-Unmodified-Since`.",
  payload_too_large:
    "Send less, or upload the bytes as a file. The operator: `bodyMb` of the key, `maxFileMb` of endpoint-files.",
  storage_quota_exceeded: "Delete files. The operator: `quotaMb` of endpoint-files.",
  uri_too_long: "Put the parameters into the body, or ask for fewer at once.",
  unsupported_media_type: "Send the `Content-Type` that `/openapi.json` names for this path.",
  range_not_satisfiable: "`Content-Range` has the number of bytes: ask for some of those.",
  text_too_long: "Shorten the text, or set `truncate` to `END` or `START`.",
  instruction_with_image: "Leave `instruction` out, or send texts only.",
  schema_not_satisfied:
    "Allow more tokens, simplify the schema, or take a larger model; `POST /v1/schemas/check` says what a schema asks for.",
  rate_limit_error:
    "Wait for `Retry-After`; a batch has no such limit. The operator: `rpm` and `rpd` of the key.",
  concurrency_exceeded: "Send fewer requests at once. The operator: `concurrency` of the key.",
  backend_busy:
    "Wait for `Retry-After`, as the official clients do. The operator: `slots`, `queue` and memory of the backend, or another server.",
  headers_too_large: "Send fewer and smaller headers; cookies of a shared host may be the reason.",
  internal_error:
    "Send the `request_id` to the operator, whose log has the line `request.failed` with its cause.",
  backend_error: "Retry once. The operator: the log says why the model failed.",
  server_busy: "Wait for `Retry-After`. The operator: a larger or another server.",
  database_unavailable:
    "Nothing was charged; wait for `Retry-After`. The operator: `/readyz` and `DATABASE_URL`; the server goes on by itself when the database is back.",
  storage_unavailable:
    "Nothing was charged; wait for `Retry-After`. The operator: `/readyz`, and endpoint and credentials of the store.",
  model_loading:
    "Wait for `Retry-After`. The operator: `rakit models list` shows what was pulled; a model that can't be opened says so in the log.",
  server_starting: "Wait for `Retry-After`; a rolling restart takes seconds.",
  backend_timeout: "Ask for fewer tokens. The operator: `server.callTimeoutMs`, or a faster model.",
  storage_full:
    "Wait for the operator, who frees space where `dataDir` is, or moves blobs to S3 ([backup.md](backup.md#blobs-from-disk-to-s3-and-back)).",
}

/** What is seen at the start, why, and what mends it. */
const startProblems: readonly (readonly [string, string, string])[] = [
  [
    "a list of lines with a path and a `Fix:`",
    "The file is checked before anything starts; each problem has its line.",
    "`npx rakit check my.yaml` shows them all; [config-reference.md](config-reference.md) has every key.",
  ],
  ["the port is in use", "Another process has the port.", "Stop it, or set `PORT` to another one."],
  [
    "a model can't be downloaded",
    "No way to the registry or the hub.",
    "Set `HTTPS_PROXY` (and `NODE_EXTRA_CA_CERTS` behind a proxy that reads TLS); on another machine `npx rakit models pull`, then copy the folder of `modelsDir`.",
  ],
  [
    "401 or 403 from the hub",
    "The repository is gated.",
    "Accept its terms on the hub's page that the message names, and set `HF_TOKEN`.",
  ],
  [
    "a digest differs",
    "The source serves something else than what is pinned.",
    "Find out why; `npx rakit models pull --update` takes the new one.",
  ],
  [
    "the embedded PostgreSQL does not start",
    "Its folder can't be written, belongs to somebody else, or another server uses it.",
    "Set `RAKIT_DATA` to a local folder of this user, or `DATABASE_URL` to a server.",
  ],
  [
    "`too many connections`",
    "All processes together have more than `max_connections`.",
    "Lower `maxConnections` of database-postgres, or use a pooler (`DATABASE_DIRECT_URL`).",
  ],
  [
    "secrets can't be read",
    "`RAKIT_SECRET_KEY` or `<dataDir>/secret.key` is not the one that encrypted them.",
    "Give servers that share a database the same key; it is in the backup.",
  ],
  [
    "killed by the system",
    "Out of memory.",
    "[models.md](models.md) says what each model needs: take a smaller one, or lower `kvMemoryMb`.",
  ],
  [
    "no e-mail arrives",
    "No mail leaves the server without SMTP.",
    "Set `SMTP_URL`; until then mails are in `<dataDir>/outbox`, and with `NODE_ENV=production` nowhere.",
  ],
  [
    "links in mails lead nowhere",
    "The server does not know its public address.",
    "Set `PUBLIC_URL`.",
  ],
  [
    "streams arrive all at once",
    "A proxy gathers the answer.",
    "Turn buffering off for it ([deploy/proxy](../deploy/proxy) has nginx and Caddy).",
  ],
  [
    "all clients have one address",
    "The server sees the proxy's.",
    "Name the proxy in `server.trustedProxies`.",
  ],
]

export const troubleshootingPage = (): string => {
  const rows = Object.entries(errorRegistry)
    .sort(([, a], [, b]) => a.status - b.status)
    .map(([code, { status, about }]) => [
      String(status),
      `\`${code}\``,
      about,
      mends[code as ErrorCode],
    ])
  return `# Troubleshooting

Every refusal has a \`code\`, a message that says what was wrong, often a \`param\`, and a \`request_id\` that the log has, too.
This page is generated by \`npm run docs\` from [core/errors.ts](../core/errors.ts); a code without its mend does not compile.

## The server does not start, or does not do what it should

\`npx rakit check my.yaml\` says what would run, or what is wrong, and where. \`/readyz\` says what is missing while it runs; [events.md](events.md) has every line of the log.

${table(["What you see", "Why", "What to do"], startProblems)}

## Refusals of the API

${table(["Status", "Code", "Meaning", "What to do"], rows)}

Codes that only the errors of a batch have are in [errors.md](errors.md#only-in-the-errors-of-a-batch).
`
}
