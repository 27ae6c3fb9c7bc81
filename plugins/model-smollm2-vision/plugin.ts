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
      : "../../../plugins/model-smollm2-vision/weights/",
    import.meta.url,
  ),
)

const chatModels = ["svc-omni"]

const Settings = Schema.Struct({
  models: setting(
    Schema.Array(Schema.String),
    chatModels,
    "The chat models that see with it; their decoder is SmolLM2-135M-Instruct.",
  ),
})

export const plugin = definePlugin<typeof Settings.Type>({
  name: "model-smollm2-vision",
  api: 1,
  about: "Eyes for SmolLM2-135M: chat about drawings, icons and emoji.",
  settings: Settings,
  needs: [],
  provides: [Tokens.adapters],
  create: ({ models }) => ({
    register: (container) => {
      for (const model of models)
        provide(container, Tokens.adapters, {
          model,
          id: "vision",
          sources: [{ url: `file:${weights}` }],
        })
    },
  }),
})
