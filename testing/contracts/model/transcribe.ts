import { describe, expect, it } from "vitest"
import type { TranscribeRequest } from "../../../core/ports/audio.ts"
import { type OpenedModel, openOnce } from "./fixture.ts"

const rate = 16_000
const seconds = 2

/** A WAV file: a tone of 440 Hz that swells. */
const tone = (): Buffer => {
  const samples = Int16Array.from({ length: rate * seconds }, (_, at) =>
    Math.round((at / seconds) * Math.sin((2 * Math.PI * 440 * at) / rate)),
  )
  const data = Buffer.from(samples.buffer)
  const head = Buffer.alloc(44)
  head.write("RIFF....WAVEfmt ", 0, "latin1")
  head.writeUInt32LE(36 + data.length, 4)
  head.writeUInt32LE(16, 16)
  head.set([1, 0, 1, 0], 20)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(2 * rate, 28)
  head.set([2, 0, 16, 0], 32)
  head.write("data", 36, "latin1")
  head.writeUInt32LE(data.length, 40)
  return Buffer.concat([head, data])
}

const request = (more: Partial<TranscribeRequest> = {}): TranscribeRequest => ({
  audio: tone(),
  format: "wav",
  seconds,
  temperature: 0,
  segments: false,
  ...more,
})

/** `open` is called once. What the model hears in a tone is its own affair. */
export const transcribeModelContract = (
  name: string,
  open: () => Promise<OpenedModel<"transcribe">>,
): void => {
  describe(`${name} keeps the contract of transcription models`, { timeout: 120_000 }, () => {
    const { ask, expectStops } = openOnce(open)

    it("hears the same in the same file, for the seconds that it has", async () => {
      const { events, bound, used } = await ask(request())
      expect(events.map(({ type }) => type)).toEqual([
        ...events.slice(1).map(() => "text"),
        "finish",
      ])
      expect([bound.audioSeconds, used.audioSeconds]).toEqual([seconds, seconds])
      expect((await ask(request())).events).toEqual(events)
    })

    it("says when each text is said, where that is wanted", async () => {
      const { events } = await ask(request({ segments: true, language: "en", prompt: "Halo" }))
      let before = 0
      for (const event of events) {
        if (event.type === "finish") continue
        const { start, end } = event.span!
        expect(start >= before && end >= start).toBe(true)
        before = start
      }
      expect(events.at(-1)?.type).toBe("finish")
    })

    it("stops working when it is interrupted, or nobody reads on", async () => {
      await expectStops(request(), () => ask(request()))
    })
  })
}
