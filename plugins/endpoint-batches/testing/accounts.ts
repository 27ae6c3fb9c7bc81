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

/** Clients of `count` new accounts. */
export const manyClients = async (
  url: string,
  admin: { readonly email: string; readonly password: string },
  count: number,
): Promise<readonly OpenAI[]> => {
  const { token: adminToken } = await post(`${url}/dashboard/login`, "", admin)
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const account = { email: `account-${n}@example.com`, password: "correct horse battery" }
      const { id } = await post(`${url}/dashboard/signup`, "", account)
      await post(`${url}/admin/accounts/${id}/verify`, adminToken, {})
      const { token } = await post(`${url}/dashboard/login`, "", account)
      return clientOf(url, (await post(`${url}/dashboard/keys`, token, { name: "k" })).key)
    }),
  )
}

/** Each line has two tokens, and an answer of 11 KB. */
export const embedText = (lines: number): string =>
  Array.from({ length: lines }, (_, n) =>
    JSON.stringify({
      custom_id: `line-${n}`,
      method: "POST",
      url: "/v1/embeddings",
      body: { model: "svc-embed", input: `line ${n}`, encoding_format: "base64" },
    }),
  ).join("\n")

export const createBatch = async (client: OpenAI, lines: number) => {
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
