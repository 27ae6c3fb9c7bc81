import { fixed } from "./python-format.ts"
import { numberValue, pythonText, textValue } from "./python-text.ts"
import { argument, type Filter, isNumeric, isText, isTrue, numberOf } from "./python-values.ts"

export const textFilter =
  (change: (text: string) => string): Filter =>
  (value) =>
    textValue(change(pythonText(value)))

export const round: Filter = (value, more) => {
  const digits = numberOf(argument(more, 0, "precision"), 0)
  const method = pythonText(argument(more, 1, "method") ?? textValue("common"))
  const number = numberOf(value, 0)
  if (Math.abs(digits) > 15) throw new Error(`can't round to ${digits} digits`)
  const scale = 10 ** digits
  if (method === "floor" || method === "ceil")
    return numberValue(Math[method](number * scale) / scale, true)
  if (method !== "common") throw new Error(`can't round by the method '${method}'`)
  const rounded =
    digits >= 0 ? Number(fixed(number, digits)) : Number(fixed(number * scale, 0)) / scale
  return numberValue(rounded, value.type === "FloatValue")
}

export const truncated: Filter = (value, more) => {
  const length = numberOf(argument(more, 0, "length"), 255)
  const end = pythonText(argument(more, 2, "end") ?? textValue("..."))
  const leeway = numberOf(argument(more, 3, "leeway"), 5)
  const characters = [...pythonText(value)]
  if (characters.length <= length + leeway) return textValue(characters.join(""))
  const cut = characters.slice(0, length - [...end].length).join("")
  if (isTrue(argument(more, 1, "killwords"))) return textValue(cut + end)
  const space = cut.lastIndexOf(" ")
  return textValue((space < 0 ? cut : cut.slice(0, space)) + end)
}

export const whole: Filter = (value, more) => {
  const byDefault = argument(more, 0, "default") ?? numberValue(0, false)
  const base = numberOf(argument(more, 1, "base"), 10)
  if (isNumeric(value)) return numberValue(Math.trunc(Number(value.value)), false)
  if (!isText(value)) return byDefault
  const text = (value.value as string).trim().replace(/(?<=\d)_(?=\d)/g, "")
  const digits = base === 16 ? text.replace(/^([-+]?)0x/i, "$1") : text
  if (base !== 10) {
    const number = Number.parseInt(digits, base)
    return Number.isNaN(number) ? byDefault : numberValue(number, false)
  }
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) return byDefault
  return numberValue(Math.trunc(Number(text)), false)
}

export const indented: Filter = (value, more) => {
  const width = argument(more, 0, "width") ?? numberValue(4, false)
  const space = isText(width) ? (width.value as string) : " ".repeat(numberOf(width, 4))
  const [first, blank] = [argument(more, 1, "first"), argument(more, 2, "blank")].map(isTrue)
  const lines = pythonText(value).split("\n")
  const shifted = lines.map((line, at) => {
    if (at === 0) return first ? space + line : line
    return line === "" && !blank ? line : space + line
  })
  return textValue(shifted.join("\n"))
}

const escapes: Readonly<Record<string, string>> = {
  ...{ "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" },
}

export const escaped = textFilter((text) =>
  text.replace(/[&<>'"]/g, (character) => escapes[character]!),
)
