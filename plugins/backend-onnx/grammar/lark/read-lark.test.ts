import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../../testing/property.ts"
import { GrammarFailed } from "../../sampling/token-mask.ts"
import { GrammarInstance, strictLimits } from "../grammar-instance.ts"
import { byteVocabulary } from "../grammar-vocabulary.ts"
import { readLark } from "./read-lark.ts"
import { LarkRefused } from "./tokens.ts"

const instance = new GrammarInstance(byteVocabulary(), undefined, strictLimits)

/** Whether the text is an answer by the grammar. */
const accepts = (lark: string, text: string): boolean => {
  const matcher = instance.compile("lark", readLark(lark))
  const isAnswer =
    Buffer.from(text).every((byte) => instance.consume(matcher, byte)) &&
    instance.isAccepting(matcher)
  instance.free(matcher)
  return isAnswer
}

const refusalOf = (lark: string) => {
  try {
    instance.free(instance.compile("lark", readLark(lark)))
    return undefined
  } catch (cause) {
    if (!(cause instanceof LarkRefused)) throw cause
    return [cause.isBroken ? "broken" : "beyond", cause.message]
  }
}

const sums = `
start: sum           # one line
?sum: product (("+" | "-") product)*
product: factor
  // signs
  | product ("*" | "/") factor -> times

  | product "%" factor
factor: NUMBER | "(" sum ")" | "-" factor
%import common.INT -> NUMBER
%ignore / /
`

describe("a grammar in Lark", () => {
  test.each<[string, string, boolean]>([
    [sums, "1 + 2*(3-4)%5", true],
    [sums, "1+", false],
    [sums, "1.5", false],
    ['start: "a"~2..3 "b"{2,} ["c"] /d/? (E | "f")+\nE: "x".."z" | "é"', "aabbbcdyéf", true],
    ['start: "a"~2..3', "aaaa", false],
    ["start: A\nA: /[a-z]+/ & ~/(?s:.*)bad(?s:.*)/", "good", true],
    ["start: A\nA: ~B & ~(B | /b*/)\nB: /a*/", "ab", true],
    ["start: A\nA: /[a-z]+/ & ~/(?s:.*)bad(?s:.*)/", "abady", false],
    ['start: until "!"\nuntil[lazy]: /.*stop/', "go on, stop!", true],
    ['start: until "!"\nuntil[suffix="stop"]: /.*/', "go on, stop!", true],
    ['%llguidance {}\nstart: "say \\"\\u0061\\"" i\ni: "I"i', 'say "a"i', true],
    ['%import common (DIGIT, LETTER)\nstart: DIGIT LETTER\r\n  | "-"', "1a", true],
  ])("%j and %j: %s", (lark, text, isAnswer) => {
    expect(accepts(lark, text)).toBe(isAnswer)
  })

  test("a schema within it is kept as everywhere", () => {
    const lark = `start: "age: " age "."
age: %json {
  "type": "object", "properties": { "a}": { "type": "integer", "maximum": 99 } },
  "required": ["a}"], "additionalProperties": false
}
`
    expect(accepts(lark, 'age: {"a}": 41}.')).toBe(true)
    expect(accepts(lark, 'age: {"a}": 100}.')).toBe(false)
    expect(accepts(lark, 'age: {"a\\u007d": 41}.')).toBe(false)
    expect(refusalOf(`${lark}b: (`)).toEqual(["broken", expect.stringMatching(/^line 6: /)])
  })

  test.each<[string, string]>([
    ["", "line 1: there is no rule named start"],
    ["start start", 'line 1: ":" is expected, not start'],
    ['start: "a"\n\nb: (', 'line 3: ")" is expected, not the end of the line'],
    ['start: "a', "line 1: a string is not closed, or has an escape that JSON does not know"],
    ["start: /a", "line 1: a pattern is not closed on its line"],
    ["start: 'a'", 'line 1: "\'" has no meaning here'],
    ["start: a", "line 1: a is not defined"],
    ['start: "a"\n%ignore B', "line 2: B is not defined"],
    ['start: "a"\nstart: "b"', "line 2: start is defined twice"],
    ['start: "a" | x\nx: ["b"] x', "line 2: x never ends, as it always needs itself again"],
    ['start: "a"~-1', "line 1: a number of repetitions is not negative"],
    ["start: %json 5", "line 1: an object in JSON has to follow"],
    ['start: %json {"a": {}', "line 1: the object in JSON is not closed"],
    ['start: %json {"a": x}', "line 1: it is not JSON: "],
    ['start: "b"\na: %json {"type": "x"}', "line 2: the schema is no JSON Schema at /type: "],
    ['start: %json {"not": {}}', "line 1: no document satisfies the schema"],
    ['start[greedy]: "a"', "line 1: greedy is no attribute of a rule"],
  ])("%j is broken: %s", (lark, message) => {
    expect(refusalOf(lark)).toEqual(["broken", expect.stringContaining(message)])
  })

  test.each<[string, string]>([
    ["start: <[5]>", "tokens by their name or number (<[5]>)"],
    ["start: <|im_end|>", "tokens by their name or number (<|im_end|>)"],
    ["start: @other", "other grammars (@other)"],
    ['%llguidance {"no_forcing": true}\nstart: "a"', "the option no_forcing of %llguidance"],
    ["start[max_tokens=5]: /a*/", "the attribute max_tokens"],
    ["start[lazy, temperature=0.5]: /a*/", "the attribute temperature"],
    ['start[stop="x"]: /a*/', "the attribute stop"],
    ["start[capture]: /a*/", "the attribute capture"],
    ['start: %lark { start: "a" }', "nested grammars (%lark)"],
    ['start: %regex {"substring_words": "a b"}', "%regex"],
    ['start: "a" %if true', "conditions (%if)"],
    ['start: x::0\nx: "a"', "rules with parameters (::)"],
    ['A.2: "a"', "priorities"],
    ['start{x}: "a"', "templates"],
    ["%declare A", "%declare"],
    ['%override start: "a"', "%override"],
    ["%import other.A", 'only terminals of "common"'],
    ["start: A\nA: /(.{97})*/ & /(.{89})*/ & /(.{83})*/", "& is supported where all but one"],
    ["start: A\nA: /a/ & ~/b/ /c/", "& is supported where all but one"],
    ["start: A\nA: ~(~/a/ | ~/b/)", "line 2: ~ of what has & or ~ itself"],
    ["start: A\nA: ~B\nB: [C]\nC: ~/a/", "line 2: ~ of what has & or ~ itself"],
    ["start: /(a{1,1000}){1,1000}/", "repetitions in a pattern that multiply"],
    ['start: "a"~10001', "more than 10000 repetitions"],
    [`start: ${"(".repeat(30)}"a"${")".repeat(30)}`, "groups are nested more than 25 deep"],
    ['start: %json {"$ref": "https://example.com/x"}', 'the keyword "$ref" at /$ref'],
  ])("%j asks for too much: %s", (lark, message) => {
    expect(refusalOf(lark)).toEqual(["beyond", expect.stringContaining(message)])
  })
})

test("more than 1,000 rules are too many", () => {
  const many = Array.from({ length: 1_001 }, (_, at) => `x${at}: "a"`).join("\n")
  expect(refusalOf(many)).toEqual(["beyond", "line 1001: more than 1000 rules and terminals"])
})

const sql = `# vLLM's example
root ::= select-statement

select-statement ::= "SELECT " column " from " Table (
  " where " condition)?
column ::= "col_1 " | "col_2 "
Table ::= "table_1 "
  | "table_2 "
condition ::= column "= " number
number ::= [1-9] [0-9]{0,2} " "
`

const notThese = String.raw`root ::= [^"\\\n\x41-\u0043-]+ "\"" .`

describe("a grammar in GBNF", () => {
  test.each<[string, string, boolean]>([
    [sql, "SELECT col_1  from table_2  where col_2 = 17 ", true],
    [sql, "SELECT col_1  from table_2 ", true],
    [sql, "SELECT col_1  from table_2  where col_2 = 0 ", false],
    [notThese, 'xyé" ', true],
    [notThese, 'xyé"\n', true],
    [notThese, 'xBé"x', false],
    [notThese, 'x-"x', false],
    [
      String.raw`root ::= start Start [a\\-z] ""
start ::= "1"
Start ::= "2"`,
      "12k",
      true,
    ],
    ["root ::= [a-] [-z] [^]", "--\n", true],
  ])("%j and %j: %s", (gbnf, text, isAnswer) => {
    expect(accepts(gbnf, text)).toBe(isAnswer)
  })

  test.each<[string, string]>([
    ['root ::= "a"\n\nb ::= (', 'line 3: ")" is expected, not the end of the line'],
    ["root ::= <[5]>", "line 1: < has no meaning here"],
    ["root ::= x", "line 1: x is not defined"],
    ["root ::= []", "line 1: a set holds no character"],
    ['root ::= "\\uD800"', "line 1: \\Ud800 is no character"],
    ['other ::= "a"', "line 1: there is no rule named start"],
    ['root ::= "a" | x\nx ::= "b" x', "line 2: x never ends"],
  ])("%j is broken: %s", (gbnf, message) => {
    expect(refusalOf(gbnf)).toEqual(["broken", expect.stringContaining(message)])
  })
})

describe("of any text", () => {
  const pieces = [
    ...'()[]{}|&~:,.=*+?%@<>"/\\#-_ \n\t0a',
    ..."start: ,A: ,a: ,%json {,%json {},%ignore ,%import common.INT,<[1]>,@a,[lazy],//,/a/,%lark {".split(
      ",",
    ),
    ...'%llguidance {},%llguidance {"x":1},%regex {,"a","b"i,~1..3,{2},->,..,é,\u2028,\r\n,\\n'.split(
      ",",
    ),
  ]
  const text = fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((all) => all.join(""))

  test("llguidance gets only what was read, or nothing", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          text.map((more) => `start: "a" ${more}`),
        ),
        (lark) => {
          let written: string
          try {
            written = readLark(lark)
          } catch (cause) {
            expect(cause).toBeInstanceOf(LarkRefused)
            return
          }
          const plain = written.replace(/"(?:[^"\\]|\\.)*"|\/(?:[^/\\]|\\.)+\//g, "")
          expect(plain).not.toMatch(/[<@]|::|%(?!json|ignore|import)/)
          try {
            instance.free(instance.compile("lark", written))
          } catch (cause) {
            // names, patterns and ranges are judged there; the tokens are the same
            expect(cause).toBeInstanceOf(GrammarFailed)
            expect((cause as Error).message).not.toMatch(/lexer|xpected/)
          }
        },
      ),
      { numRuns: runs(2_000) },
    )
  })
})
