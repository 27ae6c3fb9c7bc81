import { Effect, Schema } from "effect"
import { expect, it } from "vitest"
import { makeIds } from "../../../core/index.ts"
import { fakeCatalogue, fakeClock, fakeEmbedModel } from "../../../testing/index.ts"
import { Settings } from "../settings.ts"
import { embedTexts } from "./embed-texts.ts"

const clock = fakeClock()
const deps = {
  clock,
  ids: makeIds(clock.nowMs),
  settings: Schema.decodeUnknownSync(Settings)({}),
  catalogue: fakeCatalogue(fakeEmbedModel({ dimensions: 8, brokenWord: "rusak" })),
}
const embed = (...texts: readonly string[]) =>
  Effect.runPromise(embedTexts(deps, { account: "acct_1", mode: "live" }, texts))

it("embeds texts in their order; none where one vector can't be compared", async () => {
  const [whole, alone] = [await embed("kota tua", "kota baru"), await embed("kota baru")]
  expect(whole.space).toEqual({ id: "fake-words-v1", dimensions: 8 })
  expect(whole.vectors[1]).toEqual(alone.vectors[0])
  await expect(embed("kota tua", "kota rusak")).rejects.toMatchObject({ code: "backend_error" })
})
