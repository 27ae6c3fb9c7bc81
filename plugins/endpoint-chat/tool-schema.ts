import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import { lengthOf, ParametersSchema } from "./json-schema-limits.ts"

/** The name of a tool or a response format. */
export const Name = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/, { message: "must be 1 to 64 letters, digits, _ or -" }),
)

const Tool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Name,
    description: optional(Schema.String.check(atMostCharacters(16_384))),
    parameters: optional(ParametersSchema),
    strict: optional(Schema.Boolean).annotate({
      description:
        "A keyword of `parameters` that can't be kept is a 400; otherwise the schema guides as far as it can.",
      default: false,
    }),
  }),
}).annotate({ identifier: "Tool" })

const mostCharacters = 2 * 1024 * 1024

const inAll = Schema.makeFilter((tools: readonly (typeof Tool.Type)[]) => {
  const characters = tools.reduce((sum, tool) => sum + lengthOf(tool.function.parameters ?? {}), 0)
  return (
    characters <= mostCharacters ||
    `must have parameters of at most ${mostCharacters.toLocaleString("en")} characters in all`
  )
})

export const Tools = Schema.Array(Tool)
  .check(Schema.isMaxLength(128, { message: "must hold at most 128 tools" }))
  .check(inAll)
export type Tools = typeof Tools.Type

const NamedTool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: Name }),
})

const AllowedTools = Schema.Struct({
  type: Schema.Literal("allowed_tools"),
  allowed_tools: Schema.Struct({
    mode: Schema.Literals(["auto", "required"]),
    tools: Schema.Array(NamedTool)
      .check(Schema.isMinLength(1, { message: "must hold at least one tool" }))
      .check(Schema.isMaxLength(128, { message: "must hold at most 128 tools" })),
  }),
})

const message =
  'must be "auto", "none", "required", {"type": "function", "function": {"name"}} or {"type": "allowed_tools", "allowed_tools": {"mode": "auto" or "required", "tools": [{"type": "function", "function": {"name"}}]}}'

export const ToolChoice = Schema.Union([
  Schema.Literals(["auto", "none", "required"]).annotate({ message }),
  NamedTool,
  AllowedTools,
]).annotate({
  identifier: "ToolChoice",
  description:
    "`auto` by default. `required`: at least one call; by name: a call of that tool; `allowed_tools`: `auto` or `required` among some of the tools.",
  message,
})
export type ToolChoice = typeof ToolChoice.Type

/** Returns the first problem of `tools` and `tool_choice` together. */
export const toolsProblem = (body: {
  readonly tools?: Tools | null
  readonly tool_choice?: ToolChoice | null
}) => {
  const names = (body.tools ?? []).map((tool) => tool.function.name)
  const twice = names.findIndex((name, index) => names.indexOf(name) < index)
  if (twice >= 0)
    return { path: ["tools", twice, "function", "name"], issue: "is the name of an earlier tool" }
  const choice = body.tool_choice ?? "auto"
  if (choice === "auto" || choice === "none") return undefined
  if (names.length === 0)
    return { path: ["tool_choice"], issue: "can't ask for a call where there are no tools" }
  if (choice === "required") return undefined
  const issue = "is not the name of one of the tools"
  if (choice.type === "function")
    return names.includes(choice.function.name)
      ? undefined
      : { path: ["tool_choice", "function", "name"], issue }
  const unknown = choice.allowed_tools.tools.findIndex(
    (tool) => !names.includes(tool.function.name),
  )
  return unknown < 0
    ? undefined
    : { path: ["tool_choice", "allowed_tools", "tools", unknown, "function", "name"], issue }
}
