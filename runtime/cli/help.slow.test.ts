import { describe, expect, it } from "vitest"
import { runCli } from "../../testing/platform.ts"
import { makeCli } from "../cli.ts"

describe("rakit --help", () => {
  it("stands at every command", () => {
    const visit = (command: ReturnType<typeof makeCli>): string[] => {
      expect(command.helpInformation()).toMatch(/^Usage: rakit/)
      expect(command.description()).not.toBe("")
      return [command.name(), ...command.commands.flatMap(visit)]
    }
    expect(visit(makeCli()).join(" ")).toBe(
      "rakit serve check init doctor bench completion models list pull verify keys create list revoke hash ledger verify report batch run retrieval audit backup restore storage copy fsck replay migrate",
    )
  })

  it("goes to stdout, with 0", async () => {
    const { code, stdout } = await runCli(["models", "pull", "--help"])
    expect([code, stdout.split("\n")[0]]).toEqual([
      0,
      "Usage: rakit models pull [options] [ids...]",
    ])
  })
})
