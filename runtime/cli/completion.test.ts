import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it, vi } from "vitest"
import { makeCli } from "../cli.ts"
import { completion } from "./completion.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-completion-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const scriptFor = (shell: string): string => {
  const written: string[] = []
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    written.push(String(text))
    return true
  })
  completion(makeCli(), shell)
  write.mockRestore()
  return written.join("")
}

describe("completion of bash", () => {
  const file = join(folder, "rakit.bash")
  writeFileSync(file, scriptFor("bash"))
  writeFileSync(join(folder, "mine.yaml"), "")

  /** What bash offers after these words; the last is being typed. */
  const offered = (...words: readonly string[]): readonly string[] => {
    const typed = ["rakit", ...words].map((word) => `'${word}'`).join(" ")
    const script = `source ${file}; COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _rakit; printf '%s\\n' "\${COMPREPLY[@]}"`
    return execFileSync("bash", ["-O", "extglob", "-c", script], { cwd: folder, encoding: "utf8" })
      .split("\n")
      .filter((line) => line !== "")
  }

  it.each([
    [["do"], ["doctor"]],
    [["models", ""], expect.arrayContaining(["list", "pull", "verify"])],
    [["models", "pull", "--up"], ["--update"]],
    [["ledger", "report", "--a"], ["--account"]],
    [["serve", "mi"], ["mine.yaml"]],
    [["serve", "--ro"], ["--role"]],
  ])("%j", (words, found) => expect(offered(...words)).toEqual(found))
})

it("fish and zsh have every command", () => {
  for (const shell of ["fish", "zsh"])
    for (const { name } of makeCli().commands.map((one) => ({ name: one.name() })))
      expect(scriptFor(shell)).toContain(name)
})
