import type { ChatRequest, ToolDefinition } from "../../core/ports/model.ts"
import type { ChatBody } from "./request-schema.ts"

type Tool = NonNullable<ChatBody["tools"]>[number]

const toTool = ({ function: { name, description, parameters, strict } }: Tool): ToolDefinition => ({
  name,
  ...(description != null && { description }),
  ...(parameters != null && { parameters }),
  ...(strict != null && { strict }),
})

const toChoice = (choice: ChatBody["tool_choice"]): NonNullable<ChatRequest["toolChoice"]> => {
  if (choice == null) return "auto"
  return typeof choice === "string" ? choice : { name: choice.function.name }
}

export const toTools = (
  body: ChatBody,
): Pick<ChatRequest, "tools" | "toolChoice" | "parallelToolCalls"> => {
  if (!body.tools?.length) return {}
  const parallel = body.parallel_tool_calls
  return {
    tools: body.tools.map(toTool),
    toolChoice: toChoice(body.tool_choice),
    ...(parallel != null && { parallelToolCalls: parallel }),
  }
}

export const toFormat = (
  format: ChatBody["response_format"],
): Pick<ChatRequest, "responseFormat"> => {
  if (format == null || format.type === "text") return {}
  const asked = format.type === "json_object" ? format : format.json_schema
  const close = asked.close_on_length === true && { closeOnLength: true }
  if (format.type === "json_object") return { responseFormat: { type: "json_object", ...close } }
  const { schema, strict } = format.json_schema
  return { responseFormat: { type: "json_schema", schema, strict: strict === true, ...close } }
}
