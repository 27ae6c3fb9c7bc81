import { Schema } from "effect"
import { secretSetting, setting, withDefault } from "../../core/decode.ts"
import { defaultBatchPriceFactor } from "../../core/pricing.ts"
import { OtelConfig } from "./otel-schema.ts"
import { ServerConfig } from "./server-schema.ts"

const strings = Schema.Array(Schema.String)
// what is out of the range is said to be that alone
const hasFewDecimals = Schema.makeFilter(
  (idr: number) =>
    idr < 0 || /^\d+(\.\d{1,6})?$/.test(String(idr)) || "must have at most 6 decimals",
)
const rupiah = Schema.Finite.check(hasFewDecimals).check(
  Schema.isBetween({ minimum: 0, maximum: 1e12 }),
)
const tokens = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000_000 }))

export const SourceConfig = Schema.Struct({
  url: Schema.String.annotate({
    description:
      "pypi:package==version/path, npm:package@version/path, https://..., ./path, file:path or hf:owner/repo@rev/path; a path that ends in / is a folder, of a hub's folder {*.json,part/x.safetensors} are some files",
  }),
  sha256: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[0-9a-f]{64}$/, {
        message: "must be 64 hexadecimal digits in lower case",
      }),
    ),
  ).annotate({
    description: "Digest of the published archive (pypi, npm) or of the file.",
  }),
})

/** The most adapters that a model may have, those of plugins among them. */
export const maxAdapters = 64

export const AdapterConfig = Schema.Struct({
  id: Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
      message: "must be 1 to 64 letters, digits or . _ -",
    }),
  ).annotate({ description: "Requests choose that of a chat model by the model `<model>:<id>`." }),
  sources: Schema.Array(SourceConfig)
    .check(Schema.isMinLength(1, { message: "must name at least one source" }))
    .annotate({
      description:
        "A folder as PEFT writes it, or a GGUF adapter; of an embed model a folder with a vision tower; a folder with a Whisper model for `hearing`. Tried in order.",
    }),
}).annotate({ identifier: "Adapter" })

const PriceConfig = Schema.Struct({
  input: Schema.optionalKey(rupiah).annotate({ description: "Rp per 1M input tokens" }),
  output: Schema.optionalKey(rupiah).annotate({ description: "Rp per 1M output tokens" }),
  cacheRead: Schema.optionalKey(rupiah).annotate({
    description: "Rp per 1M tokens read from the prompt cache; 0.1 x input by default",
  }),
  cacheWrite: Schema.optionalKey(rupiah).annotate({
    description: "Rp per 1M tokens written to the prompt cache; 1.25 x input by default",
  }),
  image: Schema.optionalKey(rupiah).annotate({ description: "Rp per image" }),
  audioSecond: Schema.optionalKey(rupiah).annotate({ description: "Rp per second of audio" }),
  searchUnit: Schema.optionalKey(rupiah).annotate({ description: "Rp per search unit" }),
})

export const ModelConfig = Schema.Struct({
  id: Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$/, {
      message: "must be 1 to 100 letters, digits or . _ : / -",
    }),
  ).annotate({ description: "What requests name as `model`." }),
  task: Schema.Literals(["chat", "embed", "rerank", "image", "transcribe"]).annotate({
    description: "What the model does, and so which endpoints serve it.",
  }),
  tier: withDefault(Schema.String, "standard", "A word of your own for the catalogue."),
  description: withDefault(Schema.String, "", "A line about the model in the catalogue."),
  ownedBy: withDefault(Schema.String, "rakit", "`owned_by` of the catalogue."),
  limits: Schema.Struct({
    contextTokens: tokens.annotate({
      description: "The window that is promised; where the model's own is smaller, that is served.",
    }),
    maxOutputTokens: withDefault(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 })),
      0,
      "The longest answer in tokens; a chat model needs it.",
    ),
    defaultMaxTokens: withDefault(tokens, 2048, "max_tokens of a request that names none."),
  }).annotate({ description: "Windows in tokens." }),
  modalities: withDefault(strings, ["text"], "Those that the model lacks are not shown."),
  capabilities: withDefault(
    strings,
    [],
    "chat, embeddings, rerank or image_generation, and what the model can do besides: tool_use, thinking, vision, structured_output, prompt_caching, image_editing; what it lacks is not shown.",
  ),
  price: withDefault(PriceConfig, {}, "Prices; what has none is free."),
  backend: Schema.String.annotate({
    description: "Name of a backend that a plugin provides, as `onnx`.",
  }),
  sources: withDefault(Schema.Array(SourceConfig), [], "Tried in order."),
  adapters: withDefault(
    Schema.Array(AdapterConfig).check(
      Schema.isMaxLength(maxAdapters, { message: `must hold at most ${maxAdapters} adapters` }),
    ),
    [],
    "LoRAs of a chat or image model, or the vision tower by which a model takes images: of a chat model the adapter with the id vision. The one with the id hearing is a speech model by which a chat model takes sounds.",
  ),
  options: withDefault(Schema.Record(Schema.String, Schema.Unknown), {}, "For the backend."),
}).annotate({ identifier: "Model" })
export type ModelConfig = typeof ModelConfig.Type

/** A file of models, by its name or with what one model of it is to have instead. */
const IncludeConfig = Schema.Union([
  Schema.String,
  Schema.Struct({
    file: Schema.String.annotate({ description: "The file, as the plain form names it." }),
    id: Schema.optionalKey(ModelConfig.fields.id).annotate({
      description: "Its model's id here.",
    }),
    tier: Schema.optionalKey(Schema.String).annotate({ description: "Its tier here." }),
    description: Schema.optionalKey(Schema.String).annotate({
      description: "Its line in the catalogue here.",
    }),
    price: Schema.optionalKey(PriceConfig).annotate({ description: "Its prices here." }),
  }),
])
export type IncludeConfig = typeof IncludeConfig.Type
export const IncludeList = Schema.Array(IncludeConfig)

/** A deployment: one YAML file. */
export const DeploymentConfig = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String).annotate({
    description: "For editors: the file of this schema.",
  }),
  name: withDefault(Schema.String, "rakit", "The deployment's name in logs and traces."),
  dataDir: withDefault(
    Schema.String,
    ".rakit",
    "Private to this deployment; relative to the working directory.",
  ),
  modelsDir: withDefault(Schema.String, "", "The model cache; `<dataDir>/models` when empty."),
  publicUrl: withDefault(
    Schema.String.check(
      Schema.isPattern(/^(https?:\/\/[^\s/?#]+\/?)?$/, {
        message: "must be http(s)://host[:port], or empty",
      }),
    ),
    "",
    "Where clients reach the server: for links in e-mails and receipts. The address that it listens on when empty.",
  ),
  secretKey: secretSetting(
    Schema.String.check(
      Schema.makeFilter(
        (text: string) =>
          text === "" ||
          text.length >= 32 ||
          "must have at least 32 characters (RAKIT_SECRET_KEY); make one with: openssl rand -hex 32",
      ),
    ),
    "Encrypts secrets at rest, at least 32 characters; give servers that share a database the same. Made and kept in <dataDir>/secret.key when empty.",
  ),
  outbound: withDefault(
    Schema.Struct({
      allowHosts: withDefault(
        Schema.String.check(
          Schema.isPattern(/^(\s*(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+):\d{1,5}\s*(,|$))*$/, {
            message: "must be host:port, comma-separated",
          }),
        ),
        "",
        "Exact host:port list of private hosts that webhooks may call, over http as well.",
      ),
      allowPorts: withDefault(
        Schema.String.check(
          Schema.isPattern(/^(\s*[1-9]\d{0,4}\s*(,|$))*$/, {
            message: "must be ports, comma-separated",
          }),
        ),
        "",
        "Ports of public hosts that webhooks may call beside 443 and 80, comma-separated.",
      ),
    }),
    {},
    "Which hosts the server may call on behalf of its customers.",
  ),
  log: withDefault(
    Schema.Struct({
      level: withDefault(
        Schema.Literals(["debug", "info", "warn", "error"]),
        "info",
        "The least level that is written.",
      ),
    }),
    {},
    "The log: JSON lines on stdout.",
  ),
  otel: withDefault(OtelConfig, {}, "Traces of requests."),
  server: withDefault(ServerConfig, {}, "The HTTP server."),
  plugins: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description:
      "Plugins and their settings: a built-in name, a package name, or a path (./my-plugin.ts).",
  }),
  batchPriceFactor: setting(
    Schema.Finite.check(
      Schema.makeFilter(
        (factor: number) =>
          /^(0(\.\d{1,3})?|1)$/.test(String(factor)) || "must be 0 to 1, with at most 3 decimals",
      ),
    ),
    defaultBatchPriceFactor,
    "What a line of a batch costs, as a part of the list price.",
  ),
  models: withDefault(Schema.Array(ModelConfig), [], "The catalogue."),
  include: withDefault(
    IncludeList,
    [],
    "Files with further `models`, beside this one or in rakit's own config folder (models/qwen3-0.6b.yaml; docs/models.md lists them); with `file` and what its model is to have instead.",
  ),
}).annotate({ identifier: "AssembledDeployment" })
export type DeploymentConfig = typeof DeploymentConfig.Type
