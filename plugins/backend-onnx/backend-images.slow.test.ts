import { Effect } from "effect"
import { expect, test } from "vitest"
import { imageModelContract } from "../../testing/contracts/model.ts"
import { diffusionFolder } from "./diffusion/transformers/testing/run-part.ts"
import { collect, context, openBackend } from "./testing/open-backend.ts"

for (const name of ["sd3", "flux", "flux2"])
  imageModelContract(`the checkpoint '${name}'`, async () => {
    const fixture = openBackend()
    const loaded = await fixture.open("image", diffusionFolder(name))
    return { id: "m", loaded, close: fixture.close }
  })

test("offload draws the same, one picture after the other", { timeout: 120_000 }, async () => {
  const fixture = openBackend()
  const drawnBy = async (offload: boolean) => {
    const options = { precision: "fp32", offload }
    const { task } = await fixture.open("image", diffusionFolder("flux"), { options })
    const one = async () => {
      const request = {
        prompt: "a cat",
        images: [],
        width: 64,
        height: 64,
        steps: 3,
        seed: 1,
        guidanceScale: 1,
      }
      const last = (await collect(await Effect.runPromise(task.plan(request, context())))).at(-1)
      return last?.type === "image" && Buffer.from(last.bytes).toString("base64")
    }
    return Promise.all([one(), one()])
  }
  const [wanted] = await drawnBy(false)
  expect(wanted).toMatch(/^iVBOR/)
  expect(await drawnBy(true)).toEqual([wanted, wanted])
  await fixture.close()
})
