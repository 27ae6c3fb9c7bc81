import "reflect-metadata/lite"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { callPathFixture, fakeTranscribeModel } from "../../testing/index.ts"
import { plugin } from "./plugin.ts"
import { wav } from "./testing/sounds.ts"

it("registers its endpoint, which takes JSON, too, and keeps the length that is set", async () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture([fakeTranscribeModel()])
  provide(container, Tokens.catalogue, fixture.catalogue)
  plugin.create({ maxSeconds: 2 }).register?.(container)
  const [endpoint] = resolveAll(container, Tokens.endpoints)
  expect(endpoint).toMatchObject({
    id: "audio.transcriptions",
    method: "POST",
    path: "/v1/audio/transcriptions",
    access: "key",
    creates: true,
  })
  const ask = (seconds: number, more: object = {}) => {
    const body = { model: "svc-dengar", file: wav({ seconds }).toString("base64") }
    return fixture.ask(endpoint!, body, more)
  }
  expect(await ask(2)).toMatchObject({
    status: 200,
    json: { text: "Halo dunia.", usage: { seconds: 2, cost_idr: 3 } },
  })
  expect(await ask(2, { dryRun: true })).toMatchObject({
    status: 200,
    json: { object: "dry_run", cost_idr: 3, would_succeed: true },
  })
  expect(await ask(2.1)).toMatchObject({ status: 400, json: { param: "file" } })
})
