import { existsSync, readFileSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, extname, isAbsolute, join, relative, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Plugin } from "../../core/plugin.ts"
import { builtinPlugins } from "../../plugins/index.ts"
import { nearest, type Problem } from "../config/problems.ts"

/** A plugin as the config file names it. */
export interface NamedPlugin {
  /** The key under `plugins`. */
  readonly key: string
  readonly plugin: Plugin
  /** The folder of its module, where that is known. */
  readonly folder?: string | undefined
}

const isPath = (name: string) => name.startsWith(".") || isAbsolute(name)

/**
 * Lets a compiled server import TypeScript plugins. Without a namespace: the plugin must share our
 * copy of effect.
 */
const readTypeScript = async (): Promise<void> => {
  const { register } = await import("tsx/esm/api")
  register()
}

/** `type` in the nearest package.json. */
const packageTypeOf = (folder: string): unknown => {
  const file = join(folder, "package.json")
  if (existsSync(file))
    return (JSON.parse(readFileSync(file, "utf8")) as { readonly type?: unknown }).type
  return dirname(folder) === folder ? undefined : packageTypeOf(dirname(folder))
}

const isCompiled = import.meta.url.endsWith(".js")
const compiledRoot = join(import.meta.dirname, "..", "..")

/**
 * The compiled file of a source of this package (a fake for tests), so that it shares the compiled
 * kernel.
 */
const compiledTwin = (file: string): string | undefined => {
  const inside = relative(dirname(compiledRoot), file)
  const twin = join(compiledRoot, inside.replace(/\.ts$/, ".js"))
  return isCompiled && !inside.startsWith("..") && twin !== file && existsSync(twin)
    ? twin
    : undefined
}

const importFile = async (file: string): Promise<unknown> => {
  const twin = compiledTwin(file)
  if (!twin && isCompiled && [".ts", ".mts"].includes(extname(file))) await readTypeScript()
  return import(/* @vite-ignore */ pathToFileURL(twin ?? file).href)
}

interface Loaded {
  readonly module: unknown
  readonly folder?: string | undefined
}

/** Where this package finds `name`; undefined where that can't be said. */
const ownResolve = (name: string): string | undefined => {
  try {
    return fileURLToPath(import.meta.resolve(name))
  } catch {
    return undefined
  }
}

/**
 * Returns the file of a package: as the config file finds it, else as this package does; undefined
 * where none is installed. Throws where one is installed that names no file for it, as the mistake is
 * then not in its name.
 */
const packageFile = (name: string, configFile: string): string | undefined => {
  try {
    const file = createRequire(configFile).resolve(name)
    // Node's own modules have no file
    return isAbsolute(file) ? file : undefined
  } catch (cause) {
    // `exports` for `import` alone are read here
    const own = ownResolve(name)
    if (own === undefined && !(cause as Error).message.startsWith(`Cannot find module '${name}'`))
      throw cause
    return own
  }
}

/** What every plugin has, and what that is. */
const parts: Readonly<Record<string, readonly [kind: string, fits: (part: unknown) => boolean]>> = {
  name: ["a text", (part) => typeof part === "string"],
  settings: ["a Schema", (part) => part !== undefined],
  needs: ["a list of tokens", Array.isArray],
  provides: ["a list of tokens", Array.isArray],
  create: ["a function", (part) => typeof part === "function"],
}

const isProblem = <T>(value: T | Omit<Problem, "path">): value is Omit<Problem, "path"> =>
  typeof (value as Partial<Problem>).message === "string" &&
  typeof (value as Partial<Problem>).fix === "string"

const unknownPlugin = (key: string): Problem => {
  const names = Object.keys(builtinPlugins)
  const near = nearest(key, names)
  return {
    path: ["plugins", key],
    message: `there is no plugin '${key}': it is no built-in name, and no package of this name is installed`,
    fix: `${near ? `write '${near}'? ` : ""}Built-in: ${names.join(", ")}. Or name an installed package, or a path (./my-plugin.ts).`,
  }
}

const loadPath = async (key: string, file: string): Promise<Loaded | Problem> => {
  const path = ["plugins", key]
  if (!existsSync(file))
    return {
      path,
      message: `there is no file ${file}`,
      fix: "correct the path; it is relative to the config file.",
    }
  if (statSync(file).isDirectory()) {
    const own = ["plugin.ts", "plugin.js", "plugin.mjs"].find((name) =>
      existsSync(join(file, name)),
    )
    return {
      path,
      message: `${file} is a folder`,
      fix: own
        ? `name its module: ${key.replace(/\/+$/, "")}/${own}.`
        : "name the module in it that exports the plugin.",
    }
  }
  try {
    return { module: await importFile(file), folder: dirname(file) }
  } catch (cause) {
    if (extname(file) !== ".ts" || packageTypeOf(dirname(file)) === "module") throw cause
    return {
      path,
      message: `the plugin can't be loaded as an ES module: ${(cause as Error).message}`,
      fix: 'put a package.json with {"type": "module"} beside it, or name it .mts.',
    }
  }
}

const load = async (key: string, configFile: string): Promise<Loaded | Problem> => {
  const builtin = Object.hasOwn(builtinPlugins, key) ? builtinPlugins[key] : undefined
  if (builtin) return { module: await builtin() }
  if (isPath(key)) return loadPath(key, resolve(dirname(configFile), key))
  const file = packageFile(key, configFile)
  return file === undefined
    ? unknownPlugin(key)
    : { module: await importFile(file), folder: dirname(file) }
}

/** The plugin that a module exports, or why there is none that this server can run. */
const pluginIn = (module: { readonly plugin?: unknown }): Plugin | Omit<Problem, "path"> => {
  if (typeof module.plugin !== "object" || module.plugin === null)
    return {
      message: "the module exports no `plugin`",
      fix: "export it: export const plugin = definePlugin({ ... }).",
    }
  const plugin = module.plugin as Plugin
  // first: one of another version may have other parts
  if (plugin.api !== 1)
    return {
      message: `the plugin speaks version ${String(plugin.api)} of the plugin contract; this server speaks 1`,
      fix: "install a version of the plugin that fits.",
    }
  for (const [part, [kind, fits]] of Object.entries(parts))
    if (!fits(plugin[part as keyof Plugin]))
      return {
        message: `the plugin has no \`${part}\`, ${kind}`,
        fix: "define it: definePlugin({ ... }) says what a plugin has.",
      }
  return plugin
}

/** Imports the plugins of a config file. Never rejects: what can't be used is a problem. */
export const loadPlugins = async (
  keys: readonly string[],
  configFile: string,
): Promise<{ readonly plugins: readonly NamedPlugin[]; readonly problems: readonly Problem[] }> => {
  const plugins: NamedPlugin[] = []
  const problems: Problem[] = []
  for (const key of keys) {
    const path = ["plugins", key]
    try {
      const loaded = await load(key, configFile)
      const found = isProblem(loaded) ? loaded : pluginIn(loaded.module as { plugin?: unknown })
      if (isProblem(found)) problems.push({ ...found, path })
      else plugins.push({ key, plugin: found, folder: (loaded as Loaded).folder })
    } catch (cause) {
      problems.push({
        path,
        message: `the plugin can't be loaded: ${(cause as Error).message}`,
        fix: "correct the plugin.",
      })
    }
  }
  return { plugins, problems }
}
