import { describe, expect, it } from "vitest"
import { textOf } from "../testing/read-parts.ts"
import { delimiterOf, readCsv } from "./read-csv.ts"

describe("a table", () => {
  it("gives a line for each row, where cells have their columns' names", async () => {
    const csv =
      '\ufeffName,Town,Said\r\nAnn,"Gr\u00fcn, at sea","He said ""hi""\r\nto me"\r\nBob,,\r\n'
    expect(await textOf("csv", csv)).toBe(
      'Name | Town | Said\nName: Ann | Town: Gr\u00fcn, at sea | Said: He said "hi" to me\nName: Bob\n',
    )
  })

  it("has no names where its first row is data", async () => {
    expect(await textOf("csv", "1,a\n2,b\n")).toBe("1 | a\n2 | b\n")
    expect(await textOf("csv", "Ann,30\nBob,40,more\n")).toBe("Ann | 30\nBob | 40 | more\n")
  })

  it.each([
    ["a;b;c\n1,5;2;3\n", ";"],
    ["a\tb\n1, 2\t3\n", "\t"],
    ['"a|x",b\n1,2\n', ","],
    ["one column\nof words\n", ","],
  ])("is divided by what most lines have equally often: %j", (head, delimiter) => {
    expect(delimiterOf(head)).toBe(delimiter)
  })

  it("goes on for many rows, and says where it can't be read", async () => {
    const rows = Array.from({ length: 5000 }, (_, n) => `${n},word ${n}`)
    const text = await textOf("csv", rows.join("\n"))
    expect(text.split("\n").filter(Boolean)).toHaveLength(5000)
    await expect(textOf("csv", `a,b\n1,2\n"3,${"4\n".repeat(600_000)}`)).rejects.toMatchObject({
      code: "broken",
    })
  })

  it.each([
    ["good", "1,two\n", ""],
    ["broken", '3,"four\n', "broken"],
  ])("never asks for slow bytes while rows wait or fail: a %s one", async (_, row, code) => {
    let isAsking = false
    async function* slowBytes() {
      for (let n = 0; n < 20; n++) {
        isAsking = true
        await new Promise(setImmediate)
        isAsking = false
        yield Buffer.from(`${n === 0 ? "a,b\n" : ""}${row.repeat(65_536 / row.length)}`)
      }
    }
    const parts = readCsv(slowBytes())
    const readAll = async () => {
      for (let part = await parts.next(); !part.done; part = await parts.next()) {
        await new Promise(setImmediate)
        expect(isAsking).toBe(false)
      }
    }
    const outcome = readAll()
    if (code) await expect(outcome).rejects.toMatchObject({ code })
    else await outcome
    expect(isAsking).toBe(false)
  })
})
