import { expect, it } from "vitest"
import { fakeClock } from "../../../testing/index.ts"
import type { UpstreamOptions } from "../options.ts"
import { choose } from "./choose.ts"
import type { Connection } from "./connection.ts"
import { failure } from "./failure.ts"
import { Upstream } from "./upstream.ts"

const rules = { ejectAfter: 2, ejectMs: 1_000, slowStartMs: 10_000 }
const connection: Connection = {
  host: "h",
  call: () => {
    throw new Error("nothing is sent")
  },
}
const openAll = (...weights: number[]) => {
  const clock = fakeClock()
  const upstreams = weights.map((weight, index) => {
    const options: UpstreamOptions = {
      url: "http://h",
      model: "m",
      weight,
      kind: "vllm",
      keeps: [],
      lacks: [],
    }
    return new Upstream(`u${index + 1}`, options, connection, rules, clock)
  })
  return { clock, upstreams }
}
const counted = (upstreams: readonly Upstream[], keys: readonly (string | undefined)[]) => {
  const counts = new Map(upstreams.map(({ name }) => [name, 0]))
  for (const key of keys) {
    const { name } = choose(upstreams, key)!
    counts.set(name, counts.get(name)! + 1)
  }
  return [...counts.values()]
}
const keys = Array.from({ length: 2_000 }, (_, index) => `prompt ${index}`)

it("sends a prompt's head to the same upstream, and few others elsewhere when one is added", () => {
  const { upstreams } = openAll(1, 1, 1, 1)
  const three = upstreams.slice(0, 3)
  const moved = keys.filter((key) => choose(three, key) !== choose(upstreams, key))
  expect(moved.every((key) => choose(upstreams, key) === upstreams[3])).toBe(true)
  expect(moved.length / keys.length).toBeGreaterThan(0.2)
  expect(moved.length / keys.length).toBeLessThan(0.3)
})

it("divides prompts by weight", () => {
  const [one, two] = counted(openAll(1, 3).upstreams, keys)
  expect(two! / one!).toBeGreaterThan(2.5)
  expect(two! / one!).toBeLessThan(3.6)
})

it("bounds the load of the upstream that one head belongs to", () => {
  const { upstreams } = openAll(1, 1)
  for (let request = 0; request < 40; request++) choose(upstreams, "the same")!.outstanding++
  const most = Math.max(...upstreams.map(({ outstanding }) => outstanding))
  expect(most).toBeGreaterThan(20)
  expect(most).toBeLessThanOrEqual(26)
})

it("takes the one with the least work for its weight where there is no head", () => {
  const { upstreams } = openAll(1, 2)
  for (let request = 0; request < 30; request++) choose(upstreams, undefined)!.outstanding++
  expect(upstreams.map(({ outstanding }) => outstanding)).toEqual([10, 20])
})

it("ejects after failures in a row, for twice as long each time, and lets it back slowly", () => {
  const { clock, upstreams } = openAll(1, 1)
  const [one, two] = upstreams as [Upstream, Upstream]
  const why = failure("unavailable", "boom")
  expect([one.failed(why), one.failed(why)]).toEqual([false, true])
  expect(counted(upstreams, keys.slice(0, 50))).toEqual([0, 50])
  clock.advance(1_001)
  expect(one.isEjected()).toBe(false)
  expect(one.share()).toBeCloseTo(0.1)
  clock.advance(5_000)
  expect(one.share()).toBeCloseTo(0.5, 2)
  clock.advance(5_000)
  expect(one.share()).toBe(1)
  one.failed(why)
  one.succeeded()
  expect(one.failed(why)).toBe(false)
  expect(one.failed(why)).toBe(true)
  clock.advance(1_500)
  expect(one.isEjected()).toBe(true)
  // where none is well, they are tried all the same
  two.checked("its certificate has expired")
  expect(choose(upstreams, "x")).toBeDefined()
})

it("pauses for Retry-After without ejecting, and a wrong request speaks against nobody", () => {
  const { clock, upstreams } = openAll(1)
  const [one] = upstreams as [Upstream]
  for (let time = 0; time < 9; time++) one.failed(failure("refused", "odd"))
  expect(one.isEjected()).toBe(false)
  one.failed(failure("busy", "429", { retryAfterMs: 3_000 }))
  expect([choose(upstreams, undefined), one.isEjected()]).toEqual([undefined, false])
  clock.advance(3_000)
  expect(choose(upstreams, undefined)).toBe(one)
})

it("one whose answers break off is ejected, also where each had begun well", () => {
  const { upstreams } = openAll(1, 1)
  const [broken] = upstreams
  const cut = failure("cut", "the answer has no end")
  const ejects = () => broken!.failed(cut, broken!.succeeded())
  expect([ejects(), broken!.isEjected(), ejects(), broken!.isEjected()]).toEqual([
    false,
    false,
    true,
    true,
  ])
})
