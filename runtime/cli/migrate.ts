import { Effect } from "effect"
import { type Token, Tokens } from "../../core/tokens.ts"
import { migratePlugin } from "../boot/start.ts"
import { withStarted } from "./with-deployment.ts"

export const migrate = async (file: string, json = false): Promise<void> => {
  await withStarted(
    file,
    (deployment) =>
      deployment.order.some(({ plugin }) => plugin.migrations)
        ? [Tokens.database as Token<unknown>]
        : [],
    (deployment) =>
      Effect.gen(function* () {
        const data: { readonly plugin: string; readonly ran: readonly string[] }[] = []
        for (const named of deployment.order) {
          if (!named.plugin.migrations) continue
          const ran = yield* migratePlugin(deployment, named)
          data.push({ plugin: named.plugin.name, ran })
          if (json) continue
          process.stdout.write(
            `${named.plugin.name}: ${ran.length ? `ran ${ran.join(", ")}` : "up to date"}\n`,
          )
        }
        if (json) process.stdout.write(`${JSON.stringify({ object: "list", data }, null, 2)}\n`)
      }),
  )
}
