import { describe, expect, it } from "vitest"
import { LinkedList } from "./linked-list.ts"

describe("a linked list", () => {
  it("has what was added and not removed, in its order", () => {
    const list = new LinkedList<string>()
    expect([list.size, list.values()]).toEqual([0, []])
    const [a, b, c] = ["a", "b", "c"].map((value) => list.add(value))
    expect(list.values()).toEqual(["a", "b", "c"])
    expect(list.remove(b!)).toBe(true)
    list.add("d")
    expect([list.size, list.values()]).toEqual([3, ["a", "c", "d"]])
    for (const link of [c!, a!]) list.remove(link)
    expect([list.size, list.values()]).toEqual([1, ["d"]])
  })

  it("removes once, and leaves no link to others", () => {
    const list = new LinkedList<string>()
    const [a, b] = ["a", "b"].map((value) => list.add(value))
    expect(list.remove(a!)).toBe(true)
    expect([a!.before, a!.after]).toEqual([a, a])
    expect(list.remove(a!)).toBe(false)
    expect([list.size, list.values(), b!.value]).toEqual([1, ["b"], "b"])
  })

  it("may lose values while they are read", () => {
    const list = new LinkedList<number>()
    const links = [1, 2, 3].map((value) => list.add(value))
    for (const value of list.values()) list.remove(links[value - 1]!)
    expect(list.size).toBe(0)
  })
})
