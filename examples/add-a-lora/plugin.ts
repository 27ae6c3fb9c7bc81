import { Schema } from "effect"
import { definePlugin, provide, Tokens } from "rakit/core"

const Settings = Schema.Struct({
  model: Schema.optionalKey(Schema.String).annotate({
    description: "The model that the LoRA is for, where it has another id than 'tiny'.",
  }),
})

export const plugin = definePlugin<typeof Settings.Type>({
  name: "rakit-lora-accent",
  api: 1,
  about: "A LoRA of the model 'tiny'.",
  settings: Settings,
  needs: [],
  provides: [Tokens.adapters],
  create: ({ model = "tiny" }) => ({
    register: (container) =>
      provide(container, Tokens.adapters, {
        model,
        id: "packaged",
        // relative to this module
        sources: [{ url: "file:./adapter/" }],
      }),
  }),
})
