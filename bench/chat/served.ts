import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { tinyLlamaFile } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import { type LoopGap, startChatServer } from "./chat-server.ts"
import { longText } from "./prompts.ts"

/** Event-loop delays of the HTTP thread while `streams` clients read answers. */
export const measureLoopGap = async (
  model: string,
  streams: number,
  seconds: number,
): Promise<LoopGap & { readonly idle: LoopGap }> => {
  const server = await startChatServer(model, {})
  try {
    await server.chat("Hello", 4)
    await server.loopGap()
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    const idle = await server.loopGap()
    const untilMs = performance.now() + seconds * 1000
    const client = async (index: number) => {
      for (let turn = 0; performance.now() < untilMs; turn++)
        await server.chat(`${index} ${turn}: write a story about the sea.`, 64)
    }
    await Promise.all(Array.from({ length: streams }, (_, i) => client(i)))
    return { ...(await server.loopGap()), idle }
  } finally {
    await server.stop()
  }
}

export interface MemorySample {
  readonly requests: number
  readonly residentMb: number
}

/**
 * Resident memory while a tiny model answers many requests, each with a text of its own, so that
 * caches are full early.
 */
export const measureMemory = async (requests: number): Promise<readonly MemorySample[]> => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-memory-"))
  const model = join(folder, "tiny.gguf")
  writeFileSync(model, tinyLlamaFile())
  const server = await startChatServer(model, { threads: 1, prefixCacheMb: 8, kvMemoryMb: 64 })
  const samples: MemorySample[] = []
  const text = longText()
  try {
    const every = Math.max(1, Math.floor(requests / 10))
    for (let done = 0; done < requests; done += every) {
      let next = 0
      const client = async () => {
        while (next < every) {
          const at = (done + next++) * 31
          await server.chat(text.slice(at % 30_000, (at % 30_000) + 20 + (at % 140)), 1 + (at % 12))
        }
      }
      await Promise.all(Array.from({ length: 8 }, client))
      samples.push({ requests: done + every, residentMb: server.residentMb() })
    }
    return samples
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
