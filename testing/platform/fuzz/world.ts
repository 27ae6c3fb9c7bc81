import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { askDashboard } from "../../dashboard-client.ts"
import { type Platform, startPlatform } from "../../platform.ts"
import { openReceiver, type Receiver } from "../../receiver.ts"
import { addTinyModel } from "../tiny-model.ts"
import { type ApiDocument, readDocument } from "./document.ts"
import { type KnownObjects, makeKnownObjects, type Owner, objectsIn } from "./known-objects.ts"

/** Who makes a request. */
export interface Actor {
  readonly name: string
  /** What the credential opens. */
  readonly access: "key" | "session" | "admin" | "none"
  readonly owner: Owner | undefined
  readonly credential: string | undefined
}

/** A running server with its accounts, and what the requests so far have shown. */
export interface World {
  readonly platform: Platform
  readonly config: string
  readonly url: string
  readonly document: ApiDocument
  readonly actors: readonly Actor[]
  readonly known: KnownObjects
  readonly models: readonly { readonly id: string; readonly capabilities: readonly string[] }[]
  readonly receiver: Receiver
  /** Ids that requests must not change: those that the actors live on. */
  readonly kept: ReadonlySet<string>
  /** Tokens of mails that the server wrote. */
  mailTokens(purpose: "verify" | "reset"): readonly string[]
  close(): Promise<void>
}

export const password = "correct horse battery"

const makeAccount = async (url: string, adminToken: string, account: string) => {
  const email = `${account}@example.com`
  const { id } = await askDashboard(url, "/dashboard/signup", "", { email, password })
  await askDashboard(url, `/admin/accounts/${id}/verify`, adminToken, {})
  const money = { amount_idr: 1_000_000_000, reason: "for the run" }
  await askDashboard(url, `/admin/accounts/${id}/grants`, adminToken, money)
  const { token } = await askDashboard(url, "/dashboard/login", "", { email, password })
  const makeKey = (more: object) =>
    askDashboard(url, "/dashboard/keys", token, { name: "run", ...more })
  return { id, token, makeKey }
}

const actorsOf = async (url: string, adminToken: string, account: "a" | "b") => {
  const { id, token, makeKey } = await makeAccount(url, adminToken, account)
  const [live, test] = await Promise.all([makeKey({}), makeKey({ test: true })])
  const actor = (
    name: string,
    access: Actor["access"],
    credential: string,
    mode?: "live" | "test",
  ): Actor => ({
    name: `${account} ${name}`,
    access,
    credential,
    owner: { account, ...(mode && { mode }) },
  })
  return {
    makeKey,
    kept: [id, live.id, test.id],
    actors: [
      actor("live", "key", live.key, "live"),
      actor("test", "key", test.key, "test"),
      actor("session", "session", token),
    ],
  }
}

const nobody = (name: string, credential: string | undefined): Actor => ({
  name,
  access: "none",
  owner: undefined,
  credential,
})

const outcasts = async (
  url: string,
  adminToken: string,
  made: Awaited<ReturnType<typeof actorsOf>>,
) => {
  const revoked = await made.makeKey({})
  const headers = { authorization: `Bearer ${made.actors[2]!.credential}` }
  await fetch(`${url}/dashboard/keys/${revoked.id}`, { method: "DELETE", headers })
  const limited = await made.makeKey({ limits: { rpm: 1, monthly_cap_idr: 0.000001 } })
  const scoped = await made.makeKey({ scopes: ["embeddings"] })
  const suspended = await makeAccount(url, adminToken, "suspended")
  const key = await suspended.makeKey({})
  await askDashboard(url, `/admin/accounts/${suspended.id}/suspend`, adminToken, {})
  const owner: Owner = { account: "a", mode: "live" }
  return {
    kept: [limited.id, scoped.id, suspended.id],
    actors: [
      nobody("nobody", undefined),
      nobody("garbage", "svc_live_garbage"),
      nobody("unknown key", `svc_live_${"x".repeat(32)}`),
      nobody("false session", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsImV4cCI6MX0."),
      nobody("revoked key", revoked.key),
      { name: "limited key", access: "key", owner, credential: limited.key },
      { name: "scoped key", access: "key", owner, credential: scoped.key },
      nobody("suspended", key.key),
    ] satisfies readonly Actor[],
  }
}

const tokensIn = (folder: string, purpose: string): readonly string[] => {
  const link = new RegExp(`#${purpose}=(?:3D)?([\\w.-]+)`, "g")
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(".eml"))
      .flatMap((name) => {
        const text = readFileSync(join(folder, name), "utf8").replace(/=\r?\n/g, "")
        return [...text.matchAll(link)].map((match) => match[1]!)
      })
  } catch {
    return []
  }
}

const assetsOf = async (url: string): Promise<readonly string[]> => {
  const page = await (await fetch(`${url}/dashboard`)).text()
  return [...page.matchAll(/\/assets\/([\w./-]+)/g)].map((match) => match[1]!)
}

/** What belongs to nobody: models, and the dashboard's files. */
export const everybody: Owner = { account: "" }

export const openWorld = async (): Promise<World> => {
  const receiver = await openReceiver()
  const env = { RAKIT_WEBHOOK_ALLOW_HOSTS: receiver.host, RAKIT_TEST_BATCH_POLL_MS: "300" }
  const folder = mkdtempSync(join(tmpdir(), "rakit-fuzz-"))
  const config = addTinyModel(folder)
  const platform = await startPlatform({ env, config })
  const { url, credentials } = platform
  const json = await (await fetch(`${url}/openapi.json`)).json()
  const { email, password: adminPassword } = credentials
  const { token } = await askDashboard(url, "/dashboard/login", "", {
    email,
    password: adminPassword,
  })
  const a = await actorsOf(url, token, "a")
  const b = await actorsOf(url, token, "b")
  const others = await outcasts(url, token, a)
  const admin: Actor = {
    name: "admin session",
    access: "admin",
    owner: { account: "admin" },
    credential: token,
  }
  const known = makeKnownObjects()
  const models = (await (await fetch(`${url}/v1/models`)).json()) as {
    data: World["models"]
  }
  for (const object of objectsIn(models as never, undefined)) known.add(everybody, object)
  for (const id of await assetsOf(url))
    known.add(everybody, { id, kind: "asset", parent: undefined, fields: {} })
  return {
    platform,
    config,
    url,
    document: readDocument(json as never),
    actors: [...a.actors, ...b.actors, admin, ...others.actors],
    known,
    models: models.data,
    receiver,
    kept: new Set([...a.kept, ...b.kept, ...others.kept]),
    mailTokens: (purpose) => tokensIn(join(platform.env.RAKIT_DATA ?? "", "outbox"), purpose),
    close: async () => {
      await platform.close()
      await receiver.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
