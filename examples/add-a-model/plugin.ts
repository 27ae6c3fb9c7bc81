import { definePlugin, type ModelOffer, ModelOfferSettings, provide, Tokens } from "rakit/core"

/** What an entry under `models` of a config file would say. */
const model: ModelOffer = {
  id: "tiny",
  task: "chat",
  description: "One layer of random weights: it writes noise, quickly.",
  limits: { contextTokens: 512, maxOutputTokens: 256 },
  capabilities: ["chat"],
  price: { input: 100, output: 400 },
  backend: "onnx",
  // relative to this module
  sources: [{ url: "file:./weights/" }],
}

export const plugin = definePlugin<typeof ModelOfferSettings.Type>({
  name: "rakit-model-tiny",
  api: 1,
  about: "The model 'tiny', for chats.",
  settings: ModelOfferSettings,
  needs: [],
  provides: [Tokens.models],
  create: (settings) => ({
    register: (container) => provide(container, Tokens.models, { ...model, ...settings }),
  }),
})
