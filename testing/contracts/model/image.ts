import { describe, expect, it } from "vitest"
import type { ImageEvent } from "../../../core/ports/image.ts"
import type { ImageRequest } from "../../../core/ports/model.ts"
import { type OpenedModel, openOnce } from "./fixture.ts"

const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1")

/** Width and height of a PNG file, from its header. */
const sizeOf = (bytes: Uint8Array): readonly [number, number] => {
  const file = Buffer.from(bytes)
  expect(file.subarray(0, 8)).toEqual(signature)
  return [file.readUInt32BE(16), file.readUInt32BE(20)]
}

const request = (more: Partial<ImageRequest> = {}): ImageRequest => ({
  prompt: "a red apple",
  images: [],
  width: 80,
  height: 64,
  steps: 4,
  seed: 3,
  guidanceScale: 1,
  ...more,
})

const pictureIn = (events: readonly ImageEvent[]): Uint8Array => {
  const last = events.at(-1)
  if (last?.type !== "image") throw new Error("the last event is no picture")
  return last.bytes
}

const stepsIn = (events: readonly ImageEvent[]) =>
  events.flatMap((event) => (event.type === "step" ? [event] : []))

/** `open` is called once. */
export const imageModelContract = (
  name: string,
  open: () => Promise<OpenedModel<"image">>,
): void => {
  describe(`${name} keeps the contract of image models`, { timeout: 120_000 }, () => {
    const { ask, refusal, expectStops, loaded } = openOnce(open)
    const drawn = async (more: Partial<ImageRequest> = {}) =>
      Buffer.from(pictureIn((await ask(request(more))).events))

    it("says each step, then gives one PNG of the size that was asked, for one image", async () => {
      const { events, bound, used } = await ask(request())
      expect(stepsIn(events).map(({ step, steps }) => [step, steps])).toEqual(
        [1, 2, 3, 4].map((step) => [step, 4]),
      )
      expect(events).toHaveLength(5)
      expect(sizeOf(pictureIn(events))).toEqual([80, 64])
      expect([bound.images, used.images]).toEqual([1, 1])
    })

    it("gives the same bytes again, also beside others, and other bytes with another seed", async () => {
      const alone = await drawn()
      const [same, other, again] = await Promise.all([drawn(), drawn({ seed: 4 }), drawn()])
      expect(same.equals(alone)).toBe(true)
      expect(again.equals(alone)).toBe(true)
      expect(other.equals(alone)).toBe(false)
    })

    it("sends previews only when asked, at most so many, and draws the same", async () => {
      const plain = await ask(request())
      expect(stepsIn(plain.events).filter(({ preview }) => preview)).toEqual([])
      const { events } = await ask(request({ previews: 2 }))
      const previews = stepsIn(events).flatMap(({ preview }) => preview ?? [])
      expect(previews.length).toBeGreaterThan(0)
      expect(previews.length).toBeLessThanOrEqual(2)
      for (const preview of previews) sizeOf(preview)
      expect(Buffer.from(pictureIn(events)).equals(Buffer.from(pictureIn(plain.events)))).toBe(true)
    })

    it("edits a picture, or refuses it by name", async () => {
      const edit = request({ images: [await drawn()], strength: 0.75 })
      if (!loaded().modalities.includes("image")) {
        expect(await refusal(edit)).toMatchObject({ code: "unsupported_parameter" })
        return
      }
      const { events, used } = await ask(edit)
      expect(sizeOf(pictureIn(events))).toEqual([80, 64])
      expect(used.images).toBe(1)
      expect(loaded().capabilities).toContain("image_editing")
    })

    it("stops working when it is interrupted, or nobody reads on", async () => {
      await expectStops(request({ steps: 50 }), () => ask(request()))
    })
  })
}
