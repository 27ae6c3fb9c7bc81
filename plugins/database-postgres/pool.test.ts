import { afterEach, expect, test, vi } from "vitest"
import { openTestDatabase } from "../../testing/postgres.ts"
import { whyOf } from "./failure.ts"
import { makePool } from "./pool.ts"

afterEach(() => vi.useRealTimers())

test("a statement that is not answered long after its limit fails, and its connection is not used again", async () => {
  const { url, close } = await openTestDatabase()
  const pool = makePool({
    address: () => ({ connectionString: url }),
    isPooled: false,
    applicationName: "rakit pool test",
    maxConnections: 1,
    maxWaiting: 10,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 1_000,
    idleInTransactionTimeoutMs: 0,
    onLost: () => {},
  })
  const client = await pool.connect()
  const idOf = async (one: typeof client) =>
    (await one.query<{ id: number }>("select pg_backend_pid() as id", [])).rows[0]?.id
  const first = await idOf(client)
  // the server's own limit would end it
  await client.query("set statement_timeout = 0", [])
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const failed = client.query("select pg_sleep(60)", []).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(6_001)
  vi.useRealTimers()
  expect(await failed).toMatchObject({ code: "ETIMEDOUT" })
  expect(whyOf(await failed)).toBe("unavailable")
  client.release()
  const next = await pool.connect()
  expect(await idOf(next)).not.toBe(first)
  next.release()
  await pool.end()
  await close()
})
