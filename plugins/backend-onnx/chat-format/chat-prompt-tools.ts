import type { Json } from "../../../core/json.ts"
import { type SyntaxName, syntaxes, writeCalls } from "./call-syntax.ts"

/** A tool as the model is told of it. */
export interface PromptTool {
  readonly name: string
  readonly description?: string
  readonly parameters?: Json
}

/** The form in which templates expect tools: OpenAI's. */
export const functionOf = ({ name, description, parameters }: PromptTool): Json => ({
  type: "function",
  function: {
    name,
    description: description ?? "",
    parameters: parameters ?? { type: "object", properties: {} },
  },
})

const example = (syntax: SyntaxName): string => {
  const call = { name: "<name of the function>", arguments: "<its arguments as a JSON object>" }
  return writeCalls(syntaxes[syntax], [call])
}

/** Tells a model about tools whose template does not. In the words that the model was trained on, as far as one form of them is known. */
export const announcement = (tools: readonly PromptTool[], syntax: SyntaxName): string => {
  const signatures = tools.map((tool) => JSON.stringify(functionOf(tool)))
  const list = syntax === "list"
  return [
    "You have access to the following functions, described within <tools></tools>:",
    `<tools>${list ? `[${signatures.join(", ")}]` : `\n${signatures.join("\n")}\n`}</tools>`,
    "",
    `To call ${list ? "functions, answer with one list of all calls" : "a function, answer with a JSON object of its name and arguments"} within <tool_call></tool_call>:`,
    example(syntax),
    "If no function is needed, answer in plain text.",
  ].join("\n")
}
