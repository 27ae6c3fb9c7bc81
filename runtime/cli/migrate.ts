import { Effect } from "effect"
import { type Token, Tokens } from "../../core/tokens.ts"
import { migratePlugin } from "../boot/start.ts"
import { withStarted } from "./with-deployment.ts"

export const migrate = async (file: string): Promise<void> => {
  await withStarted(
    file,
    (deployment) =>
      deployment.order.some(({ plugin }) => plugin.migrations)
        ? [Tokens.database as Token<unknown>]
        : [],
    (deployment) =>
      Effect.gen(function* () {
        for (const named of deployment.order) {
          if (!named.plugin.migrations) continue
          const ran = yield* migratePlugin(deployment, named)
          process.stdout.write(
            `${named.plugin.name}: ${ran.length ? `ran ${ran.join(", ")}` : "up to date"}\n`,
          )
        }
      }),
  )
}
