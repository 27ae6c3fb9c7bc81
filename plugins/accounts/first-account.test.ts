import { readFile, rm, stat, writeFile } from "node:fs/promises"
import { Effect, Exit } from "effect"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { PluginError, PortError } from "../../core/index.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { displayPrefix, sha256Of } from "./api-key.ts"
import type { AuditTables } from "./audit/make-audit.ts"
import { credentialsFile } from "./credentials-file.ts"
import { ensureFirstAccount } from "./first-account.ts"
import type { FirstAccountDeps } from "./make-first-account.ts"
import { isPassword } from "./passwords.ts"
import { type Fixture, fakeGrants, openFixture } from "./testing/fixture.ts"

let fixture: Fixture
let parts: FirstAccountDeps
let grants: ReturnType<typeof fakeGrants>
beforeAll(async () => {
  fixture = await openFixture(await openTestDatabase())
})
afterAll(() => fixture?.close())
beforeEach(async () => {
  await fixture.empty()
  grants = fakeGrants()
  parts = { ...fixture.parts, billing: grants as unknown as FirstAccountDeps["billing"] }
  fixture.clock.advance(1)
})

const boot = (more: Partial<FirstAccountDeps> = {}) =>
  Effect.runPromise(ensureFirstAccount({ ...parts, ...more }))
const given = (more: Partial<FirstAccountDeps["given"]>) => ({
  given: { email: undefined, password: undefined, apiKey: undefined, ...more },
})
const accounts = () => fixture.tables.selectFrom("accounts_account").selectAll().execute()
const keys = () =>
  fixture.tables.selectFrom("accounts_key").selectAll().orderBy("created_at").execute()
const audited = () =>
  fixture.database
    .queries<AuditTables>()
    .selectFrom("accounts_audit")
    .selectAll()
    .where("created_at", "=", new Date(fixture.clock.nowMs()))
    .orderBy("seq")
    .execute()
const readFileText = async () => JSON.parse(await readFile(parts.credentials.path, "utf8"))
const messagesSince = (n: number) => fixture.log.lines.slice(n).map((line) => line.message)

it("makes a verified admin with the free credit, a password and a live key, and tells only the first boot", async () => {
  const { created } = await boot()
  expect(created?.email).toBe("admin@rakit.local")
  expect(created?.password).toMatch(/^[A-Za-z0-9]{20}$/)
  expect(created?.apiKey).toMatch(/^svc_live_[A-Za-z0-9]{32}$/)
  const [account] = await accounts()
  expect(account).toMatchObject({
    role: "admin",
    is_first: true,
    suspended_at: null,
    verified_at: new Date(fixture.clock.nowMs()),
  })
  expect(
    await Effect.runPromise(isPassword(account?.password_hash ?? "", created?.password ?? "")),
  ).toBe(true)
  const [key] = await keys()
  expect(key).toMatchObject({
    account_id: account?.id,
    name: "First key",
    mode: "live",
    scopes: ["*"],
    rpm: 60,
    rpd: 10_000,
    concurrency: 10,
    monthly_cap_micros: 1_000_000_000_000n,
  })
  expect(key?.sha256).toEqual(sha256Of(created?.apiKey ?? ""))
  expect(key?.prefix).toBe(created?.apiKey.slice(0, 12))
  expect(grants.byId).toEqual(new Map([[`free-credit:${account?.id}`, 50_000_000_000n]]))
  expect(await readFileText()).toEqual({
    base_url: "http://127.0.0.1:8080/v1",
    email: created?.email,
    password: created?.password,
    api_key: created?.apiKey,
  })
  expect((await stat(parts.credentials.path)).mode & 0o777).toBe(0o600)
  expect(await audited()).toMatchObject([
    {
      actor: "system",
      action: "account.create",
      target: account?.id,
      before: null,
      after: { email: "admin@rakit.local", role: "admin" },
    },
    {
      actor: "system",
      action: "key.create",
      target: key?.id,
      after: { account: account?.id, name: "First key", test: false, limits: { rpm: 60 } },
    },
  ])
  expect((await boot()).created).toBeUndefined()
  expect([await accounts(), await keys()].map((rows) => rows.length)).toEqual([1, 1])
  expect(grants.byId.size).toBe(1)
  expect(JSON.stringify(fixture.log.lines)).not.toContain(created?.password)
  expect(JSON.stringify(fixture.log.lines)).not.toContain(created?.apiKey)
})

it("uses what is given", async () => {
  const wanted = {
    email: "ada@example.com",
    password: "correct horse",
    apiKey: "an-operators-own-key",
  }
  expect((await boot({ given: wanted })).created).toEqual(wanted)
  expect(await keys()).toMatchObject([
    { name: "RAKIT_API_KEY", prefix: displayPrefix(wanted.apiKey), mode: "live" },
  ])
  expect(await readFileText()).toMatchObject({
    email: wanted.email,
    password: wanted.password,
    api_key: wanted.apiKey,
  })
  const lines = fixture.log.lines.length
  await boot({ given: wanted })
  expect(messagesSince(lines)).toEqual([])
})

it("makes one account when many servers start together", async () => {
  for (let round = 0; round < 3; round++) {
    await fixture.empty()
    const boots = await Promise.all(
      Array.from({ length: 6 }, () => boot(given({ apiKey: "svc_shared_by_all_servers" }))),
    )
    const made = boots.filter((first) => first.created)
    expect(made).toHaveLength(1)
    expect([await accounts(), await keys()].map((rows) => rows.length)).toEqual([1, 1])
    expect(await readFileText()).toMatchObject({ password: made[0]?.created?.password })
  }
  expect(grants.byId.size).toBe(3)
})

it("fails loudly where its address is that of another account", async () => {
  const at = new Date(fixture.clock.nowMs())
  const person = {
    id: "acct_other",
    email: "admin@rakit.local",
    password_hash: "-",
    role: "user",
    is_first: false,
    created_at: at,
  } as const
  await fixture.tables.insertInto("accounts_account").values(person).execute()
  await expect(boot()).rejects.toMatchObject({
    message: expect.stringMatching(/has another account/),
  })
})

it.each([
  [
    "the grant",
    () => ({
      billing: {
        adjust: () => Effect.fail(new PortError({ port: "billing", message: "down" })),
      } as unknown as FirstAccountDeps["billing"],
    }),
  ],
  [
    "the file",
    () => ({
      credentials: {
        ...parts.credentials,
        write: () => Effect.fail(new PluginError({ plugin: "accounts", message: "disk full" })),
      },
    }),
  ],
  [
    "the commit",
    () => ({
      database: {
        ...parts.database,
        transaction: (body) =>
          parts.database.transaction((tx) => Effect.andThen(body(tx), Effect.die("killed"))),
      } as FirstAccountDeps["database"],
    }),
  ],
])("leaves nothing that counts when %s fails; the next boot makes all of it", async (_, broken) => {
  expect(
    Exit.isFailure(await Effect.runPromiseExit(ensureFirstAccount({ ...parts, ...broken() }))),
  ).toBe(true)
  expect([await accounts(), await keys()].map((rows) => rows.length)).toEqual([0, 0])
  const { created } = await boot()
  const [account] = await accounts()
  expect(grants.byId.get(`free-credit:${account?.id}`)).toBe(50_000_000_000n)
  expect((await readFileText()).api_key).toBe(created?.apiKey)
})

it("takes up a new RAKIT_API_KEY later, once, beside the old key", async () => {
  await boot()
  const lines = fixture.log.lines.length
  const later = given({ apiKey: "svc_test_an-operators-sandbox-key" })
  fixture.clock.advance(1)
  await Promise.all([boot(later), boot(later)])
  await boot(later)
  const [account] = await accounts()
  expect(await keys()).toMatchObject([
    { name: "First key", mode: "live" },
    { name: "RAKIT_API_KEY", mode: "test", account_id: account?.id },
  ])
  expect(messagesSince(lines)).toEqual([expect.stringContaining("RAKIT_API_KEY is new")])
  expect(await audited()).toMatchObject([
    {
      actor: "system",
      action: "key.create",
      after: { account: account?.id, name: "RAKIT_API_KEY", test: true },
    },
  ])
  await fixture.tables
    .updateTable("accounts_key")
    .set({ revoked_at: new Date() })
    .where("name", "=", "RAKIT_API_KEY")
    .execute()
  await boot(later)
  expect(messagesSince(lines).at(-1)).toContain("revoked")
  expect((await keys()).filter((key) => key.revoked_at)).toHaveLength(1)
})

it("says that a changed password or address is ignored, and keeps the old ones", async () => {
  const { created } = await boot()
  const lines = fixture.log.lines.length
  await boot(given({ password: created?.password, email: created?.email }))
  expect(messagesSince(lines)).toEqual([])
  await boot(given({ password: "another password", email: "eve@example.com" }))
  expect(messagesSince(lines)).toEqual([
    expect.stringContaining("RAKIT_ADMIN_EMAIL is ignored"),
    expect.stringContaining("RAKIT_ADMIN_PASSWORD is ignored"),
  ])
  const [account] = await accounts()
  expect(account?.email).toBe(created?.email)
  expect(
    await Effect.runPromise(isPassword(account?.password_hash ?? "", created?.password ?? "")),
  ).toBe(true)
})

it("writes the new port into a file of ours, and leaves every other file alone", async () => {
  await boot()
  const before = await readFileText()
  await boot({ baseUrl: "http://127.0.0.1:9000/v1" })
  expect(await readFileText()).toEqual({ ...before, base_url: "http://127.0.0.1:9000/v1" })
  for (const text of ["not json", JSON.stringify({ ...before, api_key: "somebody-elses-key" })]) {
    await writeFile(parts.credentials.path, text)
    await boot()
    expect(await readFile(parts.credentials.path, "utf8")).toBe(text)
  }
  await rm(parts.credentials.path)
  expect((await boot()).created).toBeUndefined()
  await expect(readFile(parts.credentials.path)).rejects.toThrow("ENOENT")
})

it("starts although the file can't be refreshed, and says so", async () => {
  await boot()
  const credentials = {
    ...credentialsFile(fixture.dataDir),
    write: () => Effect.fail(new PluginError({ plugin: "accounts", message: "can't be written" })),
  }
  await boot({ credentials, baseUrl: "http://127.0.0.1:9000/v1" })
  expect(fixture.log.lines.at(-1)).toMatchObject({ level: "warn", message: "can't be written" })
})

it("gives the credit later to an account that another Billing never heard of, and none when there is none to give", async () => {
  await boot({ freeCreditMicros: 0n })
  expect(grants.byId.size).toBe(0)
  await boot()
  await boot()
  expect([...grants.byId.values()]).toEqual([50_000_000_000n])
})
