import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { setting } from "../../core/decode.ts"
import { definePlugin } from "../../core/plugin.ts"
import { type ModelOffer, ModelOfferSettings } from "../../core/ports/model-offer.ts"
import { provide, Tokens } from "../../core/tokens.ts"

/** The folder of the weights; the compiled copy of this module has none beside it. */
const weights = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts") ? "./weights/" : "../../../plugins/model-commands/weights/",
    import.meta.url,
  ),
)

/** What an entry under `models` of a config file would say. */
const model: ModelOffer = {
  id: "svc-dengar",
  task: "transcribe",
  description: "Writes down spoken digits and commands in English, Indonesian and Spanish",
  limits: { contextTokens: 16 },
  modalities: ["audio"],
  capabilities: ["transcription"],
  price: { audioSecond: 1.5 },
  backend: "onnx",
  options: { precision: "fp32" },
  sources: [{ url: `file:${weights}` }],
}

const Settings = Schema.Struct({
  ...ModelOfferSettings.fields,
  models: setting(
    Schema.Array(Schema.String),
    [],
    "Chat models that take sounds by it: they read what it writes down.",
  ),
})

export const plugin = definePlugin<typeof Settings.Type>({
  name: "model-commands",
  api: 1,
  about: "The speech model 'svc-dengar', trained by this project: digits and commands.",
  settings: Settings,
  needs: [],
  provides: [Tokens.models, Tokens.adapters],
  create: ({ models, ...settings }) => ({
    register: (container) => {
      provide(container, Tokens.models, { ...model, ...settings })
      for (const chat of models)
        provide(container, Tokens.adapters, { model: chat, id: "hearing", sources: model.sources })
    },
  }),
})
