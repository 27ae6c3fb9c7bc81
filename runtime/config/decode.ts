import { Result, Schema, SchemaAST, SchemaIssue } from "effect"
import { retype } from "./interpolate.ts"
import { type ConfigPath, nearest, type Problem } from "./problems.ts"

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const plainPath = (path: readonly unknown[] = []): ConfigPath =>
  path.map(
    (segment) =>
      (typeof segment === "object" && segment !== null && "key" in segment
        ? segment.key
        : segment) as string | number,
  )

/** The value at `path`; undefined where there is none. */
export const getIn = (value: unknown, path: ConfigPath): unknown =>
  path.reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null
        ? (at as Record<string | number, unknown>)[key]
        : undefined,
    value,
  )

const setIn = (value: unknown, path: ConfigPath, next: unknown): unknown => {
  const [key, ...rest] = path
  if (key === undefined) return next
  if (Array.isArray(value))
    return value.map((item, index) => (index === key ? setIn(item, rest, next) : item))
  return {
    ...(value as object),
    [key]: setIn((value as Record<string | number, unknown>)[key], rest, next),
  }
}

/** Effect's empty struct takes every value; a plugin without settings takes an empty object only. */
export const closed = <A>(schema: Schema.Codec<A, unknown>): Schema.Codec<A, unknown> => {
  const { ast } = schema
  const isEmpty =
    SchemaAST.isObjects(ast) && !ast.propertySignatures.length && !ast.indexSignatures.length
  return isEmpty ? (Schema.Record(Schema.String, Schema.Never) as never) : schema
}

/** The keys that the schema knows at `path`. */
const knownKeys = (schema: Schema.Top, path: ConfigPath): readonly string[] => {
  type JsonSchema = {
    properties?: Record<string, JsonSchema>
    items?: JsonSchema
    $ref?: string
    prefixItems?: JsonSchema[]
  }
  try {
    const document = Schema.toJsonSchemaDocument(schema)
    const resolve = (node: JsonSchema | undefined): JsonSchema | undefined =>
      node?.$ref
        ? resolve(
            (document.definitions as Record<string, JsonSchema>)[node.$ref.split("/").at(-1) ?? ""],
          )
        : node
    const found = path.reduce<JsonSchema | undefined>((node, key) => {
      const at = resolve(node)
      return typeof key === "number" ? at?.items : at?.properties?.[key]
    }, document.schema as JsonSchema)
    return Object.keys(resolve(found)?.properties ?? {})
  } catch {
    return []
  }
}

const toProblem = (
  schema: Schema.Top,
  base: ConfigPath,
  message: string,
  path: ConfigPath,
): Problem => {
  const at = [...base, ...path]
  if (message.includes("no excess property") || message === "Expected never") {
    const known = knownKeys(schema, path.slice(0, -1))
    const near = nearest(String(path.at(-1)), known)
    const list = known.length ? `Known keys: ${known.join(", ")}.` : "No settings are known here."
    return {
      path: at,
      message: `unknown key '${String(path.at(-1))}'`,
      fix: near ? `write '${near}', or remove it. ${list}` : `remove it. ${list}`,
    }
  }
  if (message.startsWith("Missing key"))
    return { path: at, message: `'${String(path.at(-1))}' is missing`, fix: "add it." }
  const said = message.charAt(0).toLowerCase() + message.slice(1)
  return {
    path: at,
    message: said,
    fix: `write a value that fits${said.startsWith("expected ") ? `: ${said.slice("expected ".length)}` : ""}.`,
  }
}

/**
 * Decodes a part of the config file. A value from the environment is text; where the schema expects
 * a number or a boolean, it is
 * converted. `base` is the part's own path in the file.
 */
export const decodePart = <A>(
  open: Schema.Codec<A, unknown>,
  input: unknown,
  base: ConfigPath,
  fromEnvironment: ReadonlySet<string>,
): Result.Result<A, readonly Problem[]> =>
  Result.map(decodeTyped(open, input, base, fromEnvironment), ({ decoded }) => decoded)

/** As `decodePart`; `input` of the result is the part with numbers and booleans as such. */
export const decodeTyped = <A>(
  open: Schema.Codec<A, unknown>,
  input: unknown,
  base: ConfigPath,
  fromEnvironment: ReadonlySet<string>,
): Result.Result<{ readonly decoded: A; readonly input: unknown }, readonly Problem[]> => {
  const schema = closed(open)
  const decode = Schema.decodeUnknownResult(schema)
  const options = { errors: "all", onExcessProperty: "error" } as const
  const attempt = (value: unknown, retyped: boolean): ReturnType<typeof decodeTyped<A>> => {
    const decoded = decode(value, options)
    if (Result.isSuccess(decoded)) return Result.succeed({ decoded: decoded.success, input: value })
    const issues = formatIssues(decoded.failure.issue).issues.map((issue) => ({
      message: issue.message,
      path: plainPath(issue.path),
    }))
    const typed = issues.reduce((at, { path }) => {
      const text = getIn(at, path)
      return typeof text === "string" && fromEnvironment.has(JSON.stringify([...base, ...path]))
        ? setIn(at, path, retype(text))
        : at
    }, value)
    if (!retyped && typed !== value) return attempt(typed, true)
    return Result.fail(
      issues.map(({ message, path }) => {
        const problem = toProblem(schema, base, message, path)
        // the reported line shows the variable, not its value
        return fromEnvironment.has(JSON.stringify(problem.path))
          ? { ...problem, fix: `${problem.fix} The environment variable in this line sets it.` }
          : problem
      }),
    )
  }
  return attempt(input, false)
}
