import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"

/** A field that is refused, unless its value asks for nothing. */
export interface RefusedField {
  /** Values that ask for what happens anyway. A null always does. */
  readonly idle?: readonly Json[]
  readonly instead?: string
}

const flag: RefusedField = { idle: [false] }
const list: RefusedField = { idle: [[]] }
const instead = (name: string): RefusedField => ({ instead: `use ${name}` })
const thinking = "use chat_template_kwargs.enable_thinking"
const otherForm = "use response_format with a JSON Schema, a regex or a grammar in Lark"

/**
 * Fields of other servers' chat APIs that would change the answer and are not served. They are
 * refused by name, so that nobody gets another answer than the one asked for. Fields that change
 * nothing, such as `store`, and those that nobody knows are ignored: clients send new ones.
 */
export const refusedFields: Readonly<Record<string, RefusedField>> = {
  // OpenAI
  functions: instead("tools"),
  function_call: instead("tool_choice"),
  audio: {},
  modalities: { idle: [["text"], []] },
  web_search_options: {},
  reasoning_effort: { idle: ["none"], instead: thinking },
  verbosity: { idle: ["medium"] },
  prompt: instead("messages"),
  best_of: { idle: [1] },
  echo: flag,
  suffix: { idle: [""] },
  // vLLM
  use_beam_search: flag,
  length_penalty: { idle: [1] },
  early_stopping: flag,
  min_tokens: { idle: [0] },
  ignore_eos: flag,
  stop_token_ids: list,
  include_stop_str_in_output: flag,
  bad_words: list,
  allowed_token_ids: {},
  logits_processors: list,
  skip_special_tokens: { idle: [true] },
  spaces_between_special_tokens: { idle: [true] },
  truncate_prompt_tokens: { idle: [-1] },
  prompt_logprobs: { idle: [0] },
  return_tokens_as_token_ids: flag,
  add_generation_prompt: { idle: [true] },
  continue_final_message: flag,
  add_special_tokens: flag,
  documents: list,
  chat_template: {},
  mm_processor_kwargs: { idle: [{}] },
  guided_whitespace_pattern: {},
  // SGLang
  ebnf: { instead: otherForm },
  min_new_tokens: { idle: [0] },
  max_new_tokens: instead("max_tokens"),
  stop_regex: list,
  no_stop_trim: flag,
  custom_logit_processor: {},
  lora_path: instead("adapter"),
  input_ids: instead("messages"),
  // llama.cpp
  grammar: { idle: [""], instead: otherForm },
  repeat_penalty: { idle: [1], ...instead("repetition_penalty") },
  typical_p: { idle: [1] },
  tfs_z: { idle: [1] },
  top_a: { idle: [0] },
  top_n_sigma: { idle: [-1, 0] },
  mirostat: { idle: [0] },
  mirostat_mode: { idle: [0] },
  dynatemp_range: { idle: [0] },
  xtc_probability: { idle: [0] },
  dry_multiplier: { idle: [0] },
  samplers: list,
  n_predict: { idle: [-1], ...instead("max_tokens") },
  n_probs: { idle: [0], ...instead("top_logprobs") },
  lora: { ...list, ...instead("adapter") },
  enable_thinking: { idle: [false], instead: thinking },
  thinking_budget: {},
  // TGI
  inputs: instead("messages"),
  adapter_id: instead("adapter"),
  adapters: { ...list, ...instead("adapter") },
  watermark: flag,
  tool_prompt: {},
  // Anthropic, Cohere, Mistral, OpenRouter
  system: { idle: ["", []], instead: "use a message with the role system" },
  stop_sequences: { idle: [[]], ...instead("stop") },
  thinking: { idle: [{ type: "disabled" }], instead: thinking },
  reasoning: { idle: [{ enabled: false }, { effort: "none" }], instead: thinking },
  mcp_servers: list,
  preamble: instead("a message with the role system"),
  chat_history: instead("messages"),
  connectors: list,
  k: { idle: [0], ...instead("top_k") },
  p: instead("top_p"),
  random_seed: instead("seed"),
  safe_prompt: flag,
}

const isIdle = ({ idle = [] }: RefusedField, value: Json): boolean =>
  value == null || idle.some((same) => JSON.stringify(same) === JSON.stringify(value))

/** Fields of `structured_outputs` that are read, or change nothing. */
const knownForms = ["json", "regex", "choice", "grammar", "json_object", "disable_fallback"]
const otherForms: typeof refusedFields = {
  disable_any_whitespace: flag,
  disable_additional_properties: flag,
}
const unknownForm: RefusedField = { instead: "use json, choice, regex, grammar or json_object" }

/** A weight or scale of an adapter would be its full strength without a word. */
const adapterKeys = ["id", "strength"]
const unknownAdapterKey: RefusedField = { instead: "use id and strength" }

const keysOf = (given: Json): readonly string[] =>
  typeof given === "object" && given !== null && !Array.isArray(given) ? Object.keys(given) : []

/** All keys but those known, as an answer would be free of what they ask for. */
const othersThan = (
  known: readonly string[],
  given: Json,
  refusal: (name: string) => RefusedField,
): typeof refusedFields =>
  Object.fromEntries(
    keysOf(given)
      .filter((name) => !known.includes(name))
      .map((name) => [name, refusal(name)]),
  )

const refusedForms = (given: Json): typeof refusedFields =>
  othersThan(knownForms, given, (name) =>
    Object.hasOwn(otherForms, name) ? otherForms[name]! : unknownForm,
  )

const firstOf = (value: Json, refused: typeof refusedFields, path = ""): ApiError | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const fields = value as Readonly<Record<string, Json>>
  for (const name of Object.keys(fields)) {
    const field = Object.hasOwn(refused, name) ? refused[name] : undefined
    if (!field || isIdle(field, fields[name])) continue
    const hint = field.instead ? `; ${field.instead} instead` : ""
    const param = path + name
    return apiError("unsupported_parameter", `${param}: is not supported${hint}.`, { param })
  }
  return undefined
}

/** Returns 400 `unsupported_parameter` for the first such field. */
export const refusalOf = (body: Json): ApiError | undefined => {
  const { structured_outputs, adapter } = (body ?? {}) as {
    readonly structured_outputs?: Json
    readonly adapter?: Json
  }
  return (
    firstOf(body, refusedFields) ??
    firstOf(structured_outputs, refusedForms(structured_outputs), "structured_outputs.") ??
    firstOf(
      adapter,
      othersThan(adapterKeys, adapter, () => unknownAdapterKey),
      "adapter.",
    )
  )
}
