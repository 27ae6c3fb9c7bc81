import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { apiError, PortError } from "../../core/errors.ts"
import { wordSafety } from "./testing/open-client.ts"
import { openEndpoints } from "./testing/open-endpoints.ts"

type Opened = ReturnType<typeof openEndpoints>
const lastCall = ({ fixture }: Opened) => fixture.billing.calls.at(-1)
const spentIdr = ({ fixture }: Opened) =>
  fixture.billing.calls.reduce((sum, { costMicros }) => sum + Number(costMicros) / 1e6, 0)
const refusals = async ({ metrics }: Opened) =>
  (await metrics.expose())
    .split("\n")
    .filter((line) => line.startsWith("rakit_safety_refusals_total{"))

describe("a picture", () => {
  it("costs the entry's price, and half of it in a batch", async () => {
    const opened = openEndpoints()
    const realtime = await opened.generate({})
    expect([realtime.headers["x-cost-idr"], realtime.costMicros]).toEqual(["750", 750_000_000n])
    const line = opened.fixture.input(
      { model: "svc-iris", prompt: "a" },
      { priority: "batch", priceFactor: 0.5, parent: "batch_1" },
    )
    const { settlement } = await Effect.runPromise(
      opened.fixture.path.runUnsettled(opened.generations, line),
    )
    expect(settlement).toMatchObject({ outcome: "settled", costMicros: 375_000_000n })
  })

  it("that passes is charged, and was checked before it was sent", async () => {
    const { safety, asked } = wordSafety({})
    const opened = openEndpoints({}, safety)
    const { status, events } = await opened.generate({ stream: true, partial_images: 2 })
    expect([status, events.length, asked.length, spentIdr(opened)]).toEqual([200, 3, 4, 750])
    expect(asked[0]).toBe("Sebuah apel")
  })

  it.each([
    ["fails", apiError("backend_error"), 500],
    ["is too slow", apiError("backend_timeout"), 504],
  ])("costs nothing when the model %s", async (_, error, status) => {
    const opened = openEndpoints({
      before: (step) => (step === 3 ? Effect.fail(error) : Effect.void),
    })
    expect(await opened.generate({})).toMatchObject({
      status,
      json: { code: error.code },
      headers: { "x-cost-idr": "0" },
    })
    expect([lastCall(opened)?.state, spentIdr(opened)]).toEqual(["voided", 0])
  })

  it("that takes long says in the log how far it is, without its prompt", async () => {
    const opened: Opened = openEndpoints({
      before: () => Effect.sync(() => opened.fixture.clock.advance(4_000)),
    })
    const { log } = opened.fixture
    expect(await opened.generate({ num_steps: 6 })).toMatchObject({ status: 200 })
    const said = log.lines.filter(({ event }) => event === "image.progress")
    // 4 s a step: the first one after 10 s is the third, and the next one 12 s later
    expect(said.map(({ fields }) => [fields.model, fields.step, fields.steps])).toEqual([
      ["svc-iris", 3, 6],
      ["svc-iris", 6, 6],
    ])
    expect(said[0]?.fields.call_id).toBeTruthy()
    expect(JSON.stringify(log.lines)).not.toContain("apel")
  })

  it("costs nothing when its deadline passes while it is checked", async () => {
    const { safety } = wordSafety({})
    const opened = openEndpoints(
      {},
      {
        ...safety,
        picture: (bytes) =>
          Effect.tap(safety.picture(bytes), () =>
            Effect.sync(() => opened.fixture.clock.advance(10 * 60_000)),
          ),
      },
    )
    expect(await opened.generate({})).toMatchObject({
      status: 504,
      json: { code: "backend_timeout" },
    })
    expect([lastCall(opened)?.state, spentIdr(opened)]).toEqual(["voided", 0])
  })

  it("costs nothing when the model is busy, or ends without it", async () => {
    const busy = openEndpoints({ refuse: apiError("backend_busy") })
    expect(await busy.generate({})).toMatchObject({ status: 429, json: { code: "backend_busy" } })
    const none = openEndpoints({ withoutPicture: true })
    expect(await none.generate({})).toMatchObject({ status: 500, json: { code: "backend_error" } })
    expect([spentIdr(busy), spentIdr(none)]).toEqual([0, 0])
    const streamed = none.generate({ stream: true, partial_images: 1 })
    expect(await streamed).toMatchObject({ status: 500, json: { code: "backend_error" } })
    expect(spentIdr(none)).toBe(0)
  })
})

describe("what safety refuses", () => {
  it("of prompts is not planned, charged or shown to the model, dry runs included", async () => {
    const { safety } = wordSafety({ prompt: "apel" })
    const opened = openEndpoints({}, safety)
    for (const input of [{}, { dryRun: true }])
      expect(await opened.generate({}, input)).toMatchObject({
        status: 400,
        json: { code: "content_policy_violation", param: "prompt" },
      })
    expect(await opened.generate({ prompt: "pisang" }, { dryRun: true })).toMatchObject({
      status: 200,
      json: { object: "dry_run", model: "svc-iris", cost_idr: 750, would_succeed: true },
    })
    expect(opened.model.runs).toHaveLength(0)
    expect(opened.fixture.billing.calls.filter(({ costMicros }) => costMicros > 0n)).toEqual([])
    expect(await refusals(opened)).toEqual([
      'rakit_safety_refusals_total{stage="prompt",category="words"} 2',
    ])
    expect(JSON.stringify(opened.fixture.log.lines)).not.toContain("apel")
  })

  it("of pictures is not charged, whole or streamed", async () => {
    const { safety } = wordSafety({ picture: true })
    const opened = openEndpoints({}, safety)
    for (const more of [{}, { stream: true }]) {
      const { json, events, status } = await opened.generate(more)
      expect([status, json, events]).toMatchObject([400, { code: "content_policy_violation" }, []])
      expect([lastCall(opened)?.state, lastCall(opened)?.costMicros]).toEqual(["voided", 0n])
    }
    // the model has made both, and metered them
    expect(opened.model.runs.map(({ steps }) => steps)).toEqual([4, 4])
    expect(await refusals(opened)).toEqual([
      'rakit_safety_refusals_total{stage="picture",category="nudity"} 2',
    ])
  })

  it("of previews is left out, and the picture decides about the call", async () => {
    const { safety, asked } = wordSafety({ picture: (before) => before < 2 })
    const opened = openEndpoints({}, safety)
    const answer = await opened.generate({ stream: true, partial_images: 3 })
    expect(answer.events).toMatchObject([
      { type: "image_generation.partial_image", partial_image_index: 0 },
      { type: "image_generation.completed", usage: { cost_idr: 750 } },
    ])
    expect([answer.status, asked.length, spentIdr(opened)]).toEqual([200, 5, 750])
    expect(await refusals(opened)).toEqual([
      'rakit_safety_refusals_total{stage="preview",category="nudity"} 2',
    ])
  })

  it("of the picture ends a stream whose previews passed, and costs nothing", async () => {
    const { safety } = wordSafety({ picture: (before) => before === 2 })
    const opened = openEndpoints({}, safety)
    const { json } = await opened.generate({ stream: true, partial_images: 2 })
    expect(json).toMatchObject({ code: "content_policy_violation" })
    expect([lastCall(opened)?.state, spentIdr(opened)]).toEqual(["voided", 0])
  })

  it("of previews that can't be judged is left out, too", async () => {
    const failing = Effect.fail(new PortError({ port: "image-safety", message: "no model" }))
    let asked = 0
    const opened = openEndpoints(
      {},
      {
        prompt: () => Effect.succeed(undefined),
        picture: () => Effect.suspend(() => (asked++ === 0 ? failing : Effect.succeed(undefined))),
      },
    )
    const { events } = await opened.generate({ stream: true, partial_images: 1 })
    expect(events).toMatchObject([{ type: "image_generation.completed" }])
    expect(opened.fixture.log.lines).toMatchObject([{ event: "image_safety.failed" }])
  })

  it("can't be known when it fails: then nothing is made or charged", async () => {
    const failing = Effect.fail(new PortError({ port: "image-safety", message: "no model" }))
    for (const safety of [
      { prompt: () => failing, picture: () => Effect.succeed(undefined) },
      { prompt: () => Effect.succeed(undefined), picture: () => failing },
    ]) {
      const opened = openEndpoints({}, safety)
      expect(await opened.generate({})).toMatchObject({
        status: 500,
        json: { code: "internal_error" },
      })
      expect(spentIdr(opened)).toBe(0)
      expect(opened.fixture.log.lines).toMatchObject([{ event: "image_safety.failed" }])
    }
  })
})
