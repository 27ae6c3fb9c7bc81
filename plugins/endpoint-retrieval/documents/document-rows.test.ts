import { Effect, Schema } from "effect"
import { expect, it } from "vitest"
import { fakeClock, fakeLog } from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import type { RetrievalDeps } from "../deps.ts"
import { migrations } from "../migrations.ts"
import { Settings } from "../settings.ts"
import type { RetrievalTables } from "../tables.ts"
import { insertDocument, removeDocument } from "./document-rows.ts"

const run = Effect.runPromise

it("a document is removed with its tenant's file, and by nobody else", async () => {
  const { database, close } = await openTestDatabase()
  try {
    await run(database.migrate("endpoint-retrieval", migrations))
    const deps: RetrievalDeps = {
      database,
      clock: fakeClock(),
      log: fakeLog(),
      settings: Schema.decodeUnknownSync(Settings)({}),
    }
    const tenant = { account: "a", mode: "live" } as const
    const file = {
      id: "file-1",
      tenant,
      filename: "a.txt",
      purpose: "knowledge",
      status: "uploaded",
      bytes: 1,
      blobKey: "k",
      createdMs: 1,
      expiresMs: 2,
      metadata: {},
    } as const
    const states = () =>
      run(
        database.run(() =>
          database
            .queries<RetrievalTables>()
            .selectFrom("retrieval_document")
            .select("state")
            .execute(),
        ),
      )
    await run(database.transaction((tx) => insertDocument(deps, file, tx)))
    await run(
      database.transaction((tx) => removeDocument(deps, { ...tenant, mode: "test" }, file.id, tx)),
    )
    expect(await states()).toEqual([{ state: "waiting" }])
    await run(database.transaction((tx) => removeDocument(deps, tenant, file.id, tx)))
    expect(await states()).toEqual([{ state: "removed" }])
  } finally {
    await close()
  }
})
