import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { type APIError, toFile } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { askDashboard } from "../../testing/dashboard-client.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { fixtureFolder } from "./testing/fixtures.ts"
import { hearingFolder, sound } from "./testing/hearing-fixtures.ts"
import { wavOf } from "./testing/wav-of.ts"

/** Transcriptions through the whole server, with a tiny Whisper of random weights. */
const folder = mkdtempSync(join(tmpdir(), "rakit-served-hearing-"))
let platform: Platform
let client: OpenAI
let session: string

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const config = join(folder, "hearing.yaml")
  writeFileSync(
    config,
    stringify({
      ...shared,
      plugins: { ...plugins, "backend-onnx": { threads: 1 }, "endpoint-audio": { maxSeconds: 60 } },
      models: [
        {
          id: "svc-dengar",
          task: "transcribe",
          limits: { contextTokens: 448 },
          modalities: ["audio"],
          capabilities: ["transcription"],
          price: { audioSecond: 3 },
          backend: "onnx",
          sources: [{ url: `file:${hearingFolder("whisper")}/` }],
          options: { precision: "fp32" },
        },
      ],
    }),
  )
  platform = await startPlatform({ config })
  const { url, credentials } = platform
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  session = (await askDashboard(url, "/dashboard/login", "", credentials)).token
})
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

const wav = wavOf(sound(9.2))
const ask = async (more: object = {}, bytes: Uint8Array = wav, name = "sound.wav") =>
  client.audio.transcriptions.create({
    file: await toFile(bytes, name),
    model: "svc-dengar",
    language: "en",
    ...more,
  })
const refusalOf = async (work: Promise<unknown>): Promise<APIError> => {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof OpenAI.APIError)) throw new Error(`no refusal: ${error}`)
  return error
}
const balance = async (): Promise<number> => {
  const headers = { authorization: `Bearer ${session}` }
  const reply = await fetch(`${platform.url}/dashboard/me`, { headers })
  return ((await reply.json()) as { balance_idr: number }).balance_idr
}

interface Verbose {
  readonly text: string
  readonly language: string
  readonly segments: readonly {
    readonly start: number
    readonly end: number
    readonly text: string
  }[]
}

describe("a model that hears", () => {
  it("is listed with what it takes", async () => {
    const models = (await client.models.list()).data as unknown as readonly object[]
    expect(models).toMatchObject([
      { id: "svc-dengar", modalities: ["audio"], capabilities: ["transcription"] },
    ])
  })

  it("writes the same in every format, and charges the seconds of the file", async () => {
    const before = await balance()
    const json = (await ask()) as { text: string; usage?: { seconds: number; cost_idr: number } }
    expect(json.usage).toMatchObject({ type: "duration", seconds: 10, cost_idr: 30 })
    expect(before - (await balance())).toBeCloseTo(30, 6)
    const verbose = (await ask({ response_format: "verbose_json" })) as unknown as Verbose
    expect(verbose.language).toBe("en")
    expect(verbose.segments.length).toBeGreaterThan(2)
    for (const { start, end } of verbose.segments) {
      expect(end).toBeGreaterThanOrEqual(start)
      expect(end).toBeLessThanOrEqual(9.2)
    }
    expect(verbose.text).toBe(json.text)
    const srt = (await ask({ response_format: "srt" })) as unknown as string
    expect(srt).toMatch(/^1\n00:00:00,260 --> 00:00:02,740\n/)
    const vtt = (await ask({ response_format: "vtt" })) as unknown as string
    expect(vtt).toMatch(/^WEBVTT\n/)
    const text = (await ask({ response_format: "text" })) as unknown as string
    expect(text.trim()).toBe(json.text.trim())
  })

  it("streams each segment when it is written", async () => {
    const deltas: string[] = []
    let whole = ""
    for await (const event of (await ask({
      stream: true,
    })) as unknown as AsyncIterable<OpenAI.Audio.TranscriptionStreamEvent>)
      if (event.type === "transcript.text.delta") deltas.push(event.delta)
      else if (event.type === "transcript.text.done") whole = event.text
    expect(deltas.length).toBeGreaterThan(2)
    expect(deltas.join("")).toBe(whole)
    expect(whole).toBe(((await ask()) as { text: string }).text)
  })

  it("hears an MP3, and what is said in one file twice is the same", async () => {
    const mp3 = readFileSync(join(fixtureFolder("hearing"), "tone.mp3"))
    const [first, again] = [await ask({}, mp3, "tone.mp3"), await ask({}, mp3, "tone.mp3")]
    expect(again).toEqual(first)
  })

  it("has receipts that say which model heard it", async () => {
    const reply = await client.audio.transcriptions
      .create({ file: await toFile(wav, "sound.wav"), model: "svc-dengar", language: "en" })
      .asResponse()
    const headers = { authorization: `Bearer ${platform.credentials.api_key}` }
    const url = `${platform.url}/v1/receipts/${reply.headers.get("x-call-id")}`
    const { jws } = (await (await fetch(url, { headers })).json()) as { jws: string }
    const payload = JSON.parse(Buffer.from(jws.split(".")[1]!, "base64url").toString()) as {
      evidence: { model: string | null }
    }
    expect(payload.evidence.model).toMatch(/^[0-9a-f]{32}$/)
    expect(reply.headers.get("server-timing")).toMatch(/audio;.*encode;.*decode;/)
  })

  it.each([
    ["a language that it doesn't know", { language: "fr" }, wav, "language", /knows de, en, id/],
    ["a file that is cut off", {}, wav.subarray(0, 1_000), "file", /cut off/],
    ["a file without samples", {}, wavOf([]), "file", /no sound/],
    [
      "half an hour of silence",
      {},
      wavOf(new Float32Array(8_000 * 1_800), { rate: 8_000, bits: 8 }),
      "file",
      /60 s/,
    ],
  ] as const)("refuses %s, and charges nothing", async (_, more, bytes, param, why) => {
    const before = await balance()
    const error = await refusalOf(ask(more, bytes))
    expect([error.status, error.param]).toEqual([400, param])
    expect(error.message).toMatch(why)
    expect(await balance()).toBe(before)
  })

  it("hears nothing in silence, which costs its seconds", async () => {
    const reply = (await ask({}, wavOf(new Float32Array(16_000)))) as { text: string }
    expect(typeof reply.text).toBe("string")
  })
})
