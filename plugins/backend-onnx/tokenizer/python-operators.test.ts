import { expect, test } from "vitest"
import { renderedWith } from "./testing/template-values.ts"

// the wanted texts are those of transformers 5.24
test.each([
  [
    "{{ e[0] }}{{ e[1] }}{{ e[2] }}{{ e[3] }}{{ e[5] }}{{ e[6] is defined }}|{{ e[-1] }}{{ e[-2] }}{{ e[-3] }}{{ e[-5] }}{{ e[-6] }}{{ e[-7] is defined }}",
    "a😀b😀éFalse|é 😀😀aFalse",
  ],
  [
    '{{ "😀😀"[0] }}{{ "😀😀"[1] }}{{ "😀😀"[-1] }}{{ "😀😀"[-2] }}{{ ""[0] is defined }}{{ "😀" | first }}{{ "a😀" | last }}',
    "😀😀😀😀False😀😀",
  ],
  ['{{ "%s" % t }}', "Hello wORLD foo"],
  ['{{ "%s-%s" % (t, n) }}', "Hello wORLD foo-5"],
  ["{{ e[0] }}{{ e[1] }}{{ e[-1] }}", "a😀é"],
  ["{{ e[1:3] }}", "😀b"],
  ['{% set x = l + ["q"] %}{{ x }}', "['b', 'a', 'C', 'a', 'q']"],
  ["{{ none is not none }} {{ zz is not defined }}", "False True"],
  ["{% for x in [] %}a{% else %}none{% endfor %}", "none"],
  [
    '{% for x in l if x != "a" %}{{ x }}{{ loop.index }}{{ loop.last }}{% endfor %}',
    "b1FalseC2True",
  ],
  ["{% for c in e %}[{{ c }}]{% endfor %}", "[a][😀][b][😀][ ][é]"],
  ["{% for k in d %}{{ k }}{% endfor %}", "ba"],
  ["{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}", "1234"],
  ["{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}", "2"],
  [
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }} {{ 1.5 * 2 }}",
    "3 -4 2 -2 3.5 2.0 8 0.5 3.0",
  ],
  ['{{ "a" * 3 }} {{ [1] * 2 }} {{ 3 * "ab" }}', "aaa [1, 1] ababab"],
  ['{{ "a" < "b" }} {{ "a" < "B" }} {{ [1, 2] < [1, 3] }} {{ 1 < 2 < 3 }}', "True False True True"],
  [
    "{{ t[0] }} {{ t[-3:] }} {{ t[::-1] }} {{ l[1:] }} {{ l[::2] }} {{ t[100] }} {{ l[100] is defined }}",
    "H foo oof DLROw olleH ['a', 'C', 'a'] ['b', 'C']  False",
  ],
  [
    '{{ d["b"] }} {{ d.a.x }} {{ d["a"]["x"] }} {{ d.zz }} {{ objs[0]["k"] }} {{ objs.0.k }}',
    "1 2 2  x x",
  ],
  ['{{ not tr }} {{ tr and n }} {{ es or "x" }} {{ (none or 0) == 0 }}', "False 5 x True"],
  ['{{ "a" in d }} {{ 2 in nums }} {{ "ell" in t }} {{ "x" not in t }}', "True True True True"],
  ["{% set a, b = (1, 2) %}{{ a }}{{ b }}", "12"],
  ["{% filter upper %}abc{% endfilter %}", "ABC"],
  ["{% if n == 5 %}a{% elif n == 6 %}b{% else %}c{% endif %}", "a"],
  ["{# c #}x", "x"],
  [
    "{% for x in nums %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}",
    "32",
  ],
  ["{{ \"\\u00e9\\x41\\n\\t\\\\\" }} {{ 'a\\'b' }}", "éA\n\t\\ a'b"],
  ['{{ "a😀" < "a￿" }}', "False"],
  ["{{ 5 is number and 5 is not string }}", "True"],
  [
    "{% for x in nums %}a{{ x }}{% if x == 3 %}b{% continue %}{% endif %}c{% for y in nums %}({{ y }}{% if y == 1 %}!{% break %}{% endif %}){% endfor %}d{% else %}none{% endfor %}e",
    "a3ba1c(3)(1!da2c(3)(1!de",
  ],
  ["{% for x in [] %}{% continue %}{% else %}none{% endfor %}", "none"],
  [
    "{% macro m(v) %}{% for y in v %}{{ y }}{% if y == 1 %}{% break %}{% endif %},{% endfor %}{% endmacro %}{% for x in nums %}[{{ m(nums) }}]{% if x == 1 %}{% continue %}{% endif %};{% set q = x %}{{ q }}{% endfor %}",
    "[3,1];3[3,1][3,1];2",
  ],
  [
    "{% for x in nums %}{% set z %}s{{ x }}{% endset %}{% filter upper %}f{{ z }}{% endfilter %}{% if x == 1 %}{% break %}{% elif x == 2 %}two{% else %}{{ x }}{% continue %}{% endif %}-{% endfor %}",
    "FS33FS1",
  ],
  [
    '{{ "%5.1f|%+d|%s" % (1.25, 3, none) }} {{ "%s" % [1, 2] }} {{ "%d%%" % 5 }}',
    "  1.2|+3|None [1, 2] 5%",
  ],
  ["{% for i in range(2) %}{{ i }}{% endfor %}{% for x in zz %}a{% endfor %}", "01"],
  ["{{ messages is defined and messages[0] is defined }}", "False"],
  [
    "{{ 3 if n % 2 == 1 else 4 }} {{ n % 2 }} {{ loop is defined }} {{ -1 * 2.5 }} {{ 2 * 3 }}",
    "3 1 False -2.5 6",
  ],
])("%s", (source, wanted) => {
  expect(renderedWith(source)).toBe(wanted)
})
