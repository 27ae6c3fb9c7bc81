import { definePlugin } from "../../core/plugin.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import { loadAssets } from "./assets.ts"
import { makeAssetEndpoint } from "./endpoint.ts"
import { Settings } from "./settings.ts"

export const plugin = definePlugin<Settings>({
  name: "dashboard",
  api: 1,
  about: "A page with the state of the models and a form to try them.",
  settings: Settings,
  needs: [],
  provides: [Tokens.endpoints],
  register: (container) => {
    for (const asset of loadAssets()) provide(container, Tokens.endpoints, makeAssetEndpoint(asset))
  },
})
