import { expect, test } from "vitest"
import { formatRule } from "../validator/format-rules.ts"
import { outerPatterns } from "./negated-scalars.ts"

const odd: Readonly<Record<string, readonly string[]>> = {
  date: ["0000-01-01", "2024-02-29"],
  time: ["23:59:60Z", "08:30:06.283185z", "01:02:03+04:05"],
  "iso-time": ["08:30:06", "08:30:06-08:00"],
  "date-time": ["1998-12-31T23:59:60Z", "1963-06-19t08:30:06.283185z", "1963-06-19 08:30:06Z"],
  "iso-date-time": ["1963-06-19T08:30:06"],
  duration: ["P4Y", "PT0S", "P2W"],
  email: ["te~st@example.com", '"joe bloggs"@example.com', "joe@[IPv6:::1]"],
  "idn-email": ["실례@실례.테스트"],
  hostname: ["xn--4gbwdl.xn--wgbh1c", "a.", "1host"],
  ipv4: ["192.168.0.1", "0.0.0.0"],
  ipv6: ["::", "::1", "1::d6:192.168.0.1"],
  uuid: ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
  uri: ["urn:oasis:names", "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com"],
  iri: ["http://ƒøø.ßår/?∂éœ=πîx#πîüx"],
  url: ["http://example.com/"],
  "json-pointer": ["", "/", "/foo/bar~0/baz~1/%a"],
  "relative-json-pointer": ["0#", "120/foo/bar"],
  byte: ["", "YQ==", "aGk="],
}

test("what does not match the outer pattern of a format does not have it for any validator", () => {
  expect(Object.keys(odd).sort()).toEqual(Object.keys(outerPatterns).sort())
  for (const [format, texts] of Object.entries(odd))
    for (const text of texts) {
      expect(formatRule(format)!(text), `${format}: ${text}`).toBe(true)
      expect(new RegExp(outerPatterns[format]!, "u").test(text), `${format}: ${text}`).toBe(true)
    }
})
