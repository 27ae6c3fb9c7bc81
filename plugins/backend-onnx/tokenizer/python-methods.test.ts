import { expect, test } from "vitest"
import { renderedWith } from "./testing/template-values.ts"

// the wanted texts are those of transformers 5.24
test.each([
  ['{{ t.find("foo") }} {{ t.find("zzz") }} {{ t.find("o", 5) }}', "12 -1 13"],
  ['{{ e.find("b") }}', "2"],
  ['{{ t.rfind("o") }} {{ t.index("foo") }} {{ t.rindex("o") }}', "14 12 14"],
  ['{{ t.count("o") }} {{ t.count("") }}', "3 16"],
  ['{{ e.count("😀") }}', "2"],
  ['{{ l.count("a") }} {{ l.index("a") }}', "2 1"],
  ['{{ t.replace("o", "0", 1) }}', "Hell0 wORLD foo"],
  [
    '{{ t.startswith("He") }} {{ t.endswith("foo") }} {{ t.startswith(("x", "He")) }} {{ t.startswith("l", 2) }}',
    "True True True True",
  ],
  [
    '{{ t.removeprefix("Hello ") }} {{ t.removesuffix("foo") }} {{ t.removeprefix("zz") }}',
    "wORLD foo Hello wORLD  Hello wORLD foo",
  ],
  [
    '{{ e.upper().find("B") }} {{ e.split("😀") }} {{ e.replace("", "-") }}',
    "2 ['a', 'b', ' é'] -a-😀-b-😀- -é-",
  ],
  [
    '{{ "{:,}".format(1234567) }} {{ "{:d}".format(5) }} {{ "{:x}".format(255) }} {{ "{!r}".format("a") }} {{ "{:<4}|{:^5}|{:*>4}".format("a", "b", 7) }}',
    "1,234,567 5 ff 'a' a   |  b  |***7",
  ],
  [
    "{% for k, v in d.items() %}{{ k }}{% endfor %}{% for k in d.keys() %}{{ k }}{% endfor %}{% for v in d.values() %}{{ v }}{% endfor %}",
    "baba1{'x': 2}",
  ],
  [
    '{{ t.partition(" ")[2] }} {{ t.rpartition(" ")[0] }} {{ t.partition("zz")[0] }}',
    "wORLD foo Hello wORLD Hello wORLD foo",
  ],
  [
    '{{ e.find("b", 2, 4) }} {{ e.find("é", -1) }} {{ e.count("b", 3) }} {{ "aXbX".index("X", 2) }}',
    "2 5 0 3",
  ],
])("%s", (source, wanted) => {
  expect(renderedWith(source)).toBe(wanted)
})

test.each([
  ["{{ t.index('zzz') }}", /'zzz' is not found/],
  ["{{ l.index('zzz') }}", /'zzz' is not in the list/],
  ["{{ t.zfill(n) }}{{ 'a'.ljust(100000) }}", /the width 100000 is more than 1000/],
  ["{{ n.title() }}", /a IntegerValue has no method 'title'/],
  ["{{ 'a' * 1000000 }}", /a product of more than 100000 items/],
  ["{{ '%q' % n }}", /the format '%q' is not known/],
  ["{{ '%s %s' % n }}", /there is no value for the format '%s'/],
  ["{{ nums | select('prime') | list }}", /the test 'prime' is not known/],
  ["{{ nums | map('cube') | list }}", /the filter 'cube' is not known to 'map'/],
  ["{{ 'a' < n }}", /a StringValue and a IntegerValue have no order/],
])("%s is refused", (source, reason) => {
  expect(() => renderedWith(source)).toThrow(reason)
})
