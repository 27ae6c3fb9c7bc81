import { toolsOf } from "./chat-tools.js"

const contentOf = ({ content, files = [] }) =>
  files.length ? [...files.map(({ block }) => block), { type: "text", text: content }] : content

const formatOf = (schema) => ({
  type: "json_schema",
  json_schema: { name: "answer", strict: true, schema: JSON.parse(schema) },
})

const messageOf = (message) => {
  const { role, content, toolCallId, toolCalls = [] } = message
  if (role === "tool") return { role, tool_call_id: toolCallId, content }
  if (toolCalls.length === 0) return { role, content: contentOf(message) }
  const calls = toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    type: "function",
    function: { name, arguments: text },
  }))
  return { role, content: content || null, tool_calls: calls }
}

/** `required` holds for questions; behind results it would ask for calls without end. */
const toolFields = (text, choice, messages) => {
  const tools = toolsOf(text)
  if (tools.length === 0) return {}
  const isFree = !choice || (choice === "required" && messages.at(-1)?.role === "tool")
  return { tools, tool_choice: isFree ? "auto" : choice }
}

const sampling = ({ temperature, maxTokens, schema, thinking }) => ({
  ...(temperature && { temperature: Number(temperature) }),
  ...(maxTokens && { max_tokens: Number(maxTokens) }),
  ...(schema && { response_format: formatOf(schema) }),
  ...(thinking && { chat_template_kwargs: { enable_thinking: true } }),
})

/** The body of a chat call; throws a SyntaxError where `schema` is no JSON, a Problem where `tools` (a text, too) are none. */
export const requestOf = (settings, messages) => ({
  model: settings.model,
  messages: [
    ...(settings.system ? [{ role: "system", content: settings.system }] : []),
    ...messages.map(messageOf),
  ],
  ...sampling(settings),
  ...toolFields(settings.tools, settings.toolChoice, messages),
})

export const indented = (value, spaces) =>
  JSON.stringify(value, null, 2).replaceAll("\n", `\n${spaces}`)

/** JSON in Python's words. */
export const python = (value, spaces = "") => {
  if (value === null) return "None"
  if (typeof value === "boolean") return value ? "True" : "False"
  if (typeof value !== "object") return JSON.stringify(value)
  const inner = `${spaces}    `
  const parts = Array.isArray(value)
    ? value.map((item) => python(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${python(item, inner)}`)
  const [open, close] = Array.isArray(value) ? "[]" : "{}"
  if (parts.length === 0) return open + close
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${spaces}${close}`
}

export const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/** What is printed: a message that calls tools has no text. */
const answerOf = ({ tools }) => (tools ? "" : ".content")

/** OpenAI's client in Python takes what OpenAI has not as `extra_body` only. */
const pythonBody = ({ chat_template_kwargs: template, ...body }) => ({
  ...body,
  ...(template && { extra_body: { chat_template_kwargs: template } }),
})

/** The same call in three languages, by their names. The key is read from the environment. */
export const snippets = {
  curl: (base, body) => `curl ${base}/chat/completions \\
  -H "Authorization: Bearer $RAKIT_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${shellQuoted(JSON.stringify(body, null, 2))}`,
  JavaScript: (base, body) => `import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.RAKIT_API_KEY })
const reply = await client.chat.completions.create(${indented(body, "")})
console.log(reply.choices[0].message${answerOf(body)})`,
  Python: (base, body) => `import os
from openai import OpenAI

client = OpenAI(base_url="${base}", api_key=os.environ["RAKIT_API_KEY"])
reply = client.chat.completions.create(
${Object.entries(pythonBody(body))
  .map(([name, value]) => `    ${name}=${python(value, "    ")},`)
  .join("\n")}
)
print(reply.choices[0].message${answerOf(body)})`,
}
