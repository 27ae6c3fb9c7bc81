import { existsSync } from "node:fs"
import { Effect, Redacted } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { clusterIn } from "./embedded/cluster.ts"
import { openPostgres } from "./postgres.ts"
import { Settings } from "./settings.ts"

export const plugin = definePlugin<Settings>({
  name: "database-postgres",
  api: 1,
  about: "PostgreSQL 15 or newer: a server by URL, or an embedded one in the data folder.",
  settings: Settings,
  needs: [Tokens.deployment, Tokens.log, Tokens.metrics],
  provides: [Tokens.database, Tokens.healthChecks],
  create: (settings) => ({
    hasData: (container) => {
      const { dataDir } = resolve(container, Tokens.deployment)
      return Redacted.value(settings.url) !== "" || existsSync(clusterIn(dataDir, settings).home)
    },
    start: (container) =>
      Effect.gen(function* () {
        const deps = {
          deployment: resolve(container, Tokens.deployment),
          log: resolve(container, Tokens.log).with({ plugin: "database-postgres" }),
          metrics: resolve(container, Tokens.metrics),
        }
        const { database, ping } = yield* openPostgres(settings, deps)
        provide(container, Tokens.database, database)
        provide(container, Tokens.healthChecks, ping)
      }),
  }),
})

// for testing/postgres.ts, which starts one server for all tests and makes a database for each
export { clusterIn } from "./embedded/cluster.ts"
export { startUnowned } from "./embedded/embedded.ts"
export { stopServer } from "./embedded/stop.ts"
export { openPostgres } from "./postgres.ts"
export { Settings } from "./settings.ts"
