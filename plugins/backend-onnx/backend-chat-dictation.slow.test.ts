import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import type { Part } from "../../core/ports/model.ts"
import { writeGguf } from "./testing/gguf-writer.ts"
import { hearingFolder, sound } from "./testing/hearing-fixtures.ts"
import { answer, chatRequest, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { tinyLlama } from "./testing/tiny-llama.ts"
import { wavOf } from "./testing/wav-of.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-dictation-"))
const decoder = join(folder, "tiny.gguf")
const tiny = tinyLlama(8)
writeFileSync(
  decoder,
  writeGguf({ ...tiny, metadata: { ...tiny.metadata, "llama.context_length": 4_096 } }),
)
const backend = openBackend({ speculation: false })
afterAll(async () => {
  await backend.close()
  rmSync(folder, { recursive: true, force: true })
})

const speech = hearingFolder("whisper")
const open = (more: object = {}) =>
  backend.open("chat", decoder, { adapters: [{ id: "hearing", path: speech }], ...more })
const wav = (seconds: number) => wavOf(sound(seconds), { kind: 3, bits: 32 })
const heard = (seconds: number, more: object = {}): Part => ({
  type: "media",
  mediaType: "audio/wav",
  bytes: wav(seconds),
  ...more,
})
const question = { type: "text", text: "What is said?" } as const
const asked = (...content: readonly Part[]) =>
  chatRequest("", { messages: [{ role: "user", content }], maxTokens: 8 })

/** What the speech model writes down. */
const saidIn = async (seconds: number): Promise<string> => {
  const { task } = await backend.open("transcribe", speech, { options: { precision: "fp32" } })
  const request = {
    audio: wav(seconds),
    format: "wav",
    seconds: Math.ceil(seconds),
    temperature: 0,
    segments: false,
  } as const
  const plan = await Effect.runPromise(task.plan(request, context()))
  const events = await Effect.runPromise(Stream.runCollect(plan.run))
  return events.map((event) => (event.type === "text" ? event.text : "")).join("")
}

describe("a chat model with a speech model beside it", () => {
  it("answers as if what is said had been typed, and counts its seconds", async () => {
    const model = await open()
    expect(model).toMatchObject({ modalities: ["text", "audio"], parts: ["hearing"], adapters: [] })
    const whole = (await saidIn(1.7)).trim()
    expect(whole).not.toBe("")
    // random weights write more than the 64 bytes a second that are read
    let text = ""
    for (const letter of whole) {
      if (Buffer.byteLength(text + letter) > 128) break
      text += letter
    }
    const typed = await answer(model, asked(question, { type: "text", text }))
    const spoken = await answer(model, asked(question, heard(1.7)))
    expect(spoken.text).toBe(typed.text)
    expect(spoken.usage).toEqual({ ...typed.usage, audioSeconds: 2 })
  })

  it("holds for more than what is said can be, cached or not", async () => {
    const model = await open()
    const long = { type: "text", text: "word ".repeat(200) } as const
    const request = asked(long, heard(1.2, { cacheBreakpoint: true }), question)
    for (const _ of ["cold", "warm"]) {
      const { usage, plan } = await answer(model, request)
      for (const [key, used] of Object.entries(usage))
        expect([key, used <= plan.bound[key as keyof typeof usage]]).toEqual([key, true])
      expect(usage.cacheReadTokens + usage.cacheWriteTokens).toBeGreaterThan(0)
    }
  })

  it("writes down a sound once while it is kept, for one account", async () => {
    const model = await open()
    const stages = async (account: string) => {
      const metered = context({ tenant: { account, mode: "live" } })
      await answer(model, asked(heard(0.9), question), metered)
      return metered.stages.filter((stage) => stage === "audio").length
    }
    // read, and written down
    expect(await stages("one")).toBe(2)
    expect(await stages("one")).toBe(1)
    expect(await stages("other")).toBe(2)
  })

  it("says in its evidence what the sound was read by", async () => {
    const model = await open()
    const noted = async (...content: readonly Part[]) => {
      const facts: object[] = []
      const metered = context({ note: (more) => void facts.push(more) })
      await answer(model, asked(...content), metered)
      return Object.assign({}, ...facts).model as string
    }
    const plain = await noted(question)
    expect((await noted(heard(1), question)).startsWith(`${plain}+`)).toBe(true)
  })

  it.each([
    ["no sound", Buffer.from("no sound at all"), /no samples/],
    ["minutes of silence", wavOf(new Float32Array(90 * 4_000), { rate: 4_000 }), /more than 60 s/],
  ])("%s is refused with its path", async (_, bytes, why) => {
    const model = await open()
    const part: Part = { type: "media", mediaType: "audio/wav", bytes }
    const error = await failureOf(model.task.plan(asked(question, part), context()))
    expect(error).toMatchObject({
      code: "invalid_request_error",
      param: "messages[0].content[1].input_audio.data",
    })
    expect((error as { message: string }).message).toMatch(why)
  })

  it("takes no sounds where the entry takes texts only", async () => {
    const model = await open({ modalities: ["text"] })
    expect(model.modalities).toEqual(["text"])
    expect(model.parts).toBeUndefined()
    const error = await failureOf(model.task.plan(asked(heard(1), question), context()))
    expect(error).toMatchObject({ code: "unsupported_parameter" })
  })

  it("is not opened with something else than a Whisper model", async () => {
    const adapters = [{ id: "hearing", path: hearingFolder("qwen2-audio") }]
    const error = await backend.failure("chat", decoder, { adapters })
    expect(error.message).toContain("no folder with a Whisper model")
  })
})
