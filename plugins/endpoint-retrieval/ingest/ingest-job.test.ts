import { Effect, Exit, Scope, Stream } from "effect"
import { expect, it } from "vitest"
import { PortError } from "../../../core/index.ts"
import type { FakeQueue } from "../../../testing/index.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import { ingestHandlers } from "./ingest-job.ts"
import type { IngestJob } from "./send-job.ts"

const ingest = useIngest()

/** Has `run` do what is queued, one job of each handler at once, until it waits. */
const consume = async (run: (handler: string, job: IngestJob) => Effect.Effect<void>) => {
  const { deps } = ingest.test
  const queue = deps.queue as FakeQueue
  const slots = { ingestsAtOnce: 1, longIngestsAtOnce: 1, leaseMs: 60_000 }
  const scope = Scope.makeUnsafe()
  for (const handler of ingestHandlers(Effect.succeed(deps), slots))
    await Effect.runPromise(
      queue
        .consume({ ...handler, run: (job) => run(handler.name, job) })
        .pipe(Scope.provide(scope)),
    )
  await Effect.runPromise(queue.advance(0))
  await Effect.runPromise(Scope.close(scope, Exit.void))
}

it("the first file of an account passes the twentieth of another", async () => {
  await ingest.open()
  const { test } = ingest
  ingest.test.identity.add({ key: "svc_live_2", keyId: "key_2", account: "acct_2" })
  const many = []
  for (let n = 0; n < 20; n++) many.push(await test.upload(lines(1)))
  const tenant = { account: "acct_2", mode: "live" } as const
  const one = await test.upload(lines(1), { tenant, keyId: "key_2" })
  const order: string[] = []
  await consume((_, { file }) => Effect.sync(() => void order.push(file)))
  expect([order.length, order[0], order.indexOf(one)]).toEqual([21, many[0], 1])
})

it("a short file waits for no long one, whose job is known by its bytes", async () => {
  await ingest.open()
  const long = await ingest.test.upload(lines(1), { bytes: 1_000_001 })
  await ingest.test.upload(lines(1), { bytes: 5_000_000 })
  const short = await ingest.test.upload(lines(1), { bytes: 1_000_000 })
  const begun: string[] = []
  await consume((handler, { file }) => {
    begun.push(`${handler} ${file}`)
    return handler === "retrieval-ingest-long" ? Effect.never : Effect.void
  })
  expect(begun.sort()).toEqual([`retrieval-ingest ${short}`, `retrieval-ingest-long ${long}`])
})

it("a file that is deleted while it is read is no failure", async () => {
  await ingest.open()
  const id = await ingest.test.upload(lines(1))
  const read = Effect.promise(async () => {
    await ingest.remove(id)
    return Stream.fail(new PortError({ port: "files", message: "the file can't be read" }))
  })
  Object.assign(ingest.test.deps, { reader: { read: () => Stream.unwrap(read) } })
  await ingest.run(id)
  expect(ingest.test.log.lines.filter(({ level }) => level === "warn")).toEqual([])
})
