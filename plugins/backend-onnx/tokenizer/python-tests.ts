import { relations } from "./python-operators.ts"
import { pythonText, type TemplateValue } from "./python-text.ts"
import { isList, isNumeric, isText, isTrue, isUndefined } from "./python-values.ts"

type Test = (value: TemplateValue, ...args: readonly TemplateValue[]) => boolean

const is =
  (...types: readonly string[]): Test =>
  ({ type }) =>
    types.includes(type)

/** Keyword arguments of a macro are one, too. */
const isMapping = is("ObjectValue", "KeywordArgumentsValue")

const hasItems: Test = (value) =>
  isText(value) || isList(value) || isUndefined(value) || isMapping(value)

const related = (operator: string, names: readonly string[]): Readonly<Record<string, Test>> =>
  Object.fromEntries(
    [operator, ...names].map((name) => [
      name,
      (value, other) => {
        if (!other) throw new Error(`the test '${name}' has nothing to compare with`)
        return relations[operator]!(value, other)
      },
    ]),
  )

const divides: Test = (value, other) => {
  if (!isNumeric(value) || !other || !isNumeric(other))
    throw new Error("only a number is divisible by a number")
  return Number(value.value) % Number(other.value) === 0
}

const remainder =
  (wanted: number): Test =>
  (value) =>
    Math.abs(Number(value.value) % 2) === wanted

/** Jinja's tests by their names. */
export const pythonTests: Readonly<Record<string, Test>> = {
  ...related("==", ["eq", "equalto"]),
  ...related("!=", ["ne"]),
  ...related("<", ["lt", "lessthan"]),
  ...related("<=", ["le"]),
  ...related(">", ["gt", "greaterthan"]),
  ...related(">=", ["ge"]),
  ...related("in", []),
  defined: (value) => !isUndefined(value),
  undefined: isUndefined,
  none: is("NullValue"),
  boolean: is("BooleanValue"),
  true: (value) => value.type === "BooleanValue" && isTrue(value),
  false: (value) => value.type === "BooleanValue" && !isTrue(value),
  integer: is("IntegerValue"),
  float: is("FloatValue"),
  number: isNumeric,
  string: isText,
  mapping: isMapping,
  sequence: hasItems,
  iterable: hasItems,
  callable: is("FunctionValue"),
  odd: remainder(1),
  even: remainder(0),
  divisibleby: divides,
  lower: (value) => /\p{L}/u.test(pythonText(value)) && lowered(value) === pythonText(value),
  upper: (value) => /\p{L}/u.test(pythonText(value)) && raised(value) === pythonText(value),
}

const lowered = (value: TemplateValue) => pythonText(value).toLowerCase()
const raised = (value: TemplateValue) => pythonText(value).toUpperCase()

export const testNamed = (name: string): Test => {
  const test = Object.hasOwn(pythonTests, name) ? pythonTests[name] : undefined
  if (!test) throw new Error(`the test '${name}' is not known`)
  return test
}
