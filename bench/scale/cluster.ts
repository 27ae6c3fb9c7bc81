import { createHash, randomBytes } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parse, stringify } from "yaml"
import { type Deployment, makeDeployment } from "../deployment/deployment.ts"
import { type ClosedLoadClient, startClosedLoadClient } from "../deployment/load-client.ts"
import { startInstalled } from "../deployment/postgres-server.ts"
import { type ServerProcess, startServer } from "../deployment/server-process.ts"
import { type Meter, openMeter } from "./meter.ts"

/** Servers on one database, as many as were started so far. */
export interface Cluster {
  readonly about: string
  readonly client: ClosedLoadClient
  readonly meter: Meter
  /** Keys of many accounts, one each; the first is the operator's. */
  readonly keys: readonly string[]
  readonly urls: readonly string[]
  readonly pids: readonly number[]
  addServer(): Promise<void>
  stop(): Promise<void>
}

const accounts = 400
/** The starter's model has as many. */
const dimensions = 384

/** Embeddings as long as the starter's, a model that streams, and blobs in a folder of all servers. */
const adaptConfig = (deployment: Deployment, blobs: string): void => {
  const { plugins, models, ...config } = parse(readFileSync(deployment.config, "utf8"))
  const adapted = models.map((model: { id: string; options?: object }) =>
    model.id === "svc-embed" ? { ...model, options: { ...model.options, dimensions } } : model,
  )
  // the same fake, which hands its words over one by one, as engines do
  const steps = { ...models.find(({ id }: { id: string }) => id === "svc-lyt"), id: "svc-stream" }
  writeFileSync(
    deployment.config,
    stringify({
      ...config,
      plugins: {
        ...plugins,
        "endpoint-files": { quotaMb: 100_000 },
        "storage-disk": { folder: blobs },
      },
      models: [...adapted, { ...steps, options: {} }],
    }),
  )
}

/** Accounts with a key each and more credit than they can spend. */
const addAccounts = async ({ query }: Meter): Promise<readonly string[]> => {
  const keys = Array.from({ length: accounts }, () => `svc_live_${randomBytes(16).toString("hex")}`)
  const hashes = keys.map((key) => createHash("sha256").update(key).digest())
  await query(
    `INSERT INTO accounts_account (id, email, password_hash, role, is_first, verified_at, created_at)
     SELECT 'acct_bench' || n, 'bench' || n || '@example.com', '-', 'user', false, now(), now() FROM generate_series(1, $1::int) n`,
    [accounts],
  )
  await query(
    `INSERT INTO accounts_key (id, account_id, name, sha256, prefix, mode, scopes, rpm, rpd, concurrency, monthly_cap_micros, created_at)
     SELECT 'key_bench' || n, 'acct_bench' || n, 'bench', hash, 'svc_live_abc', 'live', '{*}', 100000000, 1000000000, 10000, 0, now()
     FROM unnest($1::bytea[]) WITH ORDINALITY AS given (hash, n)`,
    [hashes],
  )
  await query(
    "SELECT ledger_adjust('bench' || n, 'acct_bench' || n, 1000000000000, 'bench', now()) FROM generate_series(1, $1::int) n",
    [accounts],
  )
  return keys
}

const settings = [
  "shared_preload_libraries=pg_stat_statements",
  "track_wal_io_timing=on",
  "max_connections=200",
]

/**
 * One server and its database; `receiver` is the `host:port` that webhooks may call. The meter
 * waits `settleMs` before it reads.
 */
export const startCluster = async (receiver: string, settleMs: number): Promise<Cluster> => {
  const postgres = await startInstalled(settings)
  const database = await postgres?.another()
  if (!postgres || !database)
    throw new Error("bench/scale.ts measures a PostgreSQL of the distribution: install postgresql")
  const shared = {
    DATABASE_URL: database,
    RAKIT_SECRET_KEY: randomBytes(32).toString("base64"),
    RAKIT_WEBHOOK_ALLOW_HOSTS: receiver,
  }
  const servers: ServerProcess[] = []
  const deployments: Deployment[] = []
  const client = startClosedLoadClient()
  const stops: (() => unknown)[] = [() => postgres.stop(), () => client.stop()]
  const stop = async () => {
    for (const server of servers) await server.stop()
    for (const one of stops.reverse()) await one()
    for (const { remove } of deployments) remove()
  }
  const addServer = async () => {
    const deployment = makeDeployment({ atOnce: true, env: shared })
    deployments.push(deployment)
    adaptConfig(deployment, join(deployments[0]!.folder, "blobs"))
    servers.push(await startServer(deployment))
  }
  try {
    await addServer()
    const meter = await openMeter(postgres, database, settleMs)
    stops.push(() => meter.close())
    const keys = [deployments[0]!.apiKey, ...(await addAccounts(meter))]
    return {
      about: postgres.about.replace("default settings", settings.join(", ")),
      client,
      meter,
      keys,
      get urls() {
        return servers.map(({ url }) => url)
      },
      get pids() {
        return servers.map(({ pid }) => pid)
      },
      addServer,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
