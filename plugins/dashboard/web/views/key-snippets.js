import { useText } from "../app.js"
import { html } from "../html.js"

const snippets = {
  curl: ({ base, key, model }) => `curl ${base}/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
  JavaScript: ({ base, key, model }) => `import OpenAI from "openai"

const client = new OpenAI({
  baseURL: "${base}",
  apiKey: "${key}",
})
const reply = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
})
console.log(reply.choices[0].message.content)`,
  Python: ({ base, key, model }) => `from openai import OpenAI

client = OpenAI(
    base_url="${base}",
    api_key="${key}",
)
reply = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(reply.choices[0].message.content)`,
}

const chats = (model) => model.endpoints?.includes("chat.completions") ?? model.task === "chat"

/** How a new key is used: the address of the API, and a first call in three languages. */
export const Snippets = ({ apiKey, models }) => {
  const { t } = useText()
  const base = `${location.origin}/v1`
  const mayUse = models.filter(({ id }) => !apiKey.models || apiKey.models.includes(id))
  const model = (mayUse.find(chats) ?? mayUse[0])?.id ?? "MODEL"
  return html`
    <p>${t("key.base")}: <code>${base}</code></p>
    ${Object.entries(snippets).map(
      ([name, write]) => html`<details key=${name} open=${name === "curl"}>
      <summary>${name}</summary>
      <pre class="snippet" tabindex="0" role="region" aria-label=${name}><code>${write({ base, key: apiKey.key, model })}</code></pre>
    </details>`,
    )}`
}
