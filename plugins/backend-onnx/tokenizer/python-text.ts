import { Environment } from "@huggingface/jinja"
import { WrittenNumber } from "./written-number.ts"

/** A value of a template while it is rendered. */
export type TemplateValue = ReturnType<Environment["set"]>
type Values = ReadonlyMap<string, TemplateValue>
type Made = new (value: unknown) => TemplateValue

// the library does not export the classes of its values
const classOf = (value: unknown): Made => new Environment().set("value", value).constructor as Made
const StringValue = classOf("")
const IntegerValue = classOf(1)
const FloatValue = classOf(0.5)
const ArrayValue = classOf([])
const ObjectValue = classOf({})
const FunctionValue = classOf(() => "")

export const textValue = (text: string): TemplateValue => new StringValue(text)

export const listValue = (items: readonly TemplateValue[]): TemplateValue =>
  new ArrayValue([...items])

export const numberValue = (value: number, isFloat: boolean): TemplateValue =>
  isFloat ? new FloatValue(value) : new IntegerValue(value)

export const functionValue = (
  call: (args: readonly TemplateValue[]) => TemplateValue,
): TemplateValue => new FunctionValue(call)

/** Digits of integers that a number of JavaScript can't hold. */
const digitsOf = new WeakMap<TemplateValue, string>()

const writtenNumber = (written: WrittenNumber): TemplateValue => {
  if (written.isFloat) return new FloatValue(Number(written.text))
  const value = new IntegerValue(Number(written.text))
  digitsOf.set(value, written.text)
  return value
}

/** A variable of a template as the library has it. */
export const templateValue = (input: unknown): TemplateValue => {
  if (input instanceof WrittenNumber) return writtenNumber(input)
  if (typeof input === "string") return textValue(input)
  if (Array.isArray(input)) return new ArrayValue(input.map(templateValue))
  if (typeof input !== "object" || input === null) return new Environment().set("value", input)
  return new ObjectValue(
    new Map(Object.entries(input).map(([key, value]) => [key, templateValue(value)])),
  )
}

/** Python turns to exponents earlier than JavaScript, and marks floats that are whole. */
const floatText = (value: number): string => {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string]
  const power = Number(exponent)
  if (power >= -4 && power < 16)
    return `${Object.is(value, -0) ? "-0" : value}${Number.isInteger(value) ? ".0" : ""}`
  return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`
}

const numberText = (value: TemplateValue, infinity: string): string => {
  const number = value.value as number
  if (value.type === "IntegerValue") return digitsOf.get(value) ?? String(number)
  if (Number.isFinite(number)) return floatText(number)
  return `${number < 0 ? "-" : ""}${infinity}`
}

const escapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const escaped = (character: string): string => {
  const code = character.codePointAt(0)!
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8]
  return escapes[character] ?? `\\${letter}${code.toString(16).padStart(digits, "0")}`
}

// but for characters of private use, which keep text from outside from becoming control tokens
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu

const quoted = (text: string): string => {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  const inner = text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`)
  return quote + inner.replaceAll(unprintable, escaped) + quote
}

/** Python's `str()` of a value; of strings inside of others `repr()`. */
export const pythonText = (value: TemplateValue, isInside = false): string => {
  const inner = (each: TemplateValue) => pythonText(each, true)
  switch (value.type) {
    case "StringValue":
      return isInside ? quoted(value.value as string) : (value.value as string)
    case "BooleanValue":
      return value.value ? "True" : "False"
    case "NullValue":
      return "None"
    case "UndefinedValue":
      return isInside ? "Undefined" : ""
    case "IntegerValue":
    case "FloatValue":
      return numberText(value, "inf")
    case "ArrayValue":
      return `[${(value.value as readonly TemplateValue[]).map(inner).join(", ")}]`
    case "TupleValue": {
      const items = (value.value as readonly TemplateValue[]).map(inner)
      return `(${items.join(", ")}${items.length === 1 ? "," : ""})`
    }
    case "ObjectValue":
      return `{${[...(value.value as Values)].map(([key, each]) => `${quoted(key)}: ${inner(each)}`).join(", ")}}`
    default:
      return value.toString()
  }
}

interface JsonStyle {
  readonly indent: string | undefined
  readonly separators: readonly [string, string]
  readonly isAscii: boolean
  readonly isSorted: boolean
}

const jsonString = (text: string, { isAscii }: JsonStyle): string => {
  const json = JSON.stringify(text)
  return isAscii
    ? json.replaceAll(
        /[\x7f-\uffff]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
      )
    : json
}

const jsonOf = (value: TemplateValue, style: JsonStyle, depth = 0): string => {
  const { indent, separators, isSorted } = style
  const wrapped = (open: string, items: readonly string[], close: string): string => {
    if (!items.length) return open + close
    if (indent === undefined) return open + items.join(separators[0]) + close
    const line = `\n${indent.repeat(depth)}`
    return open + items.map((item) => line + indent + item).join(separators[0]) + line + close
  }
  const inner = (each: TemplateValue) => jsonOf(each, style, depth + 1)
  switch (value.type) {
    case "StringValue":
      return jsonString(value.value as string, style)
    case "BooleanValue":
      return String(value.value)
    case "NullValue":
    case "UndefinedValue":
      return "null"
    case "IntegerValue":
    case "FloatValue":
      return numberText(value, "Infinity")
    case "ArrayValue":
    case "TupleValue":
      return wrapped("[", (value.value as readonly TemplateValue[]).map(inner), "]")
    case "ObjectValue": {
      const entries = [...(value.value as Values)]
      if (isSorted) entries.sort(([a], [b]) => (a < b ? -1 : 1))
      const items = entries.map(
        ([key, each]) => jsonString(key, style) + separators[1] + inner(each),
      )
      return wrapped("{", items, "}")
    }
    default:
      throw new Error(`a ${value.type} is not JSON`)
  }
}

/** The filter `tojson` of transformers, with its arguments in their order. */
export const pythonJson = (
  [value, ...positional]: readonly TemplateValue[],
  named?: Values,
): TemplateValue => {
  const [ascii, indent, separators, sorted] = [
    "ensure_ascii",
    "indent",
    "separators",
    "sort_keys",
  ].map((name, at) => positional[at] ?? named?.get(name))
  const width = indent?.value as number | string | null | undefined
  const style: JsonStyle = {
    indent: typeof width === "number" ? " ".repeat(Math.max(0, width)) : (width ?? undefined),
    separators: separators?.value
      ? ((separators.value as readonly TemplateValue[]).map(({ value: text }) => text) as [
          string,
          string,
        ])
      : [typeof width === "number" || width ? "," : ", ", ": "],
    isAscii: ascii?.value === true,
    isSorted: sorted?.value === true,
  }
  return new StringValue(jsonOf(value!, style))
}
