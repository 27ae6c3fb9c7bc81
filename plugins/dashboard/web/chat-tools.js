import { Problem } from "./api.js"

/** What the button beside the field fills in. */
export const exampleTools = JSON.stringify(
  [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather of a city now",
        parameters: {
          type: "object",
          properties: {
            city: { type: "string" },
            unit: { type: "string", enum: ["celsius", "fahrenheit"] },
          },
          required: ["city"],
        },
      },
    },
  ],
  null,
  2,
)

const refuse = (code) => {
  throw new Problem({ status: 400, code, param: "tools" })
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)

const isTool = (tool) =>
  tool?.type === "function" &&
  isObject(tool.function) &&
  typeof tool.function.name === "string" &&
  (tool.function.parameters === undefined || isObject(tool.function.parameters))

const parsed = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return refuse("tools_not_json")
  }
}

/** The tools that a text names, none for an empty one; throws a Problem of the field `tools`. */
export const toolsOf = (text = "") => {
  if (text.trim() === "") return []
  const tools = parsed(text)
  if (!Array.isArray(tools)) return refuse("tools_not_list")
  if (!tools.every(isTool)) return refuse("tools_shape")
  const names = tools.map((tool) => tool.function.name)
  if (!names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))) return refuse("tools_name")
  return new Set(names).size < names.length ? refuse("tools_twice") : tools
}

/** Adds one chunk's pieces to the calls `{ index, id, name, arguments }`: a call is its index, and only its first piece names it. */
export const withCallDeltas = (calls, deltas = []) =>
  deltas
    .reduce(
      (all, { index = 0, id, function: { name, arguments: piece = "" } = {} }) => {
        const before = all.find((call) => call.index === index)
        const call = {
          index,
          id: before?.id ?? id,
          name: before?.name ?? name,
          arguments: (before?.arguments ?? "") + piece,
        }
        return [...all.filter((one) => one !== before), call]
      },
      [...calls],
    )
    .sort((a, b) => a.index - b.index)

/** Arguments for reading; as they are while they are no JSON: they still arrive, or were cut. */
export const prettyArguments = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The calls that still wait for results: those of the last message. */
export const openCalls = (messages) => {
  const { problem, toolCalls = [] } = messages.at(-1) ?? {}
  return problem ? [] : toolCalls
}

/** Whether a message belongs to the conversation that is sent and kept; a refused or empty one does not. */
export const isSaid = ({ role, content, problem, toolCalls = [] }) =>
  !problem && (role === "tool" || content !== "" || toolCalls.length > 0)

/** Sent again, a question that was refused for what is in it would be refused with each one that follows. */
const isWrong = ({ problem } = {}) =>
  problem?.status === 413 || problem?.param?.startsWith("messages") === true

/** The messages that go before another question. */
export const saidBefore = (messages) =>
  messages.filter(
    (message, at) => isSaid(message) && !(message.role === "user" && isWrong(messages[at + 1])),
  )
