import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { interpolate, retype } from "./interpolate.ts"

describe("interpolate", () => {
  it("remembers which paths came from the environment", () => {
    const { value, fromEnvironment } = interpolate({ a: ["${X}", "y"] }, { X: "1" })
    expect(value).toEqual({ a: ["1", "y"] })
    expect([...fromEnvironment]).toEqual(['["a",0]'])
  })

  it("changes nothing in text without references", () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes("${")),
        (text) =>
          interpolate({ text }, {}).value !== undefined &&
          (interpolate({ text }, {}).value as { text: string }).text === text,
      ),
    )
  })

  it("never interprets what a variable holds", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        (secret) => (interpolate("${X}", { X: secret }).value as string) === secret,
      ),
    )
  })
})

describe("retype", () => {
  it("reads numbers and booleans, and leaves the rest", () => {
    expect(["8080", "-1.5", "true", "1e5", "0x1", "", "abc"].map(retype)).toEqual([
      8080,
      -1.5,
      true,
      "1e5",
      "0x1",
      "",
      "abc",
    ])
  })
})
