import { expect, test } from "vitest"
import { renderedWith } from "./testing/template-values.ts"

// the wanted texts are those of transformers 5.24
test.each([
  [
    "{{ t is string }} {{ n is number }} {{ n is integer }} {{ f is float }} {{ tr is boolean }} {{ none is none }} {{ d is mapping }}",
    "True True True True True True True",
  ],
  [
    "{{ l is sequence }} {{ l is iterable }} {{ t is iterable }} {{ n is iterable }} {{ zz is defined }} {{ zz is undefined }}",
    "True True True False False True",
  ],
  [
    '{{ t is lower }} {{ "AB" is upper }} {{ "ab1" is lower }} {{ "12" is lower }} {{ tr is true }} {{ tr is false }} {{ 1 is true }} {{ t is sequence }} {{ d is sequence }} {{ d is iterable }}',
    "False True True False True False False True True True",
  ],
  [
    "{{ tr is number }} {{ tr is integer }} {{ f is integer }} {{ n is float }} {{ range is callable }} {{ t is callable }} {{ n is odd }} {{ n is even }} {{ neg is odd }}",
    "True False False False True False True False True",
  ],
  [
    "{{ zz is iterable }} {{ none is iterable }} {{ zz is string }} {{ zz is mapping }} {{ zz is none }} {{ zz is sequence }} {{ none is defined }} {{ (1, 2) is sequence }} {{ (1, 2) is iterable }} {{ none is sequence }}",
    "True False False False False True True True True False",
  ],
  [
    '{{ range(3) is iterable }} {{ range(3) is sequence }} {{ d.items is callable }} {{ none is not string }} {{ n is not none }} {{ 1.0 is integer }} {{ true is not boolean }} {{ "" is string }} {{ [] is mapping }}',
    "True True True True True False False True False",
  ],
])("%s", (source, wanted) => {
  expect(renderedWith(source as string)).toBe(wanted)
})

test("keyword arguments of a macro are a mapping", () => {
  const source = "{% macro m() %}{{ kwargs is mapping }}{{ kwargs.a }}{% endmacro %}{{ m(a=1) }}"
  expect(renderedWith(source)).toBe("True1")
})
