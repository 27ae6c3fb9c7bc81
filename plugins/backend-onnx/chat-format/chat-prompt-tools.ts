import type { Json } from "../../../core/json.ts"
import { type SyntaxName, syntaxes, writeCalls } from "./call-syntax.ts"

/** A tool as it is described to the model. */
export interface PromptTool {
  readonly name: string
  readonly description?: string
  readonly parameters?: Json
}

/** OpenAI's form of a tool, which templates expect. */
export const functionOf = ({ name, description, parameters }: PromptTool): Json => ({
  type: "function",
  function: {
    name,
    description: description ?? "",
    parameters: parameters ?? { type: "object", properties: {} },
  },
})

/** JSON with spaces behind commas and colons, as Python writes it. */
const spaced = (value: Json): string =>
  JSON.stringify(value, null, 1)
    .replace(/([[{])\n\s*/g, "$1")
    .replace(/\n\s*([\]}])/g, "$1")
    .replace(/,\n\s*/g, ", ")

/** Phi's form of the tools: without OpenAI's `function` around each. */
export const phiTools = (tools: readonly PromptTool[]): string =>
  spaced(
    tools.map(({ name, description, parameters }) => ({
      name,
      description: description ?? "",
      parameters: parameters ?? { type: "object", properties: {} },
    })),
  )

const example = (syntax: SyntaxName): string => {
  const call = { name: "<name of the function>", arguments: "<its arguments as a JSON object>" }
  return writeCalls(syntaxes[syntax], [call])
}

/**
 * The text that announces tools where the template does not, in the wording that the model was
 * trained on where it is known.
 */
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
