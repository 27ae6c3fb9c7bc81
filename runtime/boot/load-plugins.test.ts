import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { loadPlugins } from "./load-plugins.ts"

const folder = realpathSync(mkdtempSync(join(tmpdir(), "rakit-load-plugins-")))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const modules = join(folder, "node_modules")

/** Puts a package beside the config file, where only that file finds it. */
const install = (name: string, code: string, exports: unknown = "./plugin.js"): void => {
  const at = join(modules, name)
  mkdirSync(at, { recursive: true })
  writeFileSync(join(at, "package.json"), JSON.stringify({ name, type: "module", exports }))
  writeFileSync(join(at, "plugin.js"), code)
}

const load = (key: string) => loadPlugins([key], join(folder, "rakit.yaml"))

const cantLoad = (key: string, reason: string) => ({
  plugins: [],
  problems: [
    {
      path: ["plugins", key],
      message: `the plugin can't be loaded: ${reason}`,
      fix: "correct the plugin.",
    },
  ],
})

it("says what an installed package lacks when it imports it, and does not say that it is not installed", async () => {
  install("rakit-badimp", 'import "not-there-pkg"')
  expect(await load("rakit-badimp")).toEqual(
    cantLoad(
      "rakit-badimp",
      `Cannot find package 'not-there-pkg' imported from ${modules}/rakit-badimp/plugin.js`,
    ),
  )
})

it.each(["no luck today", "Invalid key", "Cannot find module of the day"])(
  "says what an installed package throws: %s",
  async (message) => {
    const key = `rakit-${message.replaceAll(" ", "-").toLowerCase()}`
    install(key, `throw new Error(${JSON.stringify(message)})`)
    expect(await load(key)).toEqual(cantLoad(key, message))
  },
)

it("says what is wrong with the package.json of an installed package", async () => {
  install("rakit-gone", "", "./gone.js")
  const { problems } = await load("rakit-gone")
  expect(problems.map(({ message }) => message.split("\n")[0])).toEqual([
    `the plugin can't be loaded: Cannot find module '${modules}/rakit-gone/gone.js'`,
  ])
  install("rakit-closed", "", {})
  expect(await load("rakit-closed")).toEqual(
    cantLoad("rakit-closed", `No "exports" main defined in ${modules}/rakit-closed/package.json`),
  )
})

it.each(["rakit-none", "rakit none", "fs", "node:fs", ""])("knows no plugin '%s'", async (key) => {
  const { plugins, problems } = await load(key)
  expect([plugins, problems.map(({ message }) => message)]).toEqual([
    [],
    [
      `there is no plugin '${key}': it is no built-in name, and no package of this name is installed`,
    ],
  ])
})

it("finds a package beside this server, too, where the config file finds none", async () => {
  const { plugins, problems } = await load("yaml")
  expect([plugins, problems]).toEqual([
    [],
    [
      {
        path: ["plugins", "yaml"],
        message: "the module exports no `plugin`",
        fix: "export it: export const plugin = definePlugin({ ... }).",
      },
    ],
  ])
})

it.each([
  ["name", "name: 5, settings: {}, needs: [], provides: []", "a text"],
  ["settings", 'name: "p", needs: [], provides: []', "a Schema"],
  ["needs", 'name: "p", settings: {}, provides: []', "a list of tokens"],
  ["provides", 'name: "p", settings: {}, needs: []', "a list of tokens"],
  ["create", 'name: "p", settings: {}, needs: [], provides: [], create: 5', "a function"],
])("says that a plugin has no `%s`", async (part, parts, kind) => {
  const module = `export const plugin = { api: 1, create: () => ({}), ${parts} }`
  install(`rakit-without-${part}`, module)
  const { problems } = await load(`rakit-without-${part}`)
  expect(problems.map(({ message }) => message)).toEqual([`the plugin has no \`${part}\`, ${kind}`])
})

it("names the module of a folder that is named in place of it", async () => {
  mkdirSync(join(folder, "own"), { recursive: true })
  mkdirSync(join(folder, "empty"))
  writeFileSync(join(folder, "own/plugin.ts"), "")
  const problem = async (key: string) => (await load(key)).problems
  expect(await problem("./own/")).toEqual([
    {
      path: ["plugins", "./own/"],
      message: `${folder}/own is a folder`,
      fix: "name its module: ./own/plugin.ts.",
    },
  ])
  expect(await problem("./empty")).toEqual([
    {
      path: ["plugins", "./empty"],
      message: `${folder}/empty is a folder`,
      fix: "name the module in it that exports the plugin.",
    },
  ])
})
