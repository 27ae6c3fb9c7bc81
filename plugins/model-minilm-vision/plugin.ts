import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
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
  /** The embedding model that takes images with it; its text encoder is all-MiniLM-L6-v2. */
  model: Schema.String.annotate({ default: embedModel }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(embedModel)),
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
