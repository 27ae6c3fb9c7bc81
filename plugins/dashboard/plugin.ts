import { Schema } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import { loadAssets } from "./assets.ts"
import { makeAssetsEndpoint, makePageEndpoint } from "./endpoint.ts"
import { makePage } from "./page.ts"

export const plugin = definePlugin({
  name: "dashboard",
  api: 1,
  about: "The web app: accounts, keys, usage, ledger, playground and administration.",
  settings: Schema.Struct({}),
  needs: [],
  provides: [Tokens.endpoints],
  create: () => ({
    register: (container) => {
      const assets = loadAssets()
      provide(container, Tokens.endpoints, makePageEndpoint(makePage(assets)))
      provide(container, Tokens.endpoints, makeAssetsEndpoint(assets))
    },
  }),
})
