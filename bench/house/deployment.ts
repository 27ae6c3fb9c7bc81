import { randomBytes } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileOf, root } from "./code.ts"

/** A data folder and a config file of our own. */
export interface Deployment {
  readonly folder: string
  readonly config: string
  readonly apiKey: string
  readonly env: Readonly<Record<string, string>>
  remove(): void
}

export interface DeploymentOptions {
  /** In config/. */
  readonly config?: "test.yaml" | "starter.yaml"
  /** Instead of the ledger. */
  readonly billing?: "billing-free"
  readonly env?: Readonly<Record<string, string>>
}

// one key for all: given to the server, so that nothing has to be read back
const apiKey = `svc_live_${randomBytes(16).toString("hex")}`

/** The fake models compiled too, as otherwise the compiled server would load them, and a second kernel, through tsx. */
const configText = ({ config = "test.yaml", billing }: DeploymentOptions): string => {
  const text = readFileSync(join(root, "config", config), "utf8")
    .replace("../runtime/testing/fake-backend.ts", fileOf("runtime/testing/fake-backend"))
    .replace("billing-ledger: {}", `${billing ?? "billing-ledger"}: {}`)
  // 60 requests a minute are no load
  return text.includes("defaultLimits")
    ? text
    : text.replace("  accounts:\n", "  accounts:\n    defaultLimits: { rpm: 1000000, rpd: 100000000, concurrency: 1000, monthlyCapIdr: 0 }\n")
}

/** Embedded PostgreSQL with the settings of production, flushing to disk; DATABASE_URL names an empty database to use instead. */
export const makeDeployment = (options: DeploymentOptions = {}): Deployment => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-bench-"))
  const config = join(folder, "bench.yaml")
  writeFileSync(config, configText(options))
  const database = process.env.DATABASE_URL
  const env = { RAKIT_DATA: join(folder, "data"), PORT: "0", HOST: "127.0.0.1", RAKIT_API_KEY: apiKey, ...(database && { DATABASE_URL: database }), ...options.env }
  return { folder, config, apiKey, env, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
