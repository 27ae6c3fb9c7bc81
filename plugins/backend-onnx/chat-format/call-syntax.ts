/** How a model was trained to write calls of tools: trigger open item (separator item)* close, and, where `repeat` is set, all that again behind it. An item is `{"name": ..., "arguments": {...}}`. */
export interface CallSyntax {
  /** The text that begins calls. None: they are the whole answer, from its first character on. */
  readonly trigger?: string
  /** May stand before calls that need no trigger. */
  readonly prefix?: string
  readonly open: string
  readonly close: string
  readonly separator?: string
  readonly repeat?: string
  readonly argumentsKey: "arguments" | "parameters"
}

export type SyntaxName = "hermes" | "list" | "llama" | "mistral"

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
}

/** Calls that can be told from a document beside them, which begins with the same brace. */
export const besideDocument = ({ prefix, ...syntax }: CallSyntax): CallSyntax => ({
  ...syntax,
  ...(prefix !== undefined && { trigger: prefix }),
})

export interface WrittenCall {
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** Calls as the model would have written them. */
export const writeCalls = (syntax: CallSyntax, calls: readonly WrittenCall[]): string => {
  const { trigger = "", open, close, separator, repeat = "", argumentsKey } = syntax
  const items = calls.map(
    (call) => `{"name": ${JSON.stringify(call.name)}, "${argumentsKey}": ${call.arguments}}`,
  )
  const group = (inner: string) => trigger + open + inner + close
  return separator === undefined ? items.map(group).join(repeat) : group(items.join(separator))
}
