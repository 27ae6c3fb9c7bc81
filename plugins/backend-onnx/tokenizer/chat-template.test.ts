import { describe, expect, test, vi } from "vitest"
import { ChatTemplate } from "./chat-template.ts"
import { parseAsWritten } from "./written-number.ts"

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
    // white space of Python, which U+FEFF is not
    ["{{ text | trim }}", "\u3000これは\u2003\x85", "これは"],
    ["{{ text.strip() }}", "\u3000\x1c\ufeffa\x85", "\ufeffa"],
    ["{{ text.lstrip() }}|{{ text.rstrip() }}", "\x85a\u2028", "a\u2028|\x85a"],
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

/** Renders a template of the variable `x`, which is given as JSON text. */
const renderedOf = (source: string, x = "null") =>
  new ChatTemplate(source).render({ x: parseAsWritten(x) })

const written = `{"z":1.0,"big":12345678901234567890,"f":1e3,"g":1e16,"h":1.5e-7,"i":-0.0,"j":0.1,"k":5}`

// the wanted texts are those of transformers 5.24
describe("values are written as Python writes them", () => {
  test.each([
    ["{{ true }} {{ none }} {{ False }} {{ missing }}{{ x }}", "1.0", "True None False 1.0"],
    ["{{ 'a' ~ x ~ none }}", "true", "aTrueNone"],
    ["{{ [1, 2.0, true, x] | join(', ') }} {{ (1, 'a') }}", "null", "1, 2.0, True, None (1, 'a')"],
    ["{{ {'a': x | string} }}", "1.50", "{'a': '1.5'}"],
    [
      "{{ x | string }}",
      `{"a":[true,null,"it's","say \\"x\\"","a\\\\b\\n\\u200b"],"d":{}}`,
      `{'a': [True, None, "it's", 'say "x"', 'a\\\\b\\n\\u200b'], 'd': {}}`,
    ],
    [
      "{{ x }}",
      written,
      "{'z': 1.0, 'big': 12345678901234567890, 'f': 1000.0, 'g': 1e+16, 'h': 1.5e-07, 'i': -0.0, 'j': 0.1, 'k': 5}",
    ],
    [
      "{{ x | tojson }}",
      written,
      '{"z": 1.0, "big": 12345678901234567890, "f": 1000.0, "g": 1e+16, "h": 1.5e-07, "i": -0.0, "j": 0.1, "k": 5}',
    ],
    [
      "{{ x | tojson(sort_keys=true, indent=2) }}",
      '{"b":[1.0,{}],"a":"é"}',
      '{\n  "a": "é",\n  "b": [\n    1.0,\n    {}\n  ]\n}',
    ],
    [
      "{{ x | tojson(separators=(',', ':')) }}{{ x | tojson(true) }}",
      '["é",1]',
      '["é",1]["\\u00e9", 1]',
    ],
    ["{% set y %}{{ true }}{% endset %}{{ y }}{{ 'b' if false }}", "null", "True"],
    ["{% macro m(a) %}{{ a }}{{ kwargs.b }}{% endmacro %}{{ m(1.0, b=none) }}", "null", "1.0None"],
  ])("%s of %s", (source, x, wanted) => {
    expect(renderedOf(source, x)).toBe(wanted)
  })
})

// each is true in transformers 5.24
test.each([
  "1 == 1.0 and true == 1 and none == none and '' == ''",
  "'1' != 1 and '' != false and 0 != '' and none != false and missing != none",
  "[1, {'a': 'b'}] == [1.0, {'a': 'b'}] and [1] != [1, 2] and {'a': 1} != {'a': 2}",
  "{'a': 1} != {'b': 1} and {} != [] and {} == {} and missing == gone",
  "1.0 in [none, 1] and none in [none] and '1' not in [1] and {'a': 1} in [{'a': 1}]",
  "'a' in {'a': 1} and 1 not in {'a': 1} and 'b' in 'abc' and 'x' not in missing",
])("%s", (condition) => {
  expect(renderedOf(`{{ ${condition} }}`)).toBe("True")
})

test("what can't be looked for is refused", () => {
  expect(() => renderedOf("{{ 1 in 'abc' }}")).toThrow(/can't be looked for in a StringValue/)
})

test("a plus keeps the white space that blocks alone on a line take along", () => {
  const loop =
    "{%- for k in x %}\n    {%+ if true %}a{% endif +%}\n  {{ k }}\n  b\n{% endfor %}\nend"
  expect(renderedOf(loop, "[1, 2]")).toBe("    a\n  1\n  b\n    a\n  2\n  b\nend")
  expect(renderedOf("a\n  {#+ c #}\n  {%- if true +%}\n y\n  {%- endif %}\n")).toBe("a\n  \n y")
})

test("numbers are written as they were, and what only looks like them stays", () => {
  const text = '["n1.0",1.0,"s",{"1.0":2.0,"n":"\\\\"},"\\"3.0",1]'
  expect(renderedOf("{{ x | tojson }}", text)).toBe(
    '["n1.0", 1.0, "s", {"1.0": 2.0, "n": "\\\\"}, "\\"3.0", 1]',
  )
  expect(JSON.stringify(parseAsWritten(text))).toBe(
    text.replaceAll(/,1\.0|2\.0/g, (n) => n.slice(0, -2)),
  )
  expect(() => parseAsWritten("[1.0")).toThrow(SyntaxError)
})

test("the day is written in English by any directive", () => {
  vi.useFakeTimers({ now: new Date(2026, 10, 28, 13, 5) })
  expect(renderedOf("{{ strftime_now('%A, %d %B %Y, %I:%M %p, day %j') }}")).toBe(
    "Saturday, 28 November 2026, 01:05 PM, day 332",
  )
  vi.useRealTimers()
})

test("methods of a dictionary are called also where it has a key of their name", () => {
  const text = '{"items": [1, 2], "get": 3, "keys": 4, "values": 5}'
  const all = "{% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}"
  const others =
    "{{ x.keys() | list }}{{ x.values() | list }}{{ x.get('get') }}{{ x.get('no', 7) }}"
  expect(renderedOf(`${all}${others}{{ x.items[1] }}`, text)).toBe(
    "items=[1, 2];get=3;keys=4;values=5;['items', 'get', 'keys', 'values'][[1, 2], 3, 4, 5]372",
  )
  expect(() => renderedOf("{{ 1 .items() }}")).toThrow()
})

test("ranges are those of Python", () => {
  const all =
    "{% for i in range(2) %}{{ i }}{% endfor %}|{% for i in range(2, 8, 3) %}{{ i }}{% endfor %}"
  expect(renderedOf(`${all}|{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}`)).toBe("01|25|321")
})
