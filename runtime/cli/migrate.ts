import { Effect } from "effect"
import { PluginError } from "../../core/errors.ts"
import { resolve, type Token, Tokens } from "../../core/tokens.ts"
import { withStarted } from "./with-house.ts"

export const migrate = async (file: string): Promise<void> => {
  await withStarted(
    file,
    (house) => (house.order.some(({ plugin }) => plugin.migrations) ? [Tokens.database as Token<unknown>] : []),
    (house) =>
      Effect.gen(function* () {
        for (const { plugin } of house.order) {
          if (!plugin.migrations) continue
          const ran = yield* resolve(house.container, Tokens.database)
            .migrate(plugin.name, plugin.migrations)
            .pipe(Effect.mapError((error) => new PluginError({ plugin: plugin.name, message: error.message, cause: error })))
          process.stdout.write(`${plugin.name}: ${ran.length ? `ran ${ran.join(", ")}` : "up to date"}\n`)
        }
      }),
  )
}
