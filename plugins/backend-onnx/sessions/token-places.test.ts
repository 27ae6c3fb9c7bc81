import { describe, expect, it } from "vitest"
import { positionsOf, TokenPlaces } from "./token-places.ts"

const ids = [7, -1, -2, -3, -4, -5, -6, 8, -1, 9]
const grids = [
  { rows: 2, columns: 3 },
  { rows: 1, columns: 1 },
]

describe("places of tokens", () => {
  it("of images stand in a grid, and text goes on behind its longer side", () => {
    const places = new TokenPlaces(ids, grids)
    expect(Array.from({ length: 12 }, (_, at) => places.at(at))).toEqual([
      [0, 0, 0],
      ...[
        [1, 1, 1],
        [1, 1, 2],
        [1, 1, 3],
        [1, 2, 1],
        [1, 2, 2],
        [1, 2, 3],
      ],
      [4, 4, 4],
      [5, 5, 5],
      [6, 6, 6],
      [7, 7, 7],
      [8, 8, 8],
    ])
  })

  it("of neighbouring images differ by their grids; a wrong count is no prompt", () => {
    const two = new TokenPlaces([-1, -2, -3], [{ rows: 1, columns: 2 }, grids[1]!])
    expect([0, 1, 2].map((at) => two.at(at))).toEqual([
      [0, 0, 0],
      [0, 0, 1],
      [2, 2, 2],
    ])
    expect(() => new TokenPlaces(ids, [grids[0]!])).toThrow(/in no grid/)
    expect(() => new TokenPlaces([-1, 5], [{ rows: 1, columns: 2 }])).toThrow(/is missing/)
  })

  it("are those of each row of a pass: time, rows, columns", () => {
    const pass = {
      ...{ rows: 2, count: 2, ids: [1, 1, 1, 1], pastLens: [2, 5], past: [], capacity: 8 },
      ...{ logitsAt: [], places: [new TokenPlaces(ids, grids), undefined] },
    }
    expect(positionsOf({ sections: [1, 1, 2] }, pass)).toEqual({
      values: [1, 1, 5, 6, 1, 1, 5, 6, 2, 3, 5, 6],
      dimensions: [3, 2, 2],
    })
    expect(positionsOf({ longAfter: 100 }, { ...pass, long: [false, true] })).toEqual({
      values: [2, 3, 105, 106],
      dimensions: [2, 2],
    })
  })
})
