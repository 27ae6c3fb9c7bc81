import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeZip } from "../testing/make-zip.ts"
import { textOf } from "../testing/read-parts.ts"
import type { Kind } from "./kind.ts"
import { kindOf } from "./kind.ts"
import { ReadFailure } from "./read-failure.ts"

/** The text, or undefined where the file was refused in a sentence. */
const readOrRefuse = async (kind: Kind, file: string | Uint8Array): Promise<string | undefined> => {
  try {
    return await textOf(kind, file)
  } catch (cause) {
    if (cause instanceof ReadFailure) return undefined
    throw cause
  }
}

const markup = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ..."<p> </p> <table> <tr> <td> </td> </tr> </table> <pre> </pre> <script> <style> <!-- --> <![CDATA[ ]]> <title> <svg> <br/> <w:t> </w:t> <w:p> <w:del> </w:del> &amp; &#0; &#xd800; &bogus < > \" ' = , ; | \n".split(
          " ",
        ),
      ),
      fc.string({ unit: "binary", maxLength: 5 }),
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(""))

describe("a file of any bytes", () => {
  it.each(["txt", "html", "csv", "docx"] as const)("is %s, or is refused", (kind) =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        await readOrRefuse(kind, bytes)
      }),
      { numRuns: 60 },
    ),
  )

  it.each(["html", "csv", "docx"] as const)("of marks is %s whose text can be stored", (kind) =>
    fc.assert(
      fc.asyncProperty(markup, async (source) => {
        const file = kind === "docx" ? makeZip({ "word/document.xml": source }) : source
        const text = await readOrRefuse(kind, file)
        expect(text ?? "").not.toMatch(/\p{Surrogate}|\0/u)
      }),
      { numRuns: 100 },
    ),
  )

  it("keeps a text as it is, but for zero characters", async () => {
    expect(await textOf("txt", "\ufeffa\0b\r\n\u{1f600}")).toBe("\ufeffa\ufffdb\r\n\u{1f600}")
  })
})

it("knows a kind by the end of a name", () => {
  expect(kindOf("A.Report.PDF")).toBe("pdf")
  expect(kindOf("notes.text")).toBeUndefined()
})
