import { Effect } from "effect"
import { afterAll, beforeAll, expect } from "vitest"
import { runDocument } from "../ingest/run-document.ts"
import type { Lane } from "../ingest/send-job.ts"
import {
  closeShared,
  type IngestFixture,
  type IngestFixtureOptions,
  openIngestFixture,
} from "./ingest-fixture.ts"

/** A text that the fixture's reader divides into so many chunks of two tokens. */
export const lines = (count: number): string =>
  Array.from({ length: count }, (_, n) => `line ${n}`).join("\n")

/** Jobs on a fixture that each test opens. */
export const useIngest = () => {
  let test: IngestFixture
  const open = async (options: IngestFixtureOptions = {}) => {
    test = await openIngestFixture(options)
  }
  // the server of the test databases may have to start first
  beforeAll(() => open(), 120_000)
  afterAll(closeShared)
  const run = (id: string, lane: Lane = "short", again = false) =>
    Effect.runPromise(runDocument(test.deps, lane, { file: id, again }))
  return {
    open,
    get test(): IngestFixture {
      return test
    },
    run,
    /** The queue runs the job again. */
    breaksOff: (id: string, why: RegExp) => expect(run(id)).rejects.toThrow(why),
    remove: (id: string) =>
      Effect.runPromise(test.deps.files.remove({ account: "acct_1", mode: "live" }, id)),
    /** The file is whole in the tables, and was paid once. */
    expectReady: async (id: string, chunks: number) => {
      expect(await test.document(id)).toMatchObject({ state: "ready", chunks, embedded: chunks })
      expect([(await test.chunks()).length, (await test.vectors()).length]).toEqual([
        chunks,
        chunks,
      ])
      expect(await test.file(id)).toMatchObject({
        status: "processed",
        progress: { chunks, tokens: 2 * chunks },
      })
      const paid = (await test.calls()).filter(({ state }) => state === "settled")
      expect(paid).toMatchObject([{ parent: id, tokens: 2 * chunks, cost: BigInt(chunks) * 3000n }])
      expect((await test.calls()).filter(({ state }) => state === "open")).toEqual([])
    },
  }
}
