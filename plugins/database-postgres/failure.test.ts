import { createServer } from "node:net"
import pg from "pg"
import { expect, test } from "vitest"
import { PortError } from "../../core/errors.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { databaseError, whyOf } from "./failure.ts"
import { makeFailures } from "./health.ts"

const failureOf = async (config: pg.ClientConfig, statement = "select 1") => {
  const client = new pg.Client(config)
  client.on("error", () => {})
  try {
    await client.connect()
    await client.query(statement)
    return undefined
  } catch (error) {
    return error
  } finally {
    await client.end().catch(() => {})
  }
}

const sqlState = (code: string) => Object.assign(new pg.DatabaseError("x", 1, "error"), { code })

test("a server that can't be reached is unavailable", async () => {
  const silent = createServer().listen(0, "127.0.0.1")
  await new Promise((resolve) => silent.once("listening", resolve))
  const { port } = silent.address() as { port: number }
  for (const config of [
    { host: "127.0.0.1", port: 1 },
    { host: "localhost", port: 1 },
    { host: "no-such-host.invalid", port: 5432 },
    { host: "127.0.0.1", port, connectionTimeoutMillis: 50 },
  ])
    expect(whyOf(await failureOf(config)), JSON.stringify(config)).toBe("unavailable")
  silent.close()
})

test("so is one that refuses us, reads only, or lost its database", async () => {
  const { url, close } = await openTestDatabase()
  const change = (parts: Partial<URL>) => Object.assign(new URL(url), parts).href
  for (const [connectionString, statement] of [
    [change({ password: "wrong" }), "select 1"],
    [change({ pathname: "/nowhere" }), "select 1"],
    [url, "set transaction read only; create table t (i int)"],
    [url, "set statement_timeout = 10; select pg_sleep(5)"],
  ] as const)
    expect(whyOf(await failureOf({ connectionString }, statement)), statement).toBe("unavailable")
  expect(
    whyOf(await failureOf({ connectionString: url, query_timeout: 50 }, "select pg_sleep(0.5)")),
  ).toBe("unavailable")
  await close()
})

test("what is wrong with a statement says nothing about the database", async () => {
  const { url, close } = await openTestDatabase()
  for (const statement of ["select 1/0", "select nothing", "sel", "select 'x'::int"])
    expect(whyOf(await failureOf({ connectionString: url }, statement)), statement).toBeUndefined()
  expect(whyOf(new TypeError("x is not a function"))).toBeUndefined()
  expect(whyOf(new Error("the transaction has ended"))).toBeUndefined()
  await close()
})

test("states of shutdown, crash, start, too many connections and no room", () => {
  for (const code of ["57P01", "57P02", "57P03", "53300", "53200", "08006", "58030"])
    expect(whyOf(sqlState(code)), code).toBe("unavailable")
  expect(whyOf(sqlState("53100"))).toBe("full")
  for (const code of ["40001", "40P01", "23505", "22003", "42P01"])
    expect(whyOf(sqlState(code)), code).toBeUndefined()
})

test("a server that is gone while its disk is full is full", () => {
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })
  const own = makeFailures(() => "the disk of /data is full")
  expect(own.asPortError(refused)).toMatchObject({
    why: "full",
    message: "connect ECONNREFUSED; the disk of /data is full",
    cause: refused,
  })
  expect(own.asPortError(sqlState("23505"))).not.toHaveProperty("why", "full")
  expect(own.sawFull(), "the disk is asked by itself").toBe(false)
  const other = makeFailures(() => undefined)
  expect(other.asPortError(refused)).toMatchObject({ why: "unavailable" })
  expect(other.asPortError(sqlState("53100"))).toMatchObject({ why: "full" })
  expect(other.sawFull()).toBe(true)
  other.wrote()
  expect(other.sawFull()).toBe(false)
})

test("an error of the port keeps what it says", () => {
  const busy = new PortError({ port: "database", message: "too busy", why: "busy" })
  expect(databaseError(busy, "migrations")).toMatchObject({ why: "busy" })
  expect(makeFailures(() => "full").asPortError(busy)).toBe(busy)
})
