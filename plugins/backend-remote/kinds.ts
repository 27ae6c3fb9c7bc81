/** What only requests for pictures have; `image_` where chats have a field of this name. */
const imageFeatures = [
  "image_edits",
  "image_seed",
  "num_steps",
  "guidance_scale",
  "strength",
  "partial_images",
] as const

/** What a request may ask of a server, by the name of its field in the API. */
export const features = [
  "seed",
  "frequency_penalty",
  "presence_penalty",
  "top_k",
  "min_p",
  "repetition_penalty",
  "logit_bias",
  "logprobs",
  "n",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "json_object",
  "json_schema",
  "regex",
  "grammar",
  "choice",
  "close_on_length",
  "thinking",
  "images",
  "cache_control",
  "instruction",
  "max_tokens_per_doc",
  "max_chunks_per_doc",
  "verbose_json",
  ...imageFeatures,
] as const
export type Feature = (typeof features)[number]

export const kindNames = [
  "compatible",
  "openai",
  "vllm",
  "sglang",
  "tgi",
  "tei",
  "llamacpp",
  "ollama",
  "rakit",
] as const
export type KindName = (typeof kindNames)[number]

/** Forms of answers beside JSON, by the style of a server: others have no field for them. */
export const formsOf = {
  vllm: ["regex", "grammar", "choice"],
  sglang: ["regex", "choice"],
  tgi: ["regex"],
  llamacpp: ["choice"],
  rakit: ["regex", "grammar", "choice"],
} as const satisfies Readonly<Record<string, readonly Feature[]>>
export type FormStyle = keyof typeof formsOf

/** How servers of one kind are asked, and what they keep of a request. */
export interface Kind {
  readonly keeps: readonly Feature[]
  readonly maxTokens: "max_tokens" | "max_completion_tokens"
  /**
   * Values that mean "off": servers that fill in defaults of their own (`top_k: 40`) must be sent
   * them where the request has none.
   */
  readonly neutral?: Readonly<Record<string, number>>
  readonly repetitionPenalty?: "repeat_penalty"
  /** `nucleus`: `top_p` must be below 1, so 1 is left out. */
  readonly topP?: "nucleus"
  /** How it takes forms that OpenAI's API has none for, and JSON; absent: as OpenAI does. */
  readonly forms?: FormStyle
  /** It charges reasoning that it does not send. */
  readonly hidesReasoning?: true
  /** Usage in every chunk, so that a call that is cut is metered exactly. */
  readonly continuousUsage?: true
  /** The documents' field of rerank requests, and the route below the server's root. */
  readonly rerank: { readonly path: string; readonly documents: "documents" | "texts" }
  /** It can be made to call a tool, but not a certain one: that is sent as the only tool. */
  readonly forcesOneTool?: true
  /** Rerank scores are logits. */
  readonly logits?: true
  /** What else a request for a picture says, so that a PNG comes, and comes in the answer. */
  readonly picture?: Readonly<Record<string, string>>
  /** Edits as JSON, with base64; else as a form with files. */
  readonly editsAsJson?: true
}

const common = [
  "seed",
  "frequency_penalty",
  "presence_penalty",
  "tools",
  "json_object",
  "json_schema",
] as const satisfies readonly Feature[]
const openai = [
  ...common,
  "logit_bias",
  "logprobs",
  "n",
  "tool_choice",
  "parallel_tool_calls",
  "images",
  "verbose_json",
] as const satisfies readonly Feature[]
const sampling = ["top_k", "min_p", "repetition_penalty"] as const satisfies readonly Feature[]

/** What diffusion servers keep: those of vLLM and SGLang have fields of the same names. */
const diffusion = [
  "image_edits",
  "image_seed",
  "num_steps",
  "guidance_scale",
] as const satisfies readonly Feature[]
const inAnswer = { response_format: "b64_json" }
const asPng = { ...inAnswer, output_format: "png" }

const rerank = { path: "v1/rerank", documents: "documents" } as const

/** Presets; an upstream's `keeps` and `lacks` correct them for its version and model. */
export const kinds: Readonly<Record<KindName, Kind>> = {
  compatible: { keeps: openai, maxTokens: "max_tokens", rerank, picture: inAnswer, forms: "vllm" },
  // its older image models know no output_format, its newer ones no response_format
  openai: {
    keeps: [...openai, "image_edits", "partial_images"],
    maxTokens: "max_completion_tokens",
    rerank,
    hidesReasoning: true,
  },
  vllm: {
    keeps: [...openai, ...sampling, ...diffusion, "regex", "choice", "thinking"],
    maxTokens: "max_tokens",
    neutral: { top_k: -1, min_p: 0, repetition_penalty: 1 },
    forms: "vllm",
    continuousUsage: true,
    rerank,
    picture: asPng,
  },
  sglang: {
    keeps: [...openai, ...sampling, ...diffusion, "regex", "choice", "thinking"],
    maxTokens: "max_tokens",
    neutral: { top_k: -1, min_p: 0, repetition_penalty: 1 },
    forms: "sglang",
    rerank,
    picture: asPng,
  },
  tgi: {
    keeps: ["seed", "frequency_penalty", "tools", "tool_choice", "json_schema", "regex"],
    maxTokens: "max_tokens",
    topP: "nucleus",
    forms: "tgi",
    rerank,
  },
  tei: {
    keeps: [],
    maxTokens: "max_tokens",
    rerank: { path: "rerank", documents: "texts" },
  },
  llamacpp: {
    keeps: [
      ...common,
      ...sampling,
      "logit_bias",
      "logprobs",
      "tool_choice",
      "parallel_tool_calls",
      "choice",
      "thinking",
    ],
    maxTokens: "max_tokens",
    forms: "llamacpp",
    forcesOneTool: true,
    neutral: { top_k: 0, min_p: 0, repeat_penalty: 1 },
    repetitionPenalty: "repeat_penalty",
    rerank,
    logits: true,
  },
  ollama: { keeps: common, maxTokens: "max_tokens", rerank },
  rakit: {
    keeps: features,
    maxTokens: "max_tokens",
    forms: "rakit",
    rerank,
    picture: asPng,
    editsAsJson: true,
  },
}
