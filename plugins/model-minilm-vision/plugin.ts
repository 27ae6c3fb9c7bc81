import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { setting } from "../../core/decode.ts"
import { definePlugin } from "../../core/plugin.ts"
import { provide, Tokens } from "../../core/tokens.ts"

/** The folder of the weights; the compiled copy of this module has none beside it. */
const weights = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts")
      ? "./weights/"
      : "../../../plugins/model-minilm-vision/weights/",
    import.meta.url,
  ),
)

const embedModel = "svc-embed"

const Settings = Schema.Struct({
  model: setting(
    Schema.String,
    embedModel,
    "The embedding model that takes images with it; its text encoder is all-MiniLM-L6-v2.",
  ),
})

export const plugin = definePlugin<typeof Settings.Type>({
  name: "model-minilm-vision",
  api: 1,
  about: "A vision tower for all-MiniLM-L6-v2: images in the space of its texts.",
  settings: Settings,
  needs: [],
  provides: [Tokens.adapters],
  create: ({ model }) => ({
    register: (container) =>
      provide(container, Tokens.adapters, {
        model,
        id: "images",
        sources: [{ url: `file:${weights}` }],
      }),
  }),
})
