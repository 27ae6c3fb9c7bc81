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
let platform: Platform
let client: OpenAI

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const own = { "backend-onnx": { threads: 1 }, "endpoint-audio": {}, "model-commands": {} }
  const config = join(folder, "commands.yaml")
  writeFileSync(config, stringify({ ...shared, plugins: { ...plugins, ...own }, models: [] }))
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
