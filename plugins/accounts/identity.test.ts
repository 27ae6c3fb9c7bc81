import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { identityContract, type KeyState } from "../../testing/contracts/identity.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { makeApiKey, sha256Of } from "./api-key.ts"
import { makeIdentity } from "./identity.ts"
import { makeLastUsed } from "./last-used.ts"
import { type Fixture, openFixture } from "./testing/fixture.ts"

const noNotes = { note: () => {} }

const addKey = async ({ parts, tables, clock }: Fixture, key: string, state: KeyState) => {
  const at = new Date(clock.nowMs())
  const account = parts.ids.make("acct_")
  const keyId = parts.ids.make("key_")
  const person = {
    id: account,
    email: `${account.toLowerCase()}@example.com`,
    password_hash: "-",
    role: state.role,
    is_first: false,
    created_at: at,
  }
  await tables
    .insertInto("accounts_account")
    .values({
      ...person,
      verified_at: state.verified ? at : null,
      suspended_at: state.suspended ? at : null,
    })
    .execute()
  await Effect.runPromise(
    parts.keys.insert({
      id: keyId,
      account,
      name: "k",
      key,
      mode: state.mode,
      limits: state.limits,
      createdMs: clock.nowMs(),
    }),
  )
  if (state.revoked)
    await tables
      .updateTable("accounts_key")
      .set({ revoked_at: at })
      .where("id", "=", keyId)
      .execute()
  return { keyId, account }
}

identityContract("accounts", async () => {
  const fixture = await openFixture(await openTestDatabase())
  const { tables, clock, parts } = fixture
  return {
    identity: makeIdentity(parts.keys, noNotes, clock),
    addKey: (key, state) => addKey(fixture, key, state),
    changeKey: async (key, { revoked, suspended, verified }) => {
      const at = new Date(clock.nowMs())
      const { account_id } = await tables
        .updateTable("accounts_key")
        .set({ revoked_at: revoked ? at : null })
        .where("sha256", "=", sha256Of(key))
        .returning("account_id")
        .executeTakeFirstOrThrow()
      await tables
        .updateTable("accounts_account")
        .set({ verified_at: verified ? at : null, suspended_at: suspended ? at : null })
        .where("id", "=", account_id)
        .execute()
    },
    advance: clock.advance,
    close: fixture.close,
  }
})

describe("identity on the database", () => {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await openFixture(await openTestDatabase())
  })
  afterAll(() => fixture?.close())
  const sound = (): KeyState => ({
    mode: "live",
    role: "user",
    limits: fixture.parts.limits,
    verified: true,
    suspended: false,
    revoked: false,
  })

  it("asks once for many callers, and never for a text that can't be a key", async () => {
    const key = makeApiKey("live")
    await addKey(fixture, key, sound())
    const bySha256 = vi.fn(fixture.parts.keys.bySha256)
    const identity = makeIdentity({ ...fixture.parts.keys, bySha256 }, noNotes, fixture.clock)
    await Promise.all(
      Array.from({ length: 100 }, () => Effect.runPromise(identity.authenticate(key))),
    )
    expect(bySha256).toHaveBeenCalledTimes(1)
    for (const text of [
      "",
      "short",
      "has spaces inside it",
      "\u0000".repeat(20),
      "x".repeat(10_000),
    ])
      await Effect.runPromise(Effect.flip(identity.authenticate(text)))
    expect(bySha256).toHaveBeenCalledTimes(1)
  })

  it("writes when a key was used, at most once a minute, and for no refused one", async () => {
    const { clock, log, parts, tables } = fixture
    const lastUsed = makeLastUsed(parts.keys, clock, log)
    const identity = makeIdentity(parts.keys, lastUsed, clock)
    const [used, refused] = [makeApiKey("live"), makeApiKey("live")]
    const { keyId } = await addKey(fixture, used, sound())
    const other = await addKey(fixture, refused, { ...sound(), suspended: true })
    const read = async (id: string) =>
      (
        await tables
          .selectFrom("accounts_key")
          .select("last_used_at")
          .where("id", "=", id)
          .executeTakeFirstOrThrow()
      ).last_used_at?.getTime()
    const use = async (ms: number) => {
      clock.advance(ms)
      await Effect.runPromise(identity.authenticate(used))
      await Effect.runPromise(Effect.flip(identity.authenticate(refused)))
      await Effect.runPromise(lastUsed.flush)
      return (await read(keyId)) ?? 0
    }
    const startMs = clock.nowMs()
    expect(await use(0)).toBe(startMs)
    expect(await use(59_999)).toBe(startMs)
    expect(await use(1)).toBe(startMs + 60_000)
    expect(await read(other.keyId)).toBeUndefined()
    // a server with an older value does not move it back, nor does one within the minute
    await Effect.runPromise(parts.keys.markUsed(new Map([[keyId, startMs + 90_000]])))
    expect(await read(keyId)).toBe(startMs + 60_000)
    expect(log.lines).toEqual([])
  })
})
