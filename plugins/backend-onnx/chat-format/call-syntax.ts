/**
 * How a model was trained to write tool calls: trigger open item (separator item)* close, repeated
 * where `repeat` is set. An item is `{"name": ..., "arguments": {...}}`.
 */
export interface CallSyntax {
  /**
   * The text that begins calls. Absent: calls are the whole answer, from its first character on.
   */
  readonly trigger?: string
  /** An optional text before calls without a trigger. */
  readonly prefix?: string
  readonly open: string
  readonly close: string
  readonly separator?: string
  readonly repeat?: string
  readonly argumentsKey: "arguments" | "parameters"
}

export type SyntaxName = "hermes" | "list" | "llama" | "mistral" | "phi"

const pythonTag = "<|python_tag|>"

export const syntaxes: Readonly<Record<SyntaxName, CallSyntax>> = {
  /** Hermes, Qwen, SmolLM3. */
  hermes: {
    trigger: "<tool_call>",
    open: "\n",
    close: "\n</tool_call>",
    repeat: "\n",
    argumentsKey: "arguments",
  },
  /** SmolLM2. */
  list: {
    trigger: "<tool_call>",
    open: "[",
    close: "]</tool_call>",
    separator: ", ",
    argumentsKey: "arguments",
  },
  /** Llama 3.1 and later. */
  llama: { prefix: pythonTag, open: "", close: "", separator: "; ", argumentsKey: "parameters" },
  /** Mistral up to v7 of its tokenizer. */
  mistral: {
    trigger: "[TOOL_CALLS]",
    open: "[",
    close: "]",
    separator: ", ",
    argumentsKey: "arguments",
  },
  /** Phi-4-mini. */
  phi: {
    trigger: "<|tool_call|>",
    open: "[",
    close: "]<|/tool_call|>",
    separator: ", ",
    argumentsKey: "arguments",
  },
}

/**
 * The syntax with its prefix made mandatory, so that calls can be distinguished from a JSON
 * document, which begins with a brace too.
 */
export const besideDocument = ({ prefix, ...syntax }: CallSyntax): CallSyntax => ({
  ...syntax,
  ...(prefix !== undefined && { trigger: prefix }),
})

export interface WrittenCall {
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** Writes calls as the model would have. */
export const writeCalls = (syntax: CallSyntax, calls: readonly WrittenCall[]): string => {
  const { trigger = "", open, close, separator, repeat = "", argumentsKey } = syntax
  const items = calls.map(
    (call) => `{"name": ${JSON.stringify(call.name)}, "${argumentsKey}": ${call.arguments}}`,
  )
  const group = (inner: string) => trigger + open + inner + close
  return separator === undefined ? items.map(group).join(repeat) : group(items.join(separator))
}
