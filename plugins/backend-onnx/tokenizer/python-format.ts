import { pythonText, type TemplateValue } from "./python-text.ts"
import { isNumeric } from "./python-values.ts"

/** Rounds to so many digits behind the point as Python does: halves to the even digit. */
export const fixed = (value: number, digits: number): string => {
  const text = value.toFixed(digits)
  const rest = Math.abs(value)
    .toFixed(100)
    .slice(-(100 - digits))
  if (!/^50*$/.test(rest)) return text
  // JavaScript took the larger one
  const even = /[02468]$/.test(text)
  if (even) return text
  const step = 10 ** -digits
  return (Number(text) - Math.sign(value) * step).toFixed(digits)
}

interface Style {
  readonly fill: string
  /** Absent: texts to the left, numbers to the right. */
  readonly align?: "<" | ">" | "^" | "="
  readonly sign: string
  readonly isMarked: boolean
  readonly width: number
  readonly commas: boolean
  readonly digits?: number
  readonly kind: string
}

const marks: Readonly<Record<string, string>> = { x: "0x", X: "0X", o: "0o", b: "0b" }
const bases: Readonly<Record<string, number>> = { x: 16, X: 16, o: 8, b: 2 }

/** The digits of a number without its sign. */
const digitsOf = (size: number, { kind, digits, isMarked, commas }: Style): string => {
  const whole = Math.trunc(size)
  const inBase = bases[kind]
  if (inBase !== undefined) {
    const text = whole.toString(inBase)
    return (isMarked ? marks[kind]! : "") + (kind === "X" ? text.toUpperCase() : text)
  }
  const text =
    kind === "d" || kind === "i"
      ? String(whole)
      : kind === "%"
        ? `${fixed(size * 100, digits ?? 6)}%`
        : kind === "e" || kind === "E"
          ? size.toExponential(digits ?? 6).replace(/e([+-])(\d)$/, "e$10$2")
          : fixed(size, digits ?? 6)
  const cased = kind === "E" ? text.toUpperCase() : text
  return commas ? cased.replace(/\d(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "$&,") : cased
}

const padded = (text: string, sign: string, style: Style, isNumeric: boolean): string => {
  const missing = Math.max(0, style.width - [...sign, ...text].length)
  const align = style.align ?? (isNumeric ? ">" : "<")
  const fill = (count: number) => style.fill.repeat(count)
  if (align === "=") return sign + fill(missing) + text
  if (align === "<") return sign + text + fill(missing)
  const left = align === "^" ? Math.floor(missing / 2) : missing
  return fill(left) + sign + text + fill(missing - left)
}

const numeric = "diueEfFxXob%"

const written = (value: TemplateValue, style: Style): string => {
  if (style.kind === "" || !numeric.includes(style.kind)) {
    const text = style.kind === "r" ? pythonText(value, true) : pythonText(value)
    const shown = style.digits === undefined ? text : [...text].slice(0, style.digits).join("")
    return padded(shown, "", style, isNumeric(value) && style.kind === "")
  }
  if (!isNumeric(value)) throw new Error(`a ${value.type} can't be written as '${style.kind}'`)
  const number = Number(value.value)
  const sign = number < 0 ? "-" : style.sign
  return padded(digitsOf(Math.abs(number), style), sign, style, true)
}

const maxWidth = 1000
const countOf = (digits: string | undefined): number | undefined => {
  if (digits === undefined) return undefined
  if (Number(digits) > maxWidth) throw new Error(`the width ${digits} is more than ${maxWidth}`)
  return Number(digits)
}

const directive = /%(?:\((\w+)\))?([-+ #0]*)(\d+)?(?:\.(\d+))?(.)/gs

/** Python's `format % values`; `named` are those of `%(name)s`. */
export const percentFormat = (
  format: string,
  values: readonly TemplateValue[],
  named: ReadonlyMap<string, TemplateValue>,
): string => {
  let next = 0
  const text = format.replace(directive, (whole, name, flags: string, width, digits, kind) => {
    if (kind === "%") return "%"
    if (!`${numeric.replace("%", "").replace("b", "")}sr`.includes(kind))
      throw new Error(`the format '${whole}' is not known`)
    const value = name === undefined ? values[next++] : named.get(name)
    if (!value) throw new Error(`there is no value for the format '${whole}'`)
    const isZero = flags.includes("0") && kind !== "s" && kind !== "r"
    const precision = countOf(digits)
    return written(value, {
      fill: isZero && !flags.includes("-") ? "0" : " ",
      align: flags.includes("-") ? "<" : isZero ? "=" : ">",
      sign: flags.includes("+") ? "+" : flags.includes(" ") ? " " : "",
      isMarked: flags.includes("#"),
      width: countOf(width) ?? 0,
      commas: false,
      ...(precision !== undefined && { digits: precision }),
      kind: kind === "u" ? "d" : kind,
    })
  })
  if (next < values.length) throw new Error(`the format '${format}' has too few places`)
  return text
}

const specification = /^(?:(.)?([<>^=]))?([-+ ])?(#)?(0)?(\d+)?(,)?(?:\.(\d+))?([deEfFxXobs%])?$/su

const styleOf = (text: string): Style => {
  const parts = specification.exec(text)
  if (!parts) throw new Error(`the format '${text}' is not known`)
  const [, fill, align, sign, mark, zero, width, commas, digits, kind = ""] = parts
  const precision = countOf(digits)
  const isFloat = precision !== undefined && kind === ""
  return {
    fill: fill ?? (zero && !align ? "0" : " "),
    ...(align ? { align: align as "<" } : zero ? { align: "=" } : {}),
    sign: sign === "+" || sign === " " ? sign : "",
    isMarked: mark !== undefined,
    width: countOf(width) ?? 0,
    commas: commas !== undefined,
    ...(precision !== undefined && { digits: precision }),
    kind: isFloat || kind === "s" ? "" : kind === "" && commas ? "d" : kind,
  }
}

const field = /\{\{|\}\}|\{(\w*)(?:!([rs]))?(?::([^{}]*))?\}|[{}]/g

/** Python's `format.format(...)`, of whole values. */
export const braceFormat = (
  format: string,
  values: readonly TemplateValue[],
  named: ReadonlyMap<string, TemplateValue>,
): string => {
  let next = 0
  return format.replace(field, (whole, name, how, spec = "") => {
    if (whole === "{{" || whole === "}}") return whole[0]!
    if (name === undefined) throw new Error(`the format '${format}' is not known`)
    const value = name === "" ? values[next++] : /^\d/.test(name) ? values[name] : named.get(name)
    if (!value) throw new Error(`there is no value for the format '${whole}'`)
    const style = styleOf(spec)
    return written(value, how === "r" ? { ...style, kind: "r" } : style)
  })
}
