import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { apart, cosine, fitted, nearest, placed, similarities, stepOf, steps, toPlane } =
  await webModule("vectors.js")

type Point = readonly [number, number]
const distance = ([a, b]: Point, [c, d]: Point) => Math.hypot(a - c, b - d)
const number = fc.double({ min: -10, max: 10, noNaN: true, noDefaultInfinity: true })
const plane = fc.array(fc.tuple(number, number), { minLength: 2, maxLength: 12 })

/** Two directions of length 1 at a right angle, in five dimensions. */
const [first, second] = [
  [0.6, 0, 0.8, 0, 0],
  [0.64, 0.6, -0.48, 0, 0],
] as const
const lifted = (points: readonly Point[]) =>
  points.map(([x, y]) => first.map((part, at) => 3 + x * part + y * second[at]!))

describe("similarity", () => {
  it.each([
    [[1, 0], [2, 0], 1],
    [[1, 0], [0, 3], 0],
    [[1, 1], [-2, -2], -1],
    [[1, 0], [1, 1], Math.SQRT1_2],
    [[0, 0], [1, 1], 0],
  ])("of %j and %j is %d", (a, b, value) => expect(cosine(a, b)).toBeCloseTo(value, 12))

  it("is the same both ways, and 1 with itself", () => {
    const matrix: number[][] = similarities([
      [1, 2, 3],
      [3, -1, 0],
      [0.1, 0.2, 0.31],
    ])
    for (const [i, row] of matrix.entries()) {
      expect(row[i]).toBeCloseTo(1, 12)
      for (const [j, value] of row.entries()) expect(value).toBe(matrix[j]![i])
    }
    expect(nearest(matrix).map(({ index }: { index: number }) => index)).toEqual([2, 0, 0])
    expect(nearest([[1]])).toEqual([undefined])
  })

  it("has a step of colour that grows with it", () => {
    expect([-1, 0, 0.1, 0.5, 0.99, 1].map(stepOf)).toEqual([0, 0, 0, 3, steps - 1, steps - 1])
  })
})

describe("the plane of the largest differences", () => {
  it("keeps all distances of what lies in a plane", () => {
    fc.assert(
      fc.property(plane, (points) => {
        const { points: found, kept } = toPlane(lifted(points))
        expect(kept).toBeCloseTo(1, 6)
        for (const [i, a] of points.entries())
          for (const [j, b] of points.entries())
            expect(distance(found[i], found[j])).toBeCloseTo(distance(a, b), 4)
      }),
    )
  })

  it("goes along the longest direction first, whose end is on the right", () => {
    const { points } = toPlane(
      lifted([
        [-1, 0],
        [0, 0.5],
        [0, -0.5],
        [5, 0],
      ]),
    )
    const xs = points.map(([x]: Point) => x)
    expect(xs[3] - xs[0]).toBeCloseTo(6, 9)
    expect(xs[3]).toBeGreaterThan(0)
  })

  it("says how much it can't show", () => {
    const axes = [0, 1, 2, 3].map((at) => [0, 1, 2, 3].map((other) => (other === at ? 1 : 0)))
    expect(toPlane(axes).kept).toBeCloseTo(2 / 3, 9)
  })

  it.each([
    ["one", [[1, 2, 3]]],
    ["the same ones", [1, 2, 3].map(() => [0.1, 0.7, 0.2])],
  ])("puts %s into the middle", (_, vectors) => {
    const found = toPlane(vectors)
    expect(found).toEqual({ points: vectors.map(() => [0, 0]), kept: 1 })
    const frame = { width: 100, height: 60, margin: 5 }
    expect(fitted(found.points, frame)).toEqual(vectors.map(() => [50, 30]))
  })
})

describe("the map", () => {
  const frame = { width: 320, height: 220, margin: 16, radius: 9, letter: { width: 6, height: 12 } }

  it("has every point in its frame, in proportion, and upright", () => {
    fc.assert(
      fc.property(plane, (points) => {
        for (const [x, y] of fitted(points, frame)) {
          expect(x).toBeGreaterThanOrEqual(frame.margin - 1e-6)
          expect(x).toBeLessThanOrEqual(frame.width - frame.margin + 1e-6)
          expect(y).toBeGreaterThanOrEqual(frame.margin - 1e-6)
          expect(y).toBeLessThanOrEqual(frame.height - frame.margin + 1e-6)
        }
      }),
    )
    const [low, high] = fitted(
      [
        [0, 0],
        [0, 1],
      ],
      frame,
    )
    expect(high[1]).toBeLessThan(low[1])
  })

  it("shows every point, those on one spot, too", () => {
    const spots = Array.from({ length: 12 }, () => [9, 9] as const)
    const moved: Point[] = apart([...spots, [200, 100]], frame)
    for (const [i, a] of moved.entries())
      for (const b of moved.slice(i + 1)) expect(distance(a, b)).toBeGreaterThan(1.8 * frame.radius)
    expect(moved.at(-1)).toEqual([200, 100])
  })

  it("leaves out texts that have no room", () => {
    const texts = ["a text", "a text", "long".repeat(20)]
    const points = [
      [160, 50],
      [160, 54],
      [160, 150],
    ]
    expect(placed(points, texts, frame)).toEqual([
      { x: 171, anchor: "start" },
      { x: 149, anchor: "end" },
      undefined,
    ])
    expect(placed([[310, 50]], ["a text"], frame)).toEqual([{ x: 299, anchor: "end" }])
  })
})
