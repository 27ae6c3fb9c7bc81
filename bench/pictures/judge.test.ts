import { describe, expect, it } from "vitest"
import { type ColourName, colourName, labOf } from "./colour-names.ts"
import { judged, type Wanted } from "./judge.ts"
import { lookOf } from "./looks.ts"
import { recalls } from "./matches.ts"
import { type Picture, seenIn } from "./pieces.ts"

const paints = {
  red: [222, 38, 44],
  orange: [247, 128, 28],
  yellow: [252, 212, 44],
  green: [52, 168, 78],
  turquoise: [40, 188, 190],
  blue: [42, 102, 222],
  purple: [136, 66, 192],
  pink: [246, 120, 180],
  brown: [132, 82, 46],
  black: [44, 42, 48],
  gray: [140, 142, 148],
  white: [250, 250, 250],
} as const satisfies Record<ColourName, readonly number[]>

type Disc = readonly [colour: ColourName, x: number, y: number, radius: number]

const side = 48

/** Discs on white; places and radii are parts of the side. */
const drawn = (...discs: readonly Disc[]): Picture => {
  const data = new Uint8Array(side * side * 3).fill(255)
  for (let at = 0; at < side * side; at++) {
    const [x, y] = [(at % side) / side, Math.floor(at / side) / side]
    for (const [colour, left, top, radius] of discs)
      if (Math.hypot(x - left, y - top) < radius) data.set(paints[colour], 3 * at)
  }
  return { data, width: side, height: side }
}

const isRight = (wanted: Wanted, ...discs: readonly Disc[]): boolean =>
  judged(seenIn(drawn(...discs)), wanted).right

describe("names of colours", () => {
  it.each(Object.entries(paints))("knows %s", (name, [red, green, blue]) => {
    expect(colourName(labOf(red, green, blue))).toBe(name)
  })
})

describe("the checker", () => {
  it("takes the main colour, whatever the details have", () => {
    const car: readonly Disc[] = [
      ["blue", 0.5, 0.5, 0.3],
      ["black", 0.4, 0.7, 0.08],
    ]
    expect(isRight({ kind: "colour", colour: "blue" }, ...car)).toBe(true)
    expect(isRight({ kind: "colour", colour: "red" }, ...car)).toBe(false)
    expect(isRight({ kind: "colour", colour: "blue" })).toBe(false)
  })

  it("counts things, and no details", () => {
    const three: readonly Disc[] = [
      ["red", 0.2, 0.3, 0.12],
      ["red", 0.5, 0.3, 0.12],
      ["red", 0.8, 0.3, 0.12],
      ["yellow", 0.5, 0.8, 0.04],
    ]
    expect(isRight({ kind: "count", count: 3 }, ...three)).toBe(true)
    for (const count of [1, 2, 4])
      expect(isRight({ kind: "count", count }, ...three), `${count}`).toBe(false)
  })

  it("tells things of a pair by their colours", () => {
    const pair = (relation: "left" | "right" | "above" | "below"): Wanted => ({
      kind: "pair",
      relation,
      colours: ["red", "blue"],
    })
    const beside: readonly Disc[] = [
      ["red", 0.25, 0.5, 0.2],
      ["blue", 0.75, 0.5, 0.2],
    ]
    expect(isRight(pair("left"), ...beside)).toBe(true)
    for (const relation of ["right", "above", "below"] as const)
      expect(isRight(pair(relation), ...beside), relation).toBe(false)
    expect(isRight(pair("above"), ["red", 0.5, 0.25, 0.2], ["blue", 0.5, 0.75, 0.2])).toBe(true)
    expect(isRight(pair("left"), ["red", 0.25, 0.5, 0.2], ["green", 0.75, 0.5, 0.2])).toBe(false)
  })

  it("names the half or corner that a thing is in", () => {
    const low: Disc = ["green", 0.75, 0.75, 0.2]
    expect(isRight({ kind: "corner", where: "bottom right" }, low)).toBe(true)
    for (const where of ["right", "bottom", "top right", "left"])
      expect(isRight({ kind: "corner", where }, low), where).toBe(false)
    expect(isRight({ kind: "corner", where: "left" }, ["green", 0.5, 0.5, 0.2])).toBe(false)
  })
})

it("measures how dark, colourful and inked a picture is", () => {
  const [light, dark] = [lookOf(drawn()), lookOf(drawn(["black", 0.5, 0.5, 0.9]))]
  expect(light).toMatchObject({ lightness: expect.closeTo(100, 0), ink: 0 })
  expect(dark.lightness).toBeLessThan(25)
  expect(dark.edgeLightness).toBeLessThan(25)
  expect(dark.ink).toBe(1)
  expect(lookOf(drawn(["red", 0.5, 0.5, 0.3])).chroma).toBeGreaterThan(light.chroma + 10)
})

it("counts how often a vector's own candidate is nearest", () => {
  const axes = [
    [1, 0],
    [0, 1],
    [Math.SQRT1_2, Math.SQRT1_2],
  ]
  expect(recalls(axes, axes, [0, 1, 2])).toEqual({ first: 1, five: 1 })
  expect(recalls(axes, axes, [0, 2, 1]).first).toBeCloseTo(1 / 3)
})
