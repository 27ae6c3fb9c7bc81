import { Effect, Exit, Schema, Scope, Stream } from "effect"
import { sql } from "kysely"
import {
  type CallInput,
  defaultLimits,
  type Json,
  type ModelContext,
  type StoredFile,
  type Tenant,
} from "../../../core/index.ts"
import {
  callPathFixture,
  type FakeEmbedModel,
  type FakeEmbedScript,
  fakeEmbedModel,
  fakeRerankModel,
} from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { makeRetrievalEndpoint } from "../api/endpoint.ts"
import type { RetrievalReply } from "../api/schema.ts"
import { changeSearched } from "../documents/tenant-version.ts"
import { wordsOfChunk } from "../documents/words.ts"
import { migrations } from "../migrations.ts"
import type { SearchDeps } from "../search/deps.ts"
import { Settings } from "../settings.ts"
import type { DocumentRow } from "../tables.ts"
import { openScanStore } from "../vectors/scan-store.ts"
import { spaceOf } from "../vectors/space.ts"

export const live: Tenant = { account: "acct_1", mode: "live" }

export interface TestDocument {
  readonly tenant?: Tenant
  /** The text of each chunk, one behind the other; with a page or without. */
  readonly chunks: readonly (string | { readonly page: number; readonly text: string })[]
  readonly metadata?: Json
  readonly state?: DocumentRow["state"]
  readonly space?: string
  readonly expiresMs?: number
}

const embed = async ({ loaded }: FakeEmbedModel, texts: readonly string[]) => {
  const context: ModelContext = {
    callId: "call_0",
    tenant: live,
    priority: "batch",
    deadlineMs: Number.MAX_SAFE_INTEGER,
    meter: () => {},
    time: () => {},
  }
  const items = texts.map((text) => ({ type: "text" as const, text }))
  const planned = loaded.task.plan({ items, truncate: "END" }, context)
  const events = await Effect.runPromise(
    Effect.flatMap(planned, ({ run }) => Stream.runCollect(run)),
  )
  return events.toSorted((a, b) => a.index - b.index).map(({ vector }) => vector)
}

/** An expired file does not exist. */
const makeFiles = (nowMs: () => number) => {
  const known = new Map<string, StoredFile>()
  const files: SearchDeps["files"] = {
    find: ({ account, mode }, id) =>
      Effect.sync(() => {
        const file = known.get(id)
        return file?.tenant.account === account &&
          file.tenant.mode === mode &&
          file.expiresMs > nowMs()
          ? file
          : undefined
      }),
  }
  const add = (
    id: string,
    tenant = live,
    purpose: StoredFile["purpose"] = "knowledge",
    expiresMs = Number.MAX_SAFE_INTEGER,
  ) => {
    const rest = { filename: id, status: "uploaded", bytes: 1, blobKey: id, createdMs: 0 } as const
    known.set(id, { id, tenant, purpose, expiresMs, metadata: {}, ...rest } as StoredFile)
  }
  return { files, add }
}

/** Puts documents into the tables, as ingest would. */
const makeAdder = (
  deps: SearchDeps,
  model: FakeEmbedModel,
  addFile: ReturnType<typeof makeFiles>["add"],
) => {
  const { database, vectors } = deps
  return async (fileId: string, document: TestDocument): Promise<void> => {
    const { tenant = live, metadata = {}, state = "ready", expiresMs = 2e12 } = document
    addFile(fileId, tenant, "knowledge", expiresMs)
    const parts = document.chunks.map((chunk) =>
      typeof chunk === "string" ? { page: null, text: chunk } : chunk,
    )
    const made = await embed(
      model,
      parts.map(({ text }) => text),
    )
    const space = spaceOf(model.entry, model.loaded, made[0]?.length ?? 1)
    const kept = { ...space, id: document.space ?? space.id }
    await Effect.runPromise(
      database.transaction((tx) =>
        Effect.gen(function* () {
          const queries = database.queries(tx)
          const removed = state === "removed" ? new Date(0) : null
          const { rows } = yield* database.run(() =>
            sql<{ no: bigint }>`
              INSERT INTO retrieval_document (file_id, account, mode, state, metadata, chunks, embedded, space, dimensions, created_at, expires_at, removed_at)
              VALUES (${fileId}, ${tenant.account}, ${tenant.mode}, ${state}, ${JSON.stringify(metadata)}, ${parts.length}, ${parts.length},
                ${kept.id}, ${kept.dimensions}, ${new Date(0)}, ${new Date(expiresMs)}, ${removed})
              RETURNING no`.execute(queries),
          )
          const { no } = rows[0]!
          let at = 0
          for (const [index, { page, text }] of parts.entries()) {
            const start = at
            at += Array.from(text).length
            yield* database.run(() =>
              sql`
                INSERT INTO retrieval_chunk (document_no, idx, page, start_at, end_at, text, words)
                VALUES (${no}, ${index}, ${page}, ${start}, ${at}, ${text}, ${wordsOfChunk(tenant, text)})`.execute(
                queries,
              ),
            )
          }
          yield* vectors.put(no, kept, 0, made, tx)
          yield* changeSearched(deps, tenant, tx)
        }),
      ),
    )
  }
}

/** The endpoint over a real database and the exact scan, with fakes of the models. */
export const openQueryFixture = async (script: FakeEmbedScript = {}) => {
  const { database, close } = await openTestDatabase()
  await Effect.runPromise(database.migrate("endpoint-retrieval", migrations))
  const model = fakeEmbedModel({ dimensions: 256, ...script })
  const rerank = fakeRerankModel()
  const core = callPathFixture([model, rerank])
  const { clock, catalogue, log } = core
  const { files, add: addFile } = makeFiles(clock.nowMs)
  const settings = Schema.decodeUnknownSync(Settings)({})
  const scope = Scope.makeUnsafe()
  const vectors = await Effect.runPromise(
    openScanStore({ database, clock, log, settings }).pipe(Scope.provide(scope)),
  )
  const deps: SearchDeps = { database, clock, log, settings, catalogue, files, vectors }
  const endpoint = makeRetrievalEndpoint(Effect.succeed(deps))
  const ask = (body: Json, more?: Partial<CallInput>) => core.ask(endpoint, body, more)
  return {
    ...core,
    deps,
    model,
    rerank,
    addFile,
    addDocument: makeAdder(deps, model, addFile),
    ask,
    /** The results of a query that succeeds. */
    results: async (body: object, tenant: Tenant = live) => {
      const caller = {
        tenant,
        scopes: ["*"],
        role: "user",
        limits: defaultLimits,
        keyId: "k",
      } as const
      const { status, json } = await ask(body as Json, { caller })
      if (status !== 200) throw new Error(JSON.stringify(json))
      return (json as unknown as RetrievalReply).results
    },
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await close()
    },
  }
}
export type QueryFixture = Awaited<ReturnType<typeof openQueryFixture>>
