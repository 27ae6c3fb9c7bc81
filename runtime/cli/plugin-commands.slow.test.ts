import { mkdtempSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { runCli } from "../../testing/platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-commands-"))
let count = 0
const config = (text: string): string => {
  const file = join(folder, `deployment-${++count}.yaml`)
  writeFileSync(file, text)
  return file
}

describe("a command of a plugin", () => {
  const effect = createRequire(import.meta.url).resolve("effect")
  writeFileSync(
    join(folder, "greeter.mts"),
    `import { Schema } from "${effect}"
    const run = async ({ arguments: [who], options }) => { process.stdout.write("Hello " + who + (options.loud ? "!" : "") + "\\n") }
    const say = { group: { name: "greetings", about: "Greetings." }, name: "say", about: "Greets.", arguments: [{ name: "who", about: "whom" }],
      config: "any", options: [{ flags: "--loud", about: "loudly" }], load: async () => run }
    export const plugin = { name: "greeter", api: 1, about: "", settings: Schema.Struct({}), needs: [], provides: [], commands: [say], create: () => ({}) }`,
  )
  const file = config("plugins: { ./greeter.mts: {} }\nmodels: []")

  it("is found through the config file that names the plugin", async () => {
    for (const named of [[file], ["-c", file]])
      expect(await runCli(["greetings", "say", "Ada", "--loud", ...named])).toMatchObject({
        code: 0,
        stdout: "Hello Ada!\n",
      })
  })

  it("is unknown without it, and what is wrong with the config is said", async () => {
    const unknown = await runCli(["greetings", "say", "Ada"])
    expect(unknown).toMatchObject({ code: 1 })
    expect(unknown.stderr).toContain("unknown command 'greetings'")
    for (const [text, fix] of [
      ["plugins: [", "Fix: correct the YAML"],
      ["plugins: { ./nowhere.mts: {} }\nmodels: []", "nowhere.mts"],
    ] as const) {
      const { code, stderr } = await runCli(["greetings", "say", "Ada", config(text)])
      expect(code).toBe(1)
      expect(stderr).toContain(fix)
    }
  })
})
