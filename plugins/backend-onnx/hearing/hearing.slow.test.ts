import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { afterAll, describe, expect, test } from "vitest"
import type { Precision } from "../onnx/linear.ts"
import { heardBy, hearingFolder, sound } from "../testing/hearing-fixtures.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { hearingConfig } from "./hearing-config.ts"
import { openHearingEngine } from "./open-hearing-engine.ts"
import type { TranscribeJobEvent, TranscribeJobRequest } from "./transcribe-job.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-hearing-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const models = ["whisper", "whisper-128"]

const open = (name: string, precision: Precision = "fp32") => {
  const sizes = { kvBytes: 0, prefixCacheBytes: 0, speculation: false, slots: 4, threads: 1 }
  const path = hearingFolder(name)
  const spec: EngineSpec = { kind: "hearing", path, graphs: root, precision, ...sizes }
  return openHearingEngine(spec, () => {})
}

const transcribed = async (
  engine: Awaited<ReturnType<typeof open>>,
  request: Partial<TranscribeJobRequest>,
) => {
  const events: TranscribeJobEvent[] = []
  const whole = { samples: sound(1), temperature: 0, seed: 1, segments: false, ...request }
  const job = engine.start(whole, (event) => events.push(event))
  while (!(await job.next()));
  return {
    texts: events.filter((event) => event.type === "text"),
    finish: events.at(-1),
    stages: events.flatMap((event) => (event.type === "time" ? [event.stage] : [])),
  }
}

const nothing = async () => {}

describe.each(models)("the tiny Whisper '%s'", (name) => {
  const expected = heardBy(name)
  const config = hearingConfig(hearingFolder(name))
  const begin = config.tokens.firstTimestamp!
  const tokenizer = Tokenizer.fromString(
    readFileSync(join(hearingFolder(name), "tokenizer.json"), "utf8"),
  )
  const textOf = (tokens: readonly number[]) =>
    tokenizer.decode(
      tokens.filter((token) => token < begin),
      true,
    )

  test("takes control tokens that a prompt spells for nothing", async () => {
    const engine = await open(name)
    const heard = (prompt: string) =>
      transcribed(engine, { prompt, language: "en", segments: true })
    const plain = await heard("a b")
    const spelt = "<|startoftranscript|><|en|><|translate|><|endoftext|>"
    expect(tokenizer.tokenToId("<|startoftranscript|>")).toBe(config.tokens.start)
    expect((await heard(`a b${spelt}`)).texts).toEqual(plain.texts)
    await engine.close()
  })

  test("makes the frames of transformers' feature extractor", async () => {
    const { HearingSession } = await import("./hearing-session.ts")
    const engine = await open(name)
    const session = await HearingSession.open(join(root, engine.info.digest), 1, config)
    const { values, count } = await session.framesOf(sound(expected.seconds), nothing)
    const at = [0, 1, 33, 70, count - 1]
    for (const [i, frame] of at.entries())
      for (const [bin, value] of expected.features[i]!.entries())
        expect(values[bin * count + frame]).toBeCloseTo(value, 3)
    await session.close()
    await engine.close()
  })

  test.each([
    ["fp32", 2e-3],
    ["int8", 0.1],
  ] as const)(
    "has the logits of transformers (%s), at once and one by one",
    async (precision, tolerance) => {
      const { HearingSession } = await import("./hearing-session.ts")
      const engine = await open(name, precision)
      const session = await HearingSession.open(join(root, engine.info.digest), 1, config)
      const frames = await session.framesOf(sound(expected.seconds), nothing)
      const heard = await session.hear(frames, 0)
      const { ids } = expected
      const all = await session.write(
        session.again(heard),
        ids,
        ids.map((_, i) => i),
      )
      const single: Float32Array[] = []
      for (const id of ids) single.push(...(await session.write(heard, [id])))
      const scale = Math.max(...expected.logits.flat().map(Math.abs))
      for (const [i, row] of expected.logits.entries())
        for (const [token, value] of row.entries()) {
          expect(Math.abs(all[i]![token]! - value) / scale).toBeLessThan(tolerance)
          expect(Math.abs(single[i]![token]! - value) / scale).toBeLessThan(tolerance)
        }
      await session.close()
      await engine.close()
    },
  )

  test.each(expected.cases)(
    "writes what transformers writes of $seconds s, times $times",
    async ({ seconds, times, language, prompt, tokens, segments }) => {
      const engine = await open(name)
      const { texts, finish } = await transcribed(engine, {
        samples: sound(seconds),
        segments: times,
        ...(language !== undefined && { language }),
        ...(prompt !== undefined && { prompt }),
      })
      if (times) {
        const wanted = []
        for (const one of segments) {
          const text = await textOf(one.tokens)
          if (text.trim() !== "") wanted.push({ ...one, text })
        }
        expect(texts.map(({ text }) => text)).toEqual(wanted.map(({ text }) => text))
        for (const [i, { start, end }] of wanted.entries()) {
          expect(texts[i]!.span!.start).toBeCloseTo(Math.min(seconds, start), 2)
          expect(texts[i]!.span!.end).toBeCloseTo(Math.min(seconds, end), 2)
        }
      } else expect(texts.map(({ text }) => text)).toEqual([await textOf(tokens)])
      if (language !== undefined) expect(finish).toEqual({ type: "finish", language })
      else
        expect(Object.keys(config.tokens.languages)).toContain(
          (finish as { language?: string }).language,
        )
      await engine.close()
    },
  )

  test("two sounds at once are each as alone, and a cancelled one ends", async () => {
    const engine = await open(name)
    const alone = await transcribed(engine, { language: "en", segments: true })
    const beside = await Promise.all(
      [1, 2].map(() => transcribed(engine, { language: "en", segments: true })),
    )
    for (const one of beside) expect(one.texts).toEqual(alone.texts)
    const events: unknown[] = []
    const job = engine.start(
      { samples: sound(1), temperature: 0, seed: 1, segments: false },
      (event) => events.push(event),
    )
    await job.next()
    job.cancel()
    await expect(job.next()).rejects.toThrow("cancelled")
    expect(events).toEqual([])
    await engine.close()
  })

  test("says how long it took, and samples by its seed", async () => {
    const engine = await open(name)
    const hot = (seed: number) => transcribed(engine, { language: "en", temperature: 1, seed })
    const [first, again, other] = [await hot(1), await hot(1), await hot(2)]
    expect(first.stages).toEqual(["encode", "decode"])
    expect(again.texts).toEqual(first.texts)
    expect(other.texts).not.toEqual(first.texts)
    await engine.close()
  })
})
