import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import type { ChatMessage, LoadedModel, Part } from "../../core/ports/model.ts"
import type { EmbedJobEvent } from "./encoding/embed-job.ts"
import { openListeningEngine } from "./hearing/open-listening-engine.ts"
import { openDecoder } from "./sessions/open-decoder.ts"
import { hearingFolder, listenedBy, sound } from "./testing/hearing-fixtures.ts"
import { answer, chatRequest, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { wavOf } from "./testing/wav-of.ts"

const graphs = mkdtempSync(join(tmpdir(), "rakit-listening-"))
const backend = openBackend({ speculation: false })
afterAll(async () => {
  await backend.close()
  rmSync(graphs, { recursive: true, force: true })
})

const folder = hearingFolder("qwen2-audio")
const { sounds, chats } = listenedBy()
const open = (more: object = {}) =>
  backend.open("chat", folder, { options: { precision: "fp32" }, ...more })
const heard = (seconds: number): Part => ({
  type: "media",
  mediaType: "audio/wav",
  bytes: wavOf(sound(seconds), { kind: 3, bits: 32 }),
})
const asked = (content: readonly Part[]) =>
  chatRequest("", { messages: [{ role: "user", content }], maxTokens: 8 })
const question = { type: "text", text: "What is said?" } as const

describe("the tiny Qwen2-Audio", () => {
  it.each([
    ["fp32", 2e-3],
    ["int8", 0.15],
  ] as const)("makes the rows of transformers of a sound (%s)", async (precision, tolerance) => {
    const sizes = { kvBytes: 0, prefixCacheBytes: 0, speculation: false, slots: 1, threads: 1 }
    const spec = { kind: "listening", path: folder, graphs, precision, ...sizes } as const
    const engine = await openListeningEngine(spec, () => {})
    for (const { seconds, count, first, last } of sounds) {
      const events: EmbedJobEvent[] = []
      const job = engine.start({ samples: sound(seconds) }, (event) => events.push(event))
      while (!(await job.next()));
      const rows = events.flatMap((event) => (event.type === "vector" ? [...event.vector] : []))
      expect(rows).toHaveLength(count * first.length)
      const scale = Math.max(...[...first, ...last].map(Math.abs))
      for (const [i, value] of first.entries())
        expect(Math.abs(rows[i]! - value) / scale).toBeLessThan(tolerance)
      for (const [i, value] of last.entries())
        expect(Math.abs(rows.at(i - last.length)! - value) / scale).toBeLessThan(tolerance)
    }
    await engine.close()
  })

  it("answers about sounds as transformers does", async () => {
    const model = await open()
    expect(model.modalities).toEqual(["text", "audio"])
    const { bytesOf, session } = await openDecoder(
      { path: folder, graphs, precision: "fp32", threads: 1 },
      () => {},
    )
    for (const { messages, seconds, ids, greedy } of chats) {
      const order = [...seconds]
      const spoken: ChatMessage[] = messages.map(({ role, content }) => ({
        role,
        content: content.map(({ type, text = "" }) =>
          type === "audio" ? heard(order.shift()!) : { type: "text", text },
        ),
      }))
      const { text, usage, plan } = await answer(
        model,
        chatRequest("", { messages: spoken, maxTokens: greedy.length }),
      )
      const audioSeconds = seconds.reduce((sum, length) => sum + Math.ceil(length), 0)
      expect(plan.bound).toMatchObject({ inputTokens: ids.length, audioSeconds })
      expect(usage).toMatchObject({ inputTokens: ids.length, audioSeconds })
      const bytes = Buffer.concat(greedy.map((id) => bytesOf(id)))
      // half a character at the end is not written
      expect(text.replace(/\ufffd$/, "")).toBe(bytes.toString().replace(/\ufffd$/, ""))
    }
    await session.close()
  })
})

describe("sounds in chats", () => {
  const encodings = async (model: LoadedModel<"chat">, content: readonly Part[]) => {
    const metered = context()
    const { text } = await answer(model, asked(content), metered)
    return { text, audio: metered.stages.filter((stage) => stage === "audio").length }
  }

  it("are encoded once while they are kept, and read from the prefix cache", async () => {
    const model = await open()
    const before = model.stats!().prefixCacheHits ?? 0
    // decoded, and encoded
    const first = await encodings(model, [heard(1.3), question])
    const again = await encodings(model, [heard(1.3), question])
    expect([first.audio, again.audio]).toEqual([2, 1])
    expect(again.text).toBe(first.text)
    expect((model.stats!().prefixCacheHits ?? 0) - before).toBeGreaterThan(60)
    const other = await encodings(model, [heard(1.1), question])
    expect(other.audio).toBe(2)
  })

  it.each([
    ["no sound", Buffer.from("no sound at all"), /no samples/],
    ["too short a sound", wavOf(sound(0.02)), /too short/],
    ["too long a sound", wavOf(sound(9)), /more than 2 s/],
  ])("%s is refused with its path", async (_, bytes, why) => {
    const model = await open()
    const part: Part = { type: "media", mediaType: "audio/wav", bytes }
    const error = await failureOf(model.task.plan(asked([question, part]), context()))
    expect(error).toMatchObject({
      code: "invalid_request_error",
      param: "messages[0].content[1].input_audio.data",
    })
    expect((error as { message: string }).message).toMatch(why)
  })

  it("more of them than the window has room for is refused", async () => {
    const model = await open({ contextTokens: 128 })
    const error = await failureOf(
      model.task.plan(asked([heard(2), heard(2), heard(2), question]), context()),
    )
    expect(error).toMatchObject({ code: "context_length_exceeded" })
  })

  it("an entry of texts only takes none", async () => {
    const model = await open({ modalities: ["text"] })
    expect(model.modalities).toEqual(["text"])
    const error = await failureOf(model.task.plan(asked([heard(1), question]), context()))
    expect(error).toMatchObject({ code: "unsupported_parameter" })
  })
})
