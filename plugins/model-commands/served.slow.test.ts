import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { type Platform, startPlatform } from "../../testing/platform.ts"

/** Voices that the training never heard, through the whole server and the client of OpenAI. */
const folder = mkdtempSync(join(tmpdir(), "rakit-commands-"))
const fixtures = join(import.meta.dirname, "fixtures")
const spoken = JSON.parse(readFileSync(join(fixtures, "spoken.json"), "utf8")) as readonly {
  readonly file: string
  readonly language: string
  readonly text: string
}[]
const chatModel = process.env.RAKIT_TEST_CHAT_MODEL
const chat = {
  id: "svc-lyt",
  task: "chat",
  limits: { contextTokens: 2_048, maxOutputTokens: 64 },
  modalities: ["text", "audio"],
  price: { input: 1_000_000, output: 2_000_000, audioSecond: 5 },
  backend: "onnx",
}
let platform: Platform
let client: OpenAI

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const own = {
    "backend-onnx": { threads: 1 },
    "endpoint-audio": {},
    "model-commands": { models: chatModel ? ["svc-lyt"] : [] },
  }
  const config = join(folder, "commands.yaml")
  const models = chatModel ? [{ ...chat, sources: [{ url: `file:${chatModel}` }] }] : []
  writeFileSync(config, stringify({ ...shared, plugins: { ...plugins, ...own }, models }))
  platform = await startPlatform({ config })
  const apiKey = platform.credentials.api_key
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
})
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

const wrongOf = async (isGiven: boolean): Promise<readonly string[]> => {
  const texts = await Promise.all(
    spoken.map(async ({ file, language, text }) => {
      const found = await client.audio.transcriptions.create({
        file: createReadStream(join(fixtures, file)),
        model: "svc-dengar",
        ...(isGiven && { language }),
      })
      return found.text === text ? [] : [`${text} > ${found.text}`]
    }),
  )
  return texts.flat()
}

it("writes down what voices say that it never heard", async () => {
  expect((await wrongOf(true)).length).toBeLessThanOrEqual(1)
})

it("finds the language by itself", async () => {
  expect((await wrongOf(false)).length).toBeLessThanOrEqual(1)
})

it("hears nothing in silence", async () => {
  const wav = readFileSync(join(fixtures, spoken[0]!.file))
  const silence = Buffer.concat([wav.subarray(0, 44), Buffer.alloc(wav.length - 44)])
  const found = await client.audio.transcriptions.create({
    file: await toFile(silence, "silence.wav"),
    model: "svc-dengar",
    language: "en",
  })
  expect(found.text).toBe("")
})

const asked = async (...content: OpenAI.ChatCompletionContentPart[]) => {
  const body = { model: "svc-lyt", temperature: 0, max_tokens: 8 }
  const messages = [{ role: "user" as const, content }]
  const { choices, usage } = await client.chat.completions.create({ ...body, messages })
  return {
    text: choices[0]!.message.content,
    usage: usage as OpenAI.CompletionUsage & { cost_idr: number },
  }
}

it.skipIf(!chatModel)("a chat model reads what is said, at the price of its seconds", async () => {
  const { file, text } = spoken.find(({ language }) => language === "en")!
  const data = readFileSync(join(fixtures, file)).toString("base64")
  const question = { type: "text" as const, text: "Say this again:" }
  const typed = await asked(question, { type: "text", text })
  const heard = await asked(question, {
    type: "input_audio",
    input_audio: { data, format: file.endsWith(".mp3") ? "mp3" : "wav" },
  })
  expect(heard.text).toBe(typed.text)
  const seconds = (heard.usage.cost_idr - typed.usage.cost_idr) / 5
  expect([1, 2, 3, 4]).toContain(seconds)
  expect(heard.usage).toEqual({ ...typed.usage, cost_idr: heard.usage.cost_idr })
})
