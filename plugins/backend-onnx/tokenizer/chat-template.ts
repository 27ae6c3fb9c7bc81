import { Template } from "@huggingface/jinja"

type Node = { readonly type?: unknown; callee?: unknown; args?: readonly unknown[] }
type Member = { readonly object: unknown; readonly property: { readonly value?: unknown } }

/** Which ends of a text the methods of Python's `str` take characters from. */
const ends: Readonly<Record<string, { readonly begin: boolean; readonly end: boolean }>> = {
  strip: { begin: true, end: true },
  lstrip: { begin: true, end: false },
  rstrip: { begin: false, end: true },
}

const whiteSpace = " \t\n\r\v\f"

const stripping =
  ({ begin, end }: (typeof ends)[string]) =>
  (text: unknown, characters: string | null): string => {
    if (typeof text !== "string") throw new Error("only a text can be stripped")
    const stripped = new Set(characters ?? whiteSpace)
    const all = [...text]
    let [from, to] = [0, all.length]
    while (begin && from < to && stripped.has(all[from]!)) from++
    while (end && from < to && stripped.has(all[to - 1]!)) to--
    return all.slice(from, to).join("")
  }

// no variable of a template has a dot
const functionName = (method: string): string => `str.${method}`
const functions = Object.fromEntries(
  Object.entries(ends).map(([method, which]) => [functionName(method), stripping(which)]),
)

const isMember = (callee: unknown): callee is Member =>
  (callee as { readonly type?: unknown } | null)?.type === "MemberExpression" &&
  (callee as { readonly computed?: unknown }).computed === false

/** `text.lstrip(characters)` becomes a call of a function, in the whole tree. */
const bindStripping = (node: unknown): void => {
  if (typeof node !== "object" || node === null) return
  for (const child of Object.values(node)) bindStripping(child)
  const call = node as Node
  if (call.type !== "CallExpression" || call.args?.length !== 1 || !isMember(call.callee)) return
  const method = String(call.callee.property.value)
  if (!Object.hasOwn(ends, method)) return
  call.args = [call.callee.object, ...call.args]
  call.callee = { type: "Identifier", value: functionName(method) }
}

/**
 * A chat template. The library ignores the characters that `strip`, `lstrip` and `rstrip` are given
 * and takes all white space, which changes the indentation of earlier answers (Qwen3, SmolLM3).
 */
export class ChatTemplate extends Template {
  constructor(source: string) {
    super(source)
    bindStripping(this.parsed)
  }

  override render(variables: Readonly<Record<string, unknown>>): string {
    return super.render({ ...variables, ...functions })
  }
}
