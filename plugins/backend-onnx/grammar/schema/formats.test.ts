import { expect, test } from "vitest"
import { GrammarInstance } from "../grammar-instance.ts"
import { byteVocabulary } from "../grammar-vocabulary.ts"
import { analyseSchema } from "../schema-report.ts"
import { independentValidator } from "../testing/validator.ts"
import { judgedFormats } from "./formats.ts"
import { formatRule } from "./validator/format-rules.ts"

const instance = new GrammarInstance(byteVocabulary())
const long = "a".repeat(63)

const cases: Readonly<Record<string, readonly [yes: readonly string[], no: readonly string[]]>> = {
  time: [
    ["23:59:60Z", "08:30:06z", "23:59:60.5+00:00"],
    ["22:59:60Z", "23:59:61Z", "08:30:06"],
  ],
  "date-time": [["1998-12-31T23:59:60Z", "1963-06-19t08:30:06.283185z"], ["1998-12-31 23:59:60Z"]],
  email: [
    [`${long}@a.example`, "a.b.c@x-y.example.com"],
    ["a@b", "a..b@c.de", ".a@b.de"],
  ],
  hostname: [
    [`${long}.com`, "a-b.c-d", "a.b.c.d.e.f.g"],
    [`${long}a.com`, "xn--x", "a-", "-a", "a..b"],
  ],
  "idn-hostname": [
    ["straße.de", "실례.테스트", "example"],
    ["ab--c", "a b", "é-"],
  ],
  ipv6: [
    ["::ffff:192.168.0.1", "1:2::192.168.0.1", "::1", "1:2:3:4:5:6:7:8"],
    ["1:2", "::1.2.3"],
  ],
  uri: [
    [
      "file:///etc/hosts",
      "http://user:word@example.com:80/%20?q#f",
      "ldap://[2001:db8::7]/c=GB?objectClass?one",
      "urn:oasis:names",
      "a:/b",
    ],
    ["/a", "a", "http://a b", "http://[::1", "http://x/\\", "//a"],
  ],
  "uri-reference": [
    ["", "abc", "#f", "//foo.bar/?baz=qux#quux", "../a", "?q"],
    ["\\\\a", "a b", "1:b"],
  ],
  iri: [["http://ƒøø.ßår/?∂éœ=πîx#πîüx"], ["http://[ƒ]", "âππ"]],
  "iri-reference": [["âππ", "/âππ"], ["\\\\a"]],
  "uri-template": [
    ["http://x/{term:1}/{a,b*}{?q}", "x"],
    ["{", "{a", "a b"],
  ],
}

for (const [format, [yes, no]] of Object.entries(cases))
  test(`${format} is written as validators have it`, () => {
    const schema = { type: "string", format }
    const { enforced, refused } = analyseSchema(schema)
    expect(refused).toBeUndefined()
    const whole = instance.compile("schema", JSON.stringify(enforced))
    const validates = independentValidator(schema)
    for (const text of [...yes, ...no]) {
      const matcher = instance.clone(whole)
      const isIn =
        Buffer.from(JSON.stringify(text)).every((byte) => instance.consume(matcher, byte)) &&
        instance.isAccepting(matcher)
      instance.free(matcher)
      expect(isIn, text).toBe(yes.includes(text))
      if (isIn) expect([validates(text), formatRule(format)!(text)], text).toEqual([true, true])
    }
    instance.free(whole)
  })

test("a format that no pattern says is checked on finished texts", () => {
  for (const format of judgedFormats) {
    const { keywords, guards } = analyseSchema({ type: "string", format })
    expect(keywords.find(({ keyword }) => keyword === "format")?.verdict).toBe("enforced")
    expect([...(guards?.keywords.get("") ?? [])]).toEqual(["format"])
  }
  for (const text of ["[", "\\a", "a\\Z"]) expect(formatRule("regex")!(text), text).toBe(false)
  expect(formatRule("regex")!("[a-z]+")).toBe(true)
})
