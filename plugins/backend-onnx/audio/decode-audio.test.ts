import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { fixtureFolder } from "../testing/fixtures.ts"
import { type WavOptions, wavOf } from "../testing/wav-of.ts"
import decodeAudio, { type DecodeAudioInput } from "./decode-audio-job.ts"
import { resampled } from "./resample.ts"

const tone = (hertz: number, rate: number, seconds = 0.5, loud = 0.5): Float32Array =>
  Float32Array.from(
    { length: seconds * rate },
    (_, i) => loud * Math.sin((2 * Math.PI * hertz * i) / rate),
  )

const decoded = async (audio: Uint8Array, more: Partial<DecodeAudioInput> = {}) => {
  const made = await decodeAudio({ audio, format: "wav", rate: 16_000, maxSeconds: 2, ...more })
  if ("refused" in made) throw new Error(made.refused)
  return made.samples
}

/** The largest difference, the ends aside, where a filter reads beyond the sound. */
const gap = (a: Float32Array, b: Float32Array, ends = 0): number => {
  expect(a.length).toBe(b.length)
  let most = 0
  for (let i = ends; i < a.length - ends; i++) most = Math.max(most, Math.abs(a[i]! - b[i]!))
  return most
}

describe("WAV", () => {
  const kinds: readonly (WavOptions & { readonly levels: number })[] = [
    { kind: 1, bits: 8, levels: 2 ** 7 },
    { kind: 1, bits: 16, levels: 2 ** 15 },
    { kind: 1, bits: 24, levels: 2 ** 23 },
    { kind: 1, bits: 32, levels: 2 ** 24 },
    { kind: 3, bits: 32, levels: 2 ** 24 },
    { kind: 3, bits: 64, levels: 2 ** 24 },
    { kind: 1, bits: 24, channels: 3, isExtensible: true, levels: 2 ** 23 },
  ]
  test.each(kinds)("of kind $kind and $bits bits is read to a level", async (options) => {
    const samples = tone(440, 16_000)
    const made = await decoded(wavOf(samples, options))
    expect(gap(made, samples)).toBeLessThan(1.6 / options.levels)
  })

  test("what is no number is silence, and too loud is cut", async () => {
    const samples = [0.25, Number.NaN, Number.POSITIVE_INFINITY, 7, -7]
    const made = await decoded(wavOf(samples, { kind: 3, bits: 32 }))
    expect([...made]).toEqual([0.25, 0, 0, 1, -1])
  })

  test.each([
    ["without samples", wavOf([]), "no samples"],
    ["compressed", wavOf([0, 0]).fill(2, 20, 21), "no samples"],
    ["without channels", wavOf([0, 0]).fill(0, 22, 24), "no samples"],
    ["of too many channels", wavOf([0, 0], { channels: 9 }), "no samples"],
    ["with fewer samples a second than sound has", wavOf([0, 0], { rate: 1 }), "no samples"],
    ["with a rate whose filter is huge", wavOf([0, 0], { rate: 100_000_007 }), "no samples"],
    ["longer than its header says", wavOf(tone(440, 16_000, 4)), "more than 2 s"],
  ])("%s is refused", async (_, audio, why) => {
    await expect(decoded(audio)).rejects.toThrow(why)
  })
})

describe("other rates", () => {
  test.each([8_000, 11_025, 15_995, 22_050, 44_100, 44_101, 48_000, 96_000])(
    "%i samples a second become 16,000 of the same tone",
    async (rate) => {
      const made = await decoded(wavOf(tone(440, rate, 0.4), { rate, kind: 3, bits: 32 }))
      expect(gap(made, tone(440, 16_000, 0.4), 100)).toBeLessThan(1e-3)
    },
  )

  test("what is above the half of the new rate is gone", () => {
    const made = resampled(tone(11_000, 44_100), 44_100, 16_000)
    expect(gap(made, new Float32Array(made.length), 100)).toBeLessThan(1e-3)
  })
})

describe("MP3", () => {
  const file = readFileSync(join(fixtureFolder("hearing"), "tone.mp3"))

  test("is the tone that was encoded, with the codec's delay", async () => {
    const made = await decoded(file, { format: "mp3" })
    const wanted = tone(440, 16_000, 0.8)
    // LAME's encoder and the decoder delay by some 1,100 samples at 44,100 Hz
    const gaps = Array.from({ length: 36 }, (_, shift) => {
      const first = 4_000
      return gap(
        made.slice(first + shift, first + shift + 4_000),
        wanted.slice(first, first + 4_000),
      )
    })
    expect(made.length / 16_000).toBeCloseTo(0.8, 0)
    expect(Math.min(...gaps)).toBeLessThan(0.05)
  })

  test("of which nothing can be decoded is refused", async () => {
    await expect(decoded(Buffer.alloc(2_000, 0x55), { format: "mp3" })).rejects.toThrow(
      "no samples",
    )
  })
})
