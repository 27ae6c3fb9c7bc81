// Instead of `accounts`: everybody is the same caller. Plain JavaScript, as the compiled server would load TypeScript through tsx.
import { Effect, Schema } from "effect"
import { definePlugin, provide, Tokens } from "rakit/core"

const limits = {
  rpm: 1_000_000,
  rpd: 100_000_000,
  concurrency: 1_000,
  monthlyCapMicros: 0n,
  bodyMb: 50,
}
const caller = Effect.succeed({
  tenant: { account: "bench", mode: "live" },
  keyId: "bench",
  scopes: ["*"],
  role: "user",
  limits,
})

export const plugin = definePlugin({
  name: "bench-constant-caller",
  api: 1,
  about: "One caller for every key, asked of nobody.",
  settings: Schema.Struct({}),
  needs: [],
  provides: [Tokens.identity],
  create: () => ({
    start: (container) =>
      Effect.sync(() =>
        provide(container, Tokens.identity, { authenticate: () => caller, resume: () => caller }),
      ),
  }),
})
