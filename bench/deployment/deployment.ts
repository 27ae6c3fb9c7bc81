import { randomBytes } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parse, stringify } from "yaml"
import { fileOf, root } from "./code.ts"

/** A temporary data folder and config file. */
export interface Deployment {
  readonly folder: string
  readonly config: string
  readonly apiKey: string
  readonly env: Readonly<Record<string, string>>
  remove(): void
}

export interface DeploymentOptions {
  /** File name in config/. */
  readonly config?: "test.yaml" | "starter.yaml"
  /** Billing plugin that replaces the ledger. */
  readonly billing?: "billing-free"
  /**
   * Only fake models and the endpoints of inference: a constant caller, and a billing that does
   * nothing.
   */
  readonly unpaid?: true
  /** The fake model answers in one step, so that its own time is not measured. */
  readonly atOnce?: true
  /** When a reply may leave; by default the ledger's own choice. */
  readonly replyAfter?: "database" | "journal"
  readonly env?: Readonly<Record<string, string>>
}

// one key for all: given to the server, so that nothing has to be read back
const apiKey = `svc_live_${randomBytes(16).toString("hex")}`

const isNeeded = (plugin: string): boolean =>
  plugin.includes("fakes/backend") || /^endpoint-(chat|embeddings)$/.test(plugin)

const adapted = (text: string, { unpaid, atOnce }: DeploymentOptions): string => {
  const { plugins, models, ...deps } = parse(text)
  const ours = ["constant-caller", "no-billing"].map((name) => [
    join(root, `bench/deployment/${name}.js`),
    {},
  ])
  const kept = Object.entries(plugins).filter(([name]) => !unpaid || isNeeded(name))
  const paced = models.map((model: object) => ({
    ...model,
    ...(atOnce && { options: { atOnce } }),
  }))
  return stringify({
    ...deps,
    plugins: Object.fromEntries([...kept, ...(unpaid ? ours : [])]),
    models: paced,
  })
}

/**
 * The fake models compiled too, as otherwise the compiled server would load them, and a second
 * kernel, through tsx.
 */
const configText = ({
  config = "test.yaml",
  billing,
  unpaid,
  atOnce,
  replyAfter,
}: DeploymentOptions): string => {
  const ledger = JSON.stringify({ replyAfter })
  const paid = readFileSync(join(root, "config", config), "utf8")
    .replace("../testing/fakes/backend.ts", fileOf("testing/fakes/backend"))
    .replace("billing-ledger: {}", `${billing ?? "billing-ledger"}: ${ledger}`)
  const text = atOnce || unpaid ? adapted(paid, { unpaid, atOnce }) : paid
  // 60 requests a minute are no load
  return text.includes("defaultLimits")
    ? text
    : text.replace(
        "  accounts:\n",
        "  accounts:\n    defaultLimits: { rpm: 1000000, rpd: 100000000, concurrency: 1000, monthlyCapIdr: 0 }\n",
      )
}

/**
 * Embedded PostgreSQL with the settings of production, flushing to disk; DATABASE_URL names an
 * empty database to use instead, RAKIT_TEST_BATCH_POLL_MS how often batches are looked for.
 */
export const makeDeployment = (options: DeploymentOptions = {}): Deployment => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-bench-"))
  const config = join(folder, "bench.yaml")
  writeFileSync(config, configText(options))
  const database = options.env?.DATABASE_URL ?? process.env.DATABASE_URL
  const pollMs = process.env.RAKIT_TEST_BATCH_POLL_MS
  const env = {
    RAKIT_DATA: join(folder, "data"),
    PORT: "0",
    HOST: "127.0.0.1",
    RAKIT_API_KEY: apiKey,
    ...(database && { DATABASE_URL: database }),
    ...(pollMs && { RAKIT_TEST_BATCH_POLL_MS: pollMs }),
    ...options.env,
  }
  return {
    folder,
    config,
    apiKey,
    env,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
