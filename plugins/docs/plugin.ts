import { Schema } from "effect"
import { definePlugin, provide, setting, Tokens } from "../../core/index.ts"
import { makeApiPage } from "./api-page.ts"
import { makeFilesEndpoint, makeGuideEndpoint, makePageEndpoint } from "./endpoints.ts"
import { builtFolder, loadFolder } from "./files.ts"

const Settings = Schema.Struct({
  guide: setting(
    Schema.Boolean,
    true,
    "Serves the guide at `/docs/guide`, where it is built (`npm run docs:site`).",
  ),
  api: setting(Schema.Boolean, true, "Serves the page of the API at `/docs`."),
})

export const plugin = definePlugin({
  name: "docs",
  api: 1,
  about: "The page of the API at /docs, and the guide at /docs/guide.",
  settings: Settings,
  needs: [],
  provides: [Tokens.endpoints],
  create: ({ guide, api }) => ({
    register: (container) => {
      const guideFiles = guide ? loadFolder(builtFolder("guide")) : new Map()
      const page = api ? makeApiPage(guideFiles.size > 0) : undefined
      if (page) {
        provide(container, Tokens.endpoints, makePageEndpoint(page))
        provide(container, Tokens.endpoints, makeFilesEndpoint(page))
      }
      if (guide) provide(container, Tokens.endpoints, makeGuideEndpoint(guideFiles))
    },
  }),
})
