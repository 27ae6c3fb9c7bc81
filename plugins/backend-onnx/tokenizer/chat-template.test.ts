import { describe, expect, test } from "vitest"
import { ChatTemplate } from "./chat-template.ts"

const rendered = (source: string, text: string | null = null) =>
  new ChatTemplate(source).render({ text })

describe("a text is stripped as Python does it", () => {
  test.each([
    ["{{ text.strip('\\n') }}", "\n\n  a\n  b \n", "  a\n  b "],
    ["{{ text.lstrip('\\n') }}", "\n  a\n", "  a\n"],
    ["{{ text.rstrip('\\n') }}", "\n a \n\n", "\n a "],
    ["{{ text.strip('xy') }}", "xyaxby", "axb"],
    ["{{ text.strip('') }}", " a ", " a "],
    ["{{ text.strip('x') }}", "xxx", ""],
    ["{{ text.lstrip('😀') }}", "😀😀a😀", "a😀"],
    ["{{ text.strip() }}", " \n a \t", "a"],
    ["{{ text.lstrip() }}", " \n a ", "a "],
    ["{{ text.split('|')[0].rstrip('\\n').split('#')[-1].lstrip('\\n') }}", "x#\n\n a\n|y", " a"],
    ["{% macro m(a) %}{{ a.strip('.') }}{% endmacro %}{{ m(text) }}", "..a.", "a"],
    ["{% set t = text.strip('.') if text else '' %}{{ t }}", ".a.", "a"],
  ])("%s of %j", (source, text, wanted) => {
    expect(rendered(source, text)).toBe(wanted)
  })

  test("null stands for white space", () => {
    expect(rendered("{{ text.strip(none) }}", " a ")).toBe("a")
  })

  test("the value of another type is refused, as before", () => {
    expect(() => rendered("{{ text.strip('x') }}")).toThrow(/only a text can be stripped/)
  })
})
