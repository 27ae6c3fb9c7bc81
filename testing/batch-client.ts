import { type OpenAI, toFile } from "openai"
import { expect, vi } from "vitest"

/** Starts a batch of requests, named by their `custom_id`. Returns its id. */
export const startBatch = async (
  client: OpenAI,
  endpoint: OpenAI.BatchCreateParams["endpoint"],
  bodies: Readonly<Record<string, object>>,
): Promise<string> => {
  const lines = Object.entries(bodies).map(([custom_id, body]) =>
    JSON.stringify({ custom_id, method: "POST", url: endpoint, body }),
  )
  const file = await client.files.create({
    purpose: "batch",
    file: await toFile(Buffer.from(lines.join("\n")), "lines.jsonl"),
  })
  const { id } = await client.batches.create({
    input_file_id: file.id,
    endpoint,
    completion_window: "24h",
  })
  return id
}

/** Waits until a batch is completed. */
export const completedBatch = (client: OpenAI, id: string) =>
  vi.waitFor(
    async () => {
      const batch = await client.batches.retrieve(id)
      expect(batch.status).toBe("completed")
      return batch
    },
    { timeout: 60_000, interval: 100 },
  )
