import OpenAI from "openai"

const post = async (url: string, token: string, body: unknown) => {
  const headers = {
    "content-type": "application/json",
    ...(token && { authorization: `Bearer ${token}` }),
  }
  const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
  return (await reply.json()) as { token: string; key: string; id: string }
}

export const clientOf = (url: string, apiKey: string): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 2 })

/** Clients of so many new accounts. */
export const manyClients = async (
  url: string,
  admin: { readonly email: string; readonly password: string },
  count: number,
): Promise<readonly OpenAI[]> => {
  const { token: adminToken } = await post(`${url}/dashboard/login`, "", admin)
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const person = { email: `person-${n}@example.com`, password: "correct horse battery" }
      const { id } = await post(`${url}/dashboard/signup`, "", person)
      await post(`${url}/admin/accounts/${id}/verify`, adminToken, {})
      const { token } = await post(`${url}/dashboard/login`, "", person)
      return clientOf(url, (await post(`${url}/dashboard/keys`, token, { name: "k" })).key)
    }),
  )
}

/** Two tokens each, 11 KB of answer. */
export const embedText = (lines: number): string =>
  Array.from({ length: lines }, (_, n) =>
    JSON.stringify({
      custom_id: `line-${n}`,
      method: "POST",
      url: "/v1/embeddings",
      body: { model: "svc-embed", input: `line ${n}`, encoding_format: "base64" },
    }),
  ).join("\n")

export const orderBatch = async (client: OpenAI, lines: number) => {
  const file = await client.files.create({
    file: new File([embedText(lines)], "in.jsonl"),
    purpose: "batch",
  })
  return client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/embeddings",
    completion_window: "24h",
  })
}
