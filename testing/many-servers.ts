import { randomBytes } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Role } from "../core/services/deployment.ts"
import { askDashboard } from "./dashboard-client.ts"
import { openTestDatabase, type Platform, runCli, startPlatform } from "./platform.ts"
import { freePort, type RunningProxy, startNginx } from "./proxies.ts"

/** Servers on one database and one store of blobs, behind Debian's nginx. */
export interface ManyServers {
  /** The base URL of nginx, without `/v1`. */
  readonly url: string
  readonly apiKey: string
  /** A session of the first account, for the dashboard's API. */
  signIn(): Promise<string>
  readonly databaseUrl: string
  readonly proxy: RunningProxy
  /** Those that run now; the order stays. */
  readonly servers: readonly Platform[]
  /** Sends the signal to one, waits for its end, and starts it again on its port. */
  restart(index: number, signal: NodeJS.Signals): Promise<void>
  /** `rakit fsck` of the database and blobs. */
  fsck(): ReturnType<typeof runCli>
  close(): Promise<void>
}

export interface ManyOptions {
  readonly roles: readonly Role[]
  readonly env?: Readonly<Record<string, string>>
  /** The URL of an empty database; by default a fresh one on the test server. */
  readonly database?: string
  /** The compiled fake models, or others than those of the sources. */
  readonly backend?: string
  /** Settings of `storage-s3`; by default all share one folder of blobs. */
  readonly s3?: Readonly<Record<string, unknown>>
}

const root = new URL("..", import.meta.url).pathname

/** config/test.yaml with one store of blobs for all. */
const writeConfig = (
  folder: string,
  { s3, backend = join(root, "testing/fakes/backend.ts") }: ManyOptions,
): string => {
  const storage = s3
    ? `storage-s3: ${JSON.stringify(s3)}`
    : `storage-disk: { folder: ${join(folder, "blobs")} }`
  const text = readFileSync(join(root, "config/test.yaml"), "utf8")
    .replace("../testing/fakes/backend.ts", backend)
    .replace("storage-disk: {}", storage)
  const file = join(folder, "many.yaml")
  writeFileSync(file, text)
  return file
}

export const startMany = async (options: ManyOptions): Promise<ManyServers> => {
  const { roles, database: given } = options
  const folder = mkdtempSync(join(tmpdir(), "rakit-many-"))
  const database = given === undefined ? await openTestDatabase() : undefined
  const databaseUrl = given ?? database!.url
  const config = writeConfig(folder, options)
  const apiKey = `svc_live_${randomBytes(16).toString("hex")}`
  const ports = await Promise.all(roles.map(freePort))
  const start = (index: number) =>
    startPlatform({
      config,
      role: roles[index]!,
      database: new URL(databaseUrl),
      dataDir: join(folder, `server-${index}`),
      env: {
        PORT: String(ports[index]),
        RAKIT_SECRET_KEY: secret,
        RAKIT_API_KEY: apiKey,
        RAKIT_TEST_BATCH_POLL_MS: "200",
        ...options.env,
      },
    })
  const secret = randomBytes(32).toString("base64")
  const servers: Platform[] = []
  // the first makes the tables, and the others find them
  servers.push(await start(0))
  servers.push(...(await Promise.all(roles.slice(1).map((_, n) => start(n + 1)))))
  const answering = servers.filter((_, index) => roles[index] !== "worker")
  const proxy = await startNginx(answering.map(({ url }) => url))
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    apiKey,
    signIn: async () => {
      const { email, password } = servers[0]!.credentials
      return (await askDashboard(servers[0]!.url, "/dashboard/login", "", { email, password }))
        .token
    },
    databaseUrl,
    proxy,
    servers,
    restart: async (index, signal) => {
      await servers[index]!.stop(signal)
      servers[index] = await start(index)
    },
    fsck: () => runCli(["fsck", config], servers[0]!.env),
    close: async () => {
      await proxy.close()
      await Promise.all(servers.map((server) => server.close()))
      await database?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
