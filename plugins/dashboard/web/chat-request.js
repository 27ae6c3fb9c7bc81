const contentOf = ({ content, files = [] }) =>
  files.length ? [...files.map(({ block }) => block), { type: "text", text: content }] : content

const formatOf = (schema) => ({
  type: "json_schema",
  json_schema: { name: "answer", strict: true, schema: JSON.parse(schema) },
})

/** The body of a chat call; throws a SyntaxError where `schema` is no JSON. */
export const requestOf = ({ model, system, temperature, maxTokens, schema }, messages) => ({
  model,
  messages: [
    ...(system ? [{ role: "system", content: system }] : []),
    ...messages.map((message) => ({ role: message.role, content: contentOf(message) })),
  ],
  ...(temperature && { temperature: Number(temperature) }),
  ...(maxTokens && { max_tokens: Number(maxTokens) }),
  ...(schema && { response_format: formatOf(schema) }),
})

const indented = (value, spaces) => JSON.stringify(value, null, 2).replaceAll("\n", `\n${spaces}`)

/** JSON in Python's words. */
const python = (value, spaces = "") => {
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

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/** The same call in three languages, by their names. The key is read from the environment. */
export const snippets = {
  curl: (base, body) => `curl ${base}/chat/completions \\
  -H "Authorization: Bearer $RAKIT_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${shellQuoted(JSON.stringify(body, null, 2))}`,
  JavaScript: (base, body) => `import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.RAKIT_API_KEY })
const reply = await client.chat.completions.create(${indented(body, "")})
console.log(reply.choices[0].message.content)`,
  Python: (base, body) => `import os
from openai import OpenAI

client = OpenAI(base_url="${base}", api_key=os.environ["RAKIT_API_KEY"])
reply = client.chat.completions.create(
${Object.entries(body)
  .map(([name, value]) => `    ${name}=${python(value, "    ")},`)
  .join("\n")}
)
print(reply.choices[0].message.content)`,
}
