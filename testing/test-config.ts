import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))

export interface TestConfig {
  /** A plugin of config/test.yaml, and the settings that it gets. */
  readonly plugin: string
  readonly settings: Readonly<Record<string, number>>
  /** Time that the fake embedding model takes for a text. */
  readonly stepMs?: number
  readonly ledgerLeaseMs?: number
}

/**
 * config/test.yaml with other settings, in a folder that is also the data folder of servers that
 * come one after another.
 */
export const writeTestConfig = ({
  plugin,
  settings,
  stepMs = 0,
  ledgerLeaseMs = 3_000,
}: TestConfig) => {
  const folder = mkdtempSync(join(tmpdir(), `rakit-${plugin}-`))
  const third = Math.floor(ledgerLeaseMs / 3)
  const text = readFileSync(join(root, "config/test.yaml"), "utf8")
    .replace("../testing/fakes/backend.ts", join(root, "testing/fakes/backend.ts"))
    .replace(
      "billing-ledger: {}",
      `billing-ledger: { leaseMs: ${ledgerLeaseMs}, heartbeatMs: ${third}, sweepMs: ${third} }`,
    )
    .replace(new RegExp(`${plugin}: .*`), `${plugin}: ${JSON.stringify(settings)}`)
    .replace(
      /( {4}price: \{ input: 1500, image: 25 \}\n {4}backend: fake\n)/,
      `$1    options: { stepMs: ${stepMs} }\n`,
    )
  const config = join(folder, "test.yaml")
  writeFileSync(config, text)
  return { config, folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
