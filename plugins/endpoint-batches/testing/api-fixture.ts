import { Effect, Schema, Stream } from "effect"
import {
  apiError,
  BlobMissing,
  defineEndpoint,
  type Endpoint,
  type FilePurpose,
  type Files,
  type Json,
  makeIds,
  megabyte,
  type StoredFile,
  type Tenant,
  usageOf,
} from "../../../core/index.ts"
import {
  callPathFixture,
  type FakeModel,
  fakeChatModel,
  fakeEmbedModel,
  fakeIdentity,
  fakeMetrics,
  fakeStorage,
  fakeWebhook,
} from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { batchEndpoints } from "../api/endpoints.ts"
import { makeCancels } from "../cancels.ts"
import type { BatchDeps } from "../deps.ts"
import { migrations } from "../migrations.ts"
import { limitsOf, Settings } from "../settings.ts"

export const live: Tenant = { account: "acct_1", mode: "live" }

/** Files in memory, read in chunks that cut lines anywhere. */
export const fakeFiles = (chunkBytes = 7) => {
  const contents = new Map<string, { readonly file: StoredFile; readonly bytes: Buffer }>()
  const add = (
    content: string | Buffer,
    more: { readonly tenant?: Tenant; readonly purpose?: FilePurpose } = {},
  ): StoredFile => {
    const bytes = Buffer.from(content)
    const id = `file-${contents.size + 1}`
    const rest = {
      filename: "in.jsonl",
      status: "uploaded" as const,
      blobKey: id,
      createdMs: 0,
      expiresMs: Number.MAX_SAFE_INTEGER,
      bytes: bytes.length,
      metadata: {},
    }
    const file: StoredFile = { id, tenant: live, purpose: "batch_input", ...rest, ...more }
    contents.set(id, { file, bytes })
    return file
  }
  const lost = new Set<string>()
  const never = () => Effect.die("not needed here")
  const files: Files = {
    find: ({ account, mode }, id) =>
      Effect.sync(() => {
        const file = contents.get(id)?.file
        return file?.tenant.account === account && file.tenant.mode === mode ? file : undefined
      }),
    read: ({ id }, { from, to = Number.POSITIVE_INFINITY } = { from: 0 }) =>
      Stream.suspend(() => {
        const bytes = contents.get(id)?.bytes.subarray(from, to + 1)
        if (!bytes || lost.has(id)) return Stream.fail(new BlobMissing({ key: id }))
        const size = bytes.length > 100_000 ? 65_536 : chunkBytes
        return Stream.fromIterable(
          Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
            bytes.subarray(at * size, (at + 1) * size),
          ),
        )
      }),
    knows: never,
    newId: never as never,
    newBlobKey: never as never,
    create: never,
    observe: () => {},
    mark: never,
    remove: (_, id) => Effect.sync(() => contents.delete(id)),
  }
  return { files, add, loseBytes: (id: string) => void lost.add(id) }
}

/** The endpoint of every line: a token for each character, and ten for the answer. */
export const targetPath = "/v1/echo"

export const echoTarget = (deps: Pick<ReturnType<typeof callPathFixture>, "catalogue">): Endpoint =>
  defineEndpoint<{ readonly model: string; readonly input: string }>({
    id: "echo",
    summary: "",
    method: "POST",
    path: targetPath,
    access: "key",
    body: Schema.Struct({
      model: Schema.NonEmptyString,
      input: Schema.NonEmptyString,
      stream: Schema.optionalKey(Schema.Boolean),
    }),
    maxBodyBytes: 25 * megabyte,
    batchable: true,
    refuses: (body) =>
      (body as { readonly effort?: unknown }).effort === undefined
        ? undefined
        : apiError("unsupported_parameter", "effort: not here", { param: "effort" }),
    plan: ({ body }) =>
      Effect.gen(function* () {
        yield* deps.catalogue.require("chat", body.model)
        yield* deps.catalogue.open("chat", body.model)
        if (body.input.startsWith("too long"))
          return yield* apiError("context_length_exceeded", "The prompt is too long.", {
            param: "input",
          })
        const bound = {
          [body.model]: usageOf({ inputTokens: body.input.length, outputTokens: 10 }),
        }
        return { bound, run: Effect.succeed({ status: 200, json: { echo: body.input } }) }
      }),
  })

export const models = (): readonly FakeModel[] => [
  fakeChatModel(),
  fakeChatModel({ entry: { id: "svc-omni" } }),
  fakeEmbedModel(),
]

/** The dependencies of batches without a database: all that pre-flight needs. */
export const openPreflightFixture = () => {
  const core = callPathFixture(models())
  const { files, add, loseBytes } = fakeFiles()
  const identity = fakeIdentity([{ key: "svc_live_1", keyId: "key_1" }])
  const ids = makeIds(core.clock.nowMs)
  const unused = () => {
    throw new Error("there is no database here")
  }
  const database: BatchDeps["database"] = {
    transaction: unused,
    queries: unused,
    run: unused,
    migrate: unused,
    session: unused,
  }
  const echo = echoTarget(core)
  const deps: BatchDeps = {
    database,
    storage: fakeStorage(),
    files,
    billing: core.billing,
    identity,
    callPath: core.path,
    catalogue: core.catalogue,
    webhook: fakeWebhook(),
    clock: core.clock,
    ids,
    log: core.log,
    metrics: fakeMetrics(),
    targets: new Map([[echo.path, echo]]),
    limits: limitsOf(Schema.decodeUnknownSync(Settings)({})),
    cancels: makeCancels(),
  }
  return { deps, core, identity, addFile: add, loseBytes }
}

/** The same with a real database and the endpoints. */
export const openFixture = async () => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("endpoint-batches", migrations))
  const rest = openPreflightFixture()
  const deps: BatchDeps = { ...rest.deps, database: test.database }
  const endpoints = new Map(
    batchEndpoints(Effect.succeed(deps)).map((endpoint) => [endpoint.id, endpoint]),
  )
  const ask = (
    id: string,
    more: Parameters<typeof rest.core.ask>[2] & { readonly body?: Json } = {},
  ) => rest.core.ask(endpoints.get(id)!, more.body, more)
  return { ...rest, deps, clock: rest.core.clock, ask, close: test.close }
}
export type Fixture = Awaited<ReturnType<typeof openFixture>>

export const lineOf = (customId: string, body: object = {}, more: object = {}): string =>
  JSON.stringify({
    custom_id: customId,
    method: "POST",
    url: targetPath,
    body: { model: "svc-lyt", input: "hello", ...body },
    ...more,
  })
