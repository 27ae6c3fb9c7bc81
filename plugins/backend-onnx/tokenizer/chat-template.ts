import { Environment, Interpreter, parse, Template, tokenize } from "@huggingface/jinja"
import { pythonFilters } from "./python-filters.ts"
import { methodNames, methodOf, stripped } from "./python-methods.ts"
import { pythonOperators } from "./python-operators.ts"
import { pythonTests } from "./python-tests.ts"
import {
  functionValue,
  pythonText,
  type TemplateValue,
  templateValue,
  textValue,
} from "./python-text.ts"
import { given, itemOf, loopItems } from "./python-values.ts"
import { strftime } from "./strftime.ts"

type Node = Record<string, unknown> & { readonly type?: unknown }
type Member = { readonly object: unknown; readonly property: { readonly value?: unknown } }

/** Which ends of a text the methods of Python's `str` take characters from. */
const ends: Readonly<Record<string, { readonly begin: boolean; readonly end: boolean }>> = {
  strip: { begin: true, end: true },
  lstrip: { begin: true, end: false },
  rstrip: { begin: false, end: true },
}

const stripping =
  (which: (typeof ends)[string]) =>
  (text: unknown, characters?: string | null): string => {
    if (typeof text !== "string") throw new Error("only a text can be stripped")
    return stripped(text, characters ?? undefined, which)
  }

const range = (first: number, ...more: readonly number[]): readonly number[] => {
  const [from, to, step] = more.length ? [first, more[0]!, more[1] ?? 1] : [0, first, 1]
  if (step === 0) throw new Error("range() with a step of 0")
  return Array.from(
    { length: Math.max(0, Math.ceil((to - from) / step)) },
    (_, i) => from + i * step,
  )
}

// templates are rendered in threads that have no clock: the library takes the time, to the minute
const clock = new Template("{{ strftime_now('%Y-%m-%dT%H:%M') }}")

const plainFunctions: Readonly<Record<string, unknown>> = {
  ...{ true: true, false: false, none: null, True: true, False: false, None: null },
  range,
  raise_exception: (message: string) => {
    throw new Error(message)
  },
  strftime_now: (format: string) => strftime(new Date(clock.render()), format),
  ...Object.fromEntries(
    Object.entries(ends).map(([method, which]) => [`str.${method}`, stripping(which)]),
  ),
}

/** With the methods of dictionaries, for which the library takes a key of that name. */
const called: ReadonlySet<string> = new Set([...methodNames, "items", "keys", "values", "get"])

/** What loops printed that may be left, the innermost last. */
const kept: TemplateValue[][] = []

/** A method of ours, or one of the library's. */
const calledMethod = (
  value: TemplateValue,
  name: string,
  args: readonly TemplateValue[],
): TemplateValue => {
  const method = methodOf(value, name)
  if (method) return method(value, given(args))
  const own: unknown = value.builtins.get(name)?.value
  if (typeof own !== "function") throw new Error(`a ${value.type} has no method '${name}'`)
  return own(args, new Environment()) as TemplateValue
}

const valueFunctions: Readonly<
  Record<string, (...args: readonly TemplateValue[]) => TemplateValue>
> = {
  "py.text": (value) => textValue(pythonText(value!)),
  "py.item": (whole, key) => itemOf(whole!, key!),
  "py.begin": () => {
    kept.push([])
    return textValue("")
  },
  "py.keep": (value) => {
    kept.at(-1)!.push(value!)
    return textValue("")
  },
  "py.kept": () =>
    textValue(
      kept
        .pop()!
        .map((value) => pythonText(value))
        .join(""),
    ),
  "py.loop": (value) => loopItems(value!, false),
  "py.pairs": (value) => loopItems(value!, true),
  ...Object.fromEntries(
    Object.entries(pythonFilters).map(([name, filter]) => [
      `filter.${name}`,
      (value, ...more) => filter(value!, given(more)),
    ]),
  ),
  ...Object.fromEntries(
    [...called].map((name) => [
      `method.${name}`,
      (value, ...more) => calledMethod(value!, name, more),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(pythonOperators).map(([name, operator]) => [
      `py.${name}`,
      (...[left, right]: readonly TemplateValue[]) => operator(left!, right!),
    ]),
  ),
}

/** What every template has. Names of functions of ours have a dot, which no variable's has. */
const globals: readonly (readonly [name: string, value: TemplateValue])[] = [
  ...Object.entries(plainFunctions).map(([name, value]) => [name, templateValue(value)] as const),
  ...Object.entries(valueFunctions).map(
    ([name, value]) => [name, functionValue((args) => value(...args))] as const,
  ),
]

// nodes of the library's own class, among which it looks for the arguments of macros
const callNode = Object.getPrototypeOf(parse(tokenize("{{ f() }}")).body[0]) as object

const call = (name: string, args: readonly unknown[]): Node =>
  Object.assign(Object.create(callNode) as object, {
    type: "CallExpression",
    callee: { type: "Identifier", value: name },
    args,
  })

const isMember = (callee: unknown): callee is Member =>
  (callee as Node | null)?.type === "MemberExpression" && (callee as Node).computed === false

/** `text.lstrip(characters)` and other methods become calls of functions. */
const withMethods = (node: Node): Node => {
  const { callee, args } = node as { callee?: unknown; args?: readonly unknown[] }
  if (node.type !== "CallExpression" || !args || !isMember(callee)) return node
  const method = String(callee.property.value)
  const all = [callee.object, ...args]
  if (called.has(method)) return call(`method.${method}`, all)
  return Object.hasOwn(ends, method) && args.length <= 1 ? call(`str.${method}`, all) : node
}

const withFilters = (node: Node): Node => {
  const filter = node.filter as (Node & { callee?: Node; args?: readonly unknown[] }) | undefined
  if (node.type !== "FilterExpression" || !filter) return node
  const name = String(filter.callee?.value ?? filter.value)
  return Object.hasOwn(pythonFilters, name)
    ? call(`filter.${name}`, [node.operand, ...(filter.args ?? [])])
    : node
}

/** `text[0]` is a character, not a half of one. */
const withItems = (node: Node): Node => {
  const { type, computed, object, property } = node
  const plain: unknown[] = ["SliceExpression", "StringLiteral"]
  if (type !== "MemberExpression" || !computed || plain.includes((property as Node).type))
    return node
  return call("py.item", [object, property])
}

const isLeaving = (node: Node): boolean =>
  node.type === "Break" ||
  node.type === "Continue" ||
  (node.type === "If" && ["body", "alternate"].some((key) => leaves(node[key])))

/** Whether a loop may be left from here, or its turn. */
const leaves = (body: unknown): boolean =>
  Array.isArray(body) && (body as readonly Node[]).some(isLeaving)

const silent: ReadonlySet<unknown> = new Set(["Break", "Continue", "Set", "Macro", "Comment"])

/** What is printed is kept aside, so that it stays where a turn ends early. */
const keeping = (node: Node): Node => {
  if (silent.has(node.type)) return node
  if (!isLeaving(node)) return call("py.keep", [node])
  for (const key of ["body", "alternate"])
    if (Array.isArray(node[key])) node[key] = (node[key] as readonly Node[]).map(keeping)
  return node
}

/** The library forgets what a turn of a loop printed before `break` or `continue`. */
const withWholeTurns = (node: Node): Node => {
  if (node.type !== "For" || !leaves(node.body)) return node
  for (const key of ["body", "defaultBlock"])
    if (Array.isArray(node[key])) node[key] = (node[key] as readonly Node[]).map(keeping)
  return call("py.kept", [call("py.begin", []), node])
}

/** Loops see the characters of a text, and take tuples apart. */
const withLoops = (node: Node): Node => {
  if (node.type !== "For") return node
  const name = (node.loopvar as Node).type === "TupleLiteral" ? "py.pairs" : "py.loop"
  const iterable = node.iterable as Node
  const [owner, key] = iterable.type === "SelectExpression" ? [iterable, "lhs"] : [node, "iterable"]
  owner[key] = call(name, [owner[key]])
  return node
}

const withPythonOperators = (node: Node): Node => {
  if (node.type !== "BinaryExpression") return node
  const name = String((node.operator as Node).value)
  if (Object.hasOwn(pythonOperators, name)) return call(`py.${name}`, [node.left, node.right])
  if (name === "~") for (const side of ["left", "right"]) node[side] = call("py.text", [node[side]])
  return node
}

const statements: ReadonlySet<unknown> = new Set([
  ...["Set", "If", "For", "Macro", "CallStatement", "FilterStatement", "Break", "Continue"],
  // text between the blocks
  ...["Comment", "StringLiteral"],
])
const bodies = ["body", "alternate", "defaultBlock"]

/** What is printed is printed as Python does it. */
const withPrinting = (node: Node): Node => {
  for (const key of bodies)
    if (Array.isArray(node[key]))
      node[key] = (node[key] as readonly Node[]).map((each) =>
        statements.has(each.type) ? each : call("py.text", [each]),
      )
  return node
}

/** Rewrites the whole tree, in place where it can. */
const rewritten = (node: unknown): unknown => {
  if (typeof node !== "object" || node === null) return node
  if (Array.isArray(node)) return node.map(rewritten)
  // pairs of a dictionary
  if (node instanceof Map)
    return new Map([...node].map(([key, value]) => [rewritten(key), rewritten(value)]))
  const own = node as Node
  for (const [key, child] of Object.entries(own)) own[key] = rewritten(child)
  return withWholeTurns(
    withPrinting(withLoops(withItems(withPythonOperators(withFilters(withMethods(own)))))),
  )
}

/** A `+` keeps the white space that blocks alone on a line take along; the library doesn't know it. */
const withKeptSpace = (source: string): string =>
  source.replaceAll(/\{([%#])\+/g, "{{ '' }}{$1").replaceAll(/\+([%#])\}/g, "$1}{{ '' }}")

/**
 * A chat template, rendered as transformers does it, which the library doesn't wholly: it ignores
 * the characters that `strip`, `lstrip` and `rstrip` are given and takes all white space, which
 * changes the indentation of earlier answers (Qwen3, SmolLM3), prints, compares and strips values as
 * JavaScript does, counts halves of characters, lacks many filters and methods, and knows few
 * directives of `strftime_now`, in the server's language.
 */
export class ChatTemplate extends Template {
  constructor(source: string) {
    super(withKeptSpace(source))
    rewritten(this.parsed)
  }

  override render(variables: Readonly<Record<string, unknown>>): string {
    const environment = new Environment()
    kept.length = 0
    for (const [name, test] of Object.entries(pythonTests)) environment.tests.set(name, test)
    for (const [name, value] of globals) environment.setVariable(name, value)
    for (const [name, value] of Object.entries(variables))
      environment.setVariable(name, templateValue(value))
    return new Interpreter(environment).run(this.parsed).value as string
  }
}
