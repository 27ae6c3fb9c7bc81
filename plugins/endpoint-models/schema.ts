import { Schema } from "effect"

const rupiah = (what: string) =>
  Schema.optionalKey(Schema.Finite.annotate({ description: `Rp per ${what}` }))

export const Model = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Schema.Int.annotate({ description: "When this server began to offer it." }),
  owned_by: Schema.String,
  root: Schema.String.annotate({ description: "The model itself, or that of an adapter." }),
  parent: Schema.NullOr(Schema.String).annotate({
    description: "Of an adapter, which is charged as its model: the model.",
  }),
  tier: Schema.String,
  context_window: Schema.Int.annotate({
    description:
      "Tokens that are served; 0 until the model's own window is known (its files are being pulled).",
  }),
  advertised_context_window: Schema.optionalKey(Schema.Int).annotate({
    description: "What the tier promises, where the model behind it serves less.",
  }),
  max_output_tokens: Schema.Int.annotate({
    description: "Tokens; never more than `context_window`.",
  }),
  modalities: Schema.Array(Schema.String),
  capabilities: Schema.Array(Schema.String),
  embedding_space: Schema.optionalKey(Schema.String).annotate({
    description:
      "The vector space of an embedding model, once it is open, as in `X-Embedding-Space`: vectors of one space may be compared.",
  }),
  served_by: Schema.optionalKey(Schema.String).annotate({
    description:
      "What runs the model now, once it is open: `onnx cpu`, `webgpu (NAME)`, `webgpu, now cpu`, or `remote`.",
  }),
  loras: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description:
      "What `lora` of an image request may name, once the model is open; absent where it has none.",
  }),
  recommended_sampling: Schema.optionalKey(
    Schema.Struct({
      temperature: Schema.Finite,
      source: Schema.Literals(["config", "files"]).annotate({
        description: "`config`: the operator; `files`: the model's own (generation_config.json).",
      }),
    }),
  ).annotate({
    description:
      "What a chat model answers best with, where that is known, once it is open. Requests without a `temperature` have 1 all the same.",
  }),
  description: Schema.String,
  pricing_model: Schema.String,
  pricing: Schema.Struct({
    input_idr: rupiah("1M input tokens"),
    output_idr: rupiah("1M output tokens"),
    cache_read_idr: rupiah("1M tokens read from the prompt cache"),
    cache_write_idr: rupiah("1M tokens written to the prompt cache"),
    image_idr: rupiah("image"),
    audio_second_idr: rupiah("second of audio"),
    search_unit_idr: rupiah("search unit"),
  }),
}).annotate({ identifier: "Model" })
export type Model = typeof Model.Type

export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Model),
  has_more: Schema.Boolean,
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
}).annotate({ identifier: "ModelList" })
export type ModelList = typeof ModelList.Type
