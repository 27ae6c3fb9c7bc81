import OpenAI from "openai"
import type { Batch } from "openai/resources/batches"
import { expect } from "vitest"
import { addAccount, askDashboard } from "../../../testing/dashboard-client.ts"
import { startPlatform } from "../../../testing/platform.ts"

export interface OutputLine {
  readonly id: string
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: Record<string, unknown> } | null
  readonly error: { readonly message: string; readonly type: string } | null
}

/** What a user of the official client does with batches. */
const actsOf = (client: OpenAI) => {
  const upload = async (text: string | Uint8Array<ArrayBuffer>) =>
    (await client.files.create({ file: new File([text], "in.jsonl"), purpose: "batch" })).id
  const create = async (
    text: string | Uint8Array<ArrayBuffer>,
    more: Partial<OpenAI.BatchCreateParams> = {},
    options = {},
  ) =>
    client.batches.create(
      {
        input_file_id: await upload(text),
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
        ...more,
      },
      options,
    )
  const ended = async (id: string): Promise<Batch> => {
    let batch = await client.batches.retrieve(id)
    await expect
      .poll(
        async () => {
          batch = await client.batches.retrieve(id)
          return ["validating", "in_progress"].includes(batch.status)
        },
        { timeout: 60_000, interval: 100 },
      )
      .toBe(false)
    return batch
  }
  const linesOf = async (file: string | undefined): Promise<readonly OutputLine[]> => {
    const text = await (await client.files.content(file!)).text()
    expect(text.endsWith("\n")).toBe(true)
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as OutputLine)
  }
  return { client, upload, create, ended, linesOf }
}
export type Acts = ReturnType<typeof actsOf>

/** The whole server, and official clients of three tenants. */
export const openBatchPlatform = async (env: Readonly<Record<string, string>> = {}) => {
  const platform = await startPlatform({ env: { RAKIT_TEST_BATCH_POLL_MS: "300", ...env } })
  const { email, password, api_key } = platform.credentials
  const actor = (apiKey: string) =>
    actsOf(new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 }))
  const { token } = await askDashboard(platform.url, "/dashboard/login", "", { email, password })
  const test = actor(
    (await askDashboard(platform.url, "/dashboard/keys", token, { name: "sandbox", test: true }))
      .key,
  )
  const { id, key } = await addAccount(platform.url, token)
  const other = actor(key)
  const takeFromOther = (rupiah: number) =>
    askDashboard(platform.url, `/admin/accounts/${id}/grants`, token, {
      amount_idr: -rupiah,
      reason: "spent",
    })
  const balance = async () => {
    const reply = await fetch(`${platform.url}/dashboard/me`, {
      headers: { authorization: `Bearer ${token}` },
    })
    return (await reply.json()) as { balance_idr: number; held_idr: number }
  }
  const raw = (path: string, init: RequestInit = {}) =>
    fetch(`${platform.url}${path}`, {
      ...init,
      headers: {
        authorization: `Bearer ${api_key}`,
        "content-type": "application/json",
        ...init.headers,
      },
    })
  return { live: actor(api_key), test, other, takeFromOther, balance, raw, close: platform.close }
}
export type BatchPlatform = Awaited<ReturnType<typeof openBatchPlatform>>

const line = (custom_id: string, url: string, body: object) =>
  JSON.stringify({ custom_id, method: "POST", url, body })

export const chatLine = (id: string, text = `say ${id}`, more: object = {}): string =>
  line(id, "/v1/chat/completions", {
    model: "svc-lyt",
    messages: [{ role: "user", content: text }],
    ...more,
  })
export const embedLine = (id: string, text = id): string =>
  line(id, "/v1/embeddings", { model: "svc-embed", input: text, dimensions: 256 })
export const rerankLine = (id: string): string =>
  line(id, "/v1/rerank", { model: "svc-rerank", query: "a", documents: ["a", "b"] })
