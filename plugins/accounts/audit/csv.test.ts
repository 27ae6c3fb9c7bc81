import fc from "fast-check"
import { expect, it } from "vitest"
import { csvLine } from "./csv.ts"

/** A strict reader of RFC 4180, written independently of the writer. */
const readCsv = (text: string): string[][] => {
  const records: string[][] = [[]]
  let at = 0
  while (at < text.length) {
    let cell = ""
    if (text[at] === '"') {
      for (at++; ; at++) {
        if (text[at] === undefined) throw new Error("a quoted cell does not end")
        if (text[at] !== '"') cell += text[at]
        else if (text[at + 1] === '"') cell += text[at++]
        else break
      }
      at++
    } else for (; at < text.length && !",\r\n".includes(text[at]!); at++) cell += text[at]
    records.at(-1)!.push(cell)
    if (text[at] === ",") at++
    else if (text.startsWith("\r\n", at)) {
      at += 2
      records.push([])
    } else throw new Error(`a cell is followed by ${JSON.stringify(text[at])}`)
  }
  records.pop()
  return records
}

it("quotes by RFC 4180", () => {
  expect(csvLine(["a", "", "b c"])).toBe("a,,b c\r\n")
  expect(csvLine(['say "hi"', "a,b", "a\nb", "a\rb"])).toBe('"say ""hi""","a,b","a\nb","a\rb"\r\n')
})

it("lets no spreadsheet run anything", () => {
  expect(csvLine(["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "a=b", "'=1"])).toBe(
    "'=1+1,'+1,'-1,'@SUM(A1),'\tx,a=b,'=1\r\n",
  )
  expect(csvLine(['=HYPERLINK("http://x","y")', "\r=1"])).toBe(
    '"\'=HYPERLINK(""http://x"",""y"")","\'\r=1"\r\n',
  )
})

it("is read back as it was, but for the sign in front of formulas", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({
      unit: fc.constantFrom(
        '"',
        ",",
        "\r",
        "\n",
        "=",
        "+",
        "-",
        "@",
        "\t",
        "'",
        "a",
        "\ud83d\udd11",
      ),
    }),
  )
  fc.assert(
    fc.property(
      fc.array(fc.array(text, { minLength: 2, maxLength: 4 }), { maxLength: 5 }),
      (records) => {
        const read = readCsv(records.map(csvLine).join(""))
        expect(read).toEqual(
          records.map((cells) =>
            cells.map((cell) => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell)),
          ),
        )
        for (const cell of read.flat()) expect("=+-@\t\r".includes(cell[0] ?? " ")).toBe(false)
      },
    ),
  )
})
