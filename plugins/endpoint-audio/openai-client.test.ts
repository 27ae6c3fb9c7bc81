import { Effect } from "effect"
import type OpenAI from "openai"
import { toFile } from "openai"
import { afterEach, describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import { goodKey } from "../../runtime/http/testing/fixture.ts"
import { type ClientFixture, openClient } from "./testing/open-client.ts"
import { mp3, wav } from "./testing/sounds.ts"

let fixture: ClientFixture
const open = async (...script: Parameters<typeof openClient>) => {
  fixture = await openClient(...script)
  return fixture.client.audio.transcriptions
}
afterEach(() => fixture.deps.close())

const model = "svc-dengar"
const file = (bytes: Buffer = wav({ seconds: 3.5 })) => toFile(bytes, "speech.wav")
const usage = { type: "duration", seconds: 4, cost_idr: 6 }

describe("audio.transcriptions.create", () => {
  it("gives the text, and says what it cost", async () => {
    const transcriptions = await open()
    const reply = await transcriptions.create({ model, file: await file() })
    expect(reply).toEqual({ text: "Halo dunia.", usage })
    const { audio, ...request } = fixture.model.runs[0]!.request
    expect(request).toEqual({ format: "wav", seconds: 4, temperature: 0, segments: false })
    expect(Buffer.from(audio).equals(wav({ seconds: 3.5 }))).toBe(true)
    expect(fixture.deps.settlements).toMatchObject([
      { usage: { [model]: { audioSeconds: 4, inputTokens: 0 } } },
    ])
  })

  it("asks the model for what the request says", async () => {
    const transcriptions = await open()
    const said = { language: "en", prompt: "Rakit, ONNX", temperature: 0.4 }
    await transcriptions.create({ model, file: await file(mp3(5)), ...said })
    const { audio: _, ...request } = fixture.model.runs[0]!.request
    expect(request).toEqual({ format: "mp3", seconds: 1, segments: false, ...said })
  })

  it("gives times as verbose_json", async () => {
    const transcriptions = await open()
    const reply = await transcriptions.create({
      model,
      file: await file(),
      response_format: "verbose_json",
      timestamp_granularities: ["segment"],
    })
    expect(reply).toEqual({
      task: "transcribe",
      language: "id",
      duration: 4,
      text: "Halo dunia.",
      segments: [
        { id: 0, start: 0, end: 2, text: " Halo", avg_logprob: -0.25 },
        { id: 1, start: 2, end: 4, text: " dunia.", avg_logprob: -0.25 },
      ],
      usage,
    })
    expect(fixture.model.runs[0]?.request.segments).toBe(true)
  })

  it("gives text, and captions", async () => {
    const transcriptions = await open({ says: [" Halo", " ", " a --> b\n\nc"] })
    const ask = async (response_format: "text" | "srt" | "vtt") =>
      transcriptions.create({ model, file: await file(), response_format })
    expect(await ask("text")).toBe("Halo  a --> b\n\nc\n")
    expect(await ask("srt")).toBe(
      "1\n00:00:00,000 --> 00:00:02,000\nHalo\n\n2\n00:00:04,000 --> 00:00:06,000\na -> b\nc\n",
    )
    expect(await ask("vtt")).toBe(
      "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nHalo\n\n00:00:04.000 --> 00:00:06.000\na -> b\nc\n",
    )
  })

  it("streams what is said, then all of it", async () => {
    const transcriptions = await open()
    const stream = await transcriptions.create({ model, file: await file(), stream: true })
    const events: object[] = []
    for await (const event of stream) events.push(event)
    expect(events).toEqual([
      { type: "transcript.text.delta", delta: "Halo" },
      { type: "transcript.text.delta", delta: " dunia." },
      { type: "transcript.text.done", text: "Halo dunia.", usage },
    ])
  })
})

type Params = Partial<OpenAI.Audio.TranscriptionCreateParamsNonStreaming>
const verbose = "verbose_json" as const

describe("what is refused", () => {
  it("has its name, and costs nothing", async () => {
    const transcriptions = await open()
    const refused: readonly (readonly [Params | object, string, string])[] = [
      [
        { timestamp_granularities: ["word"], response_format: verbose },
        "unsupported_parameter",
        "",
      ],
      [{ timestamp_granularities: ["segment"] }, "unsupported_parameter", ""],
      [{ include: ["logprobs"] }, "unsupported_parameter", ""],
      [{ chunking_strategy: { type: "server_vad" } }, "unsupported_parameter", ""],
      [{ known_speaker_names: ["Budi"] }, "unsupported_parameter", ""],
      [{ response_format: "diarized_json" }, "invalid_request_error", ""],
      [{ stream: true, response_format: "srt" }, "unsupported_parameter", "response_format"],
      [{ temperature: 1.5 }, "invalid_request_error", ""],
      [{ language: "Bahasa" }, "invalid_request_error", ""],
      [{ prompt: "a".repeat(2_001) }, "invalid_request_error", ""],
      [{ model: "svc-nobody" }, "model_not_found", ""],
      [{ file: await file(Buffer.from("text")) }, "unsupported_file_type", ""],
      [{ file: await file(wav({ seconds: 61 })) }, "invalid_request_error", ""],
      [{ file: await file(wav({ seconds: 0 })) }, "invalid_request_error", ""],
      [{ file: await file(wav({ said: 1e6 })) }, "invalid_request_error", ""],
      [{ file: "text" }, "invalid_request_error", ""],
    ]
    for (const [more, code, param] of refused) {
      const body = { model, file: await file(), ...more } as typeof more & {
        model: string
        file: File
      }
      const name = param || Object.keys(more)[0]!
      await expect(transcriptions.create(body), `${name} ${code}`).rejects.toMatchObject({
        status: 400,
        code,
        param: expect.stringMatching(new RegExp(`^${name}`)),
      })
    }
    expect(fixture.model.runs).toHaveLength(0)
    expect(fixture.deps.settlements).toHaveLength(0)
  })

  it("lets what changes nothing pass", async () => {
    const transcriptions = await open()
    const more = { chunking_strategy: "auto", include: [], unknown: "field" } as object
    const reply = await transcriptions.create({ model, file: await file(), ...more })
    expect(reply.text).toBe("Halo dunia.")
  })

  it("without a file, or with two, says so, and with a field as one and as a list", async () => {
    await open()
    let fields: readonly (readonly [string, string])[] = []
    const send = (...files: readonly Buffer[]) => {
      const form = new FormData()
      form.append("model", model)
      for (const [name, value] of fields) form.append(name, value)
      for (const bytes of files) form.append("file", new Blob([new Uint8Array(bytes)]), "a.wav")
      return fetch(`${fixture.deps.url}/v1/audio/transcriptions`, {
        method: "POST",
        headers: { authorization: `Bearer ${goodKey}` },
        body: form,
      }).then((reply) => reply.json())
    }
    const wrong = { error: { code: "invalid_request_error", param: "file" } }
    expect(await send()).toMatchObject(wrong)
    expect(await send(wav(), wav())).toMatchObject(wrong)
    for (const [name, value] of Object.entries({ stream: "true", temperature: "0.5" })) {
      fields = [
        [name, value],
        [`${name}[]`, value],
      ]
      expect(await send(wav())).toMatchObject({
        error: { code: "invalid_request_error", param: name, message: `${name}: came twice` },
      })
    }
  })

  it("costs nothing when the model is busy, fails, or stops before its end", async () => {
    for (const [script, code] of [
      [{ refuse: apiError("backend_busy") }, "backend_busy"],
      [{ before: () => Effect.fail(apiError("backend_error")) }, "backend_error"],
    ] as const) {
      const transcriptions = await open(script)
      const asked = transcriptions.create({ model, file: await file() })
      await expect(asked).rejects.toMatchObject({ code })
      for (const { outcome, costMicros } of fixture.deps.settlements)
        expect([outcome, costMicros]).toEqual(["voided", 0n])
      await fixture.deps.close()
    }
    const transcriptions = await open({ withoutEnd: true })
    await expect(transcriptions.create({ model, file: await file() })).rejects.toMatchObject({
      code: "backend_error",
    })
    expect(fixture.deps.settlements).toMatchObject([{ outcome: "voided", costMicros: 0n }])
  })
})
