import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { makeScript, seeded } from "./script.ts"
import { Fault, operations } from "./settings.ts"

const faultOf = (fields: object): Fault =>
  Schema.decodeUnknownSync(Fault)({ port: "storage", fault: "fail", ...fields })
const played = (faults: readonly Fault[], calls: number, operation = "put", seed = 1) => {
  const next = makeScript(faults, seed)
  return Array.from({ length: calls }, () => next("storage", operation)?.fault ?? "-").join(" ")
}

describe("a script of faults", () => {
  it("lets `after` calls pass, has `times` faults, and names port and operation", () => {
    const fault = faultOf({ operation: "put", after: 2, times: 2 })
    expect(played([fault], 6)).toBe("- - fail fail - -")
    expect(played([fault], 6, "get")).toBe("- - - - - -")
    expect(makeScript([faultOf({})], 1)("queue", "put")).toBeUndefined()
  })

  it("gives a call the first fault that is due, and the next one its turn after that", () => {
    const faults = [faultOf({ fault: "full", times: 1 }), faultOf({ fault: "slow" })]
    expect(played(faults, 3)).toBe("full slow slow")
  })

  it("is the same for the same seed, as often as its probability says", () => {
    const faults = [faultOf({ probability: 0.3 })]
    const first = played(faults, 2000)
    expect(played(faults, 2000)).toBe(first)
    expect(played(faults, 2000, "put", 2)).not.toBe(first)
    const share = first.split(" ").filter((word) => word === "fail").length / 2000
    expect(share).toBeGreaterThan(0.26)
    expect(share).toBeLessThan(0.34)
    expect(played([faultOf({ probability: 0 })], 50)).not.toContain("fail")
    const numbers = Array.from({ length: 1000 }, seeded(7))
    expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true)
  })

  it("begins when the plugins have started, but for models and what it names of the start", () => {
    let isOver = false
    const faults = [faultOf({ after: 1 }), faultOf({ port: "model", operation: "open" })]
    const next = makeScript(faults, 1, () => isOver)
    expect(next("model", "open")?.fault).toBe("fail")
    for (let calls = 0; calls < 5; calls++) expect(next("storage", "put")).toBeUndefined()
    isOver = true
    expect(next("storage", "put")).toBeUndefined()
    expect(next("storage", "put")?.fault).toBe("fail")
  })

  it("refuses an operation that its port does not have, and knows all checks of /readyz", () => {
    expect(() => faultOf({ operation: "putt" })).toThrow(
      "the port storage has no operation 'putt', but put, get, stat",
    )
    expect(() => faultOf({ port: "model", operation: "put" })).toThrow("open, plan, run")
    expect(() => faultOf({ port: "health", operation: "storage" })).not.toThrow()
    for (const [port, names] of Object.entries(operations))
      for (const operation of names) expect(() => faultOf({ port, operation })).not.toThrow()
  })

  it("leaves the start alone unless it is named", () => {
    const migrating = (fields: object) =>
      makeScript([faultOf({ port: "database", ...fields })], 1)("database", "migrate")?.fault
    expect(migrating({})).toBeUndefined()
    expect(migrating({ operation: "migrate" })).toBe("fail")
  })
})
