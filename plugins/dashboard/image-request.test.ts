import { execFileSync } from "node:child_process"
import { transformSync } from "esbuild"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { bytesOf, imageBodies, seedOf } = await webModule("image-request.js")
const { imageCode } = await webModule("image-code.js")

const base = "https://example.com/v1"
const fields = { model: "m", prompt: "it's red", size: "64x64", num_steps: "4", strength: "0.5" }
const looks = [
  { lora: "", strength: "0.6" },
  { lora: "dark", strength: "1" },
]
const bodies = imageBodies(fields, { looks, images: [], seed: 7 })
const names = ['a "b".png', "c.jpg"]

describe("pictures side by side", () => {
  it("have the same prompt and seed, and differ in their LoRAs", () => {
    const common = { model: "m", prompt: "it's red", size: "64x64", num_steps: 4, seed: 7 }
    expect(bodies).toEqual([common, { ...common, lora: "dark", lora_strength: 1 }])
  })

  it("leave to the server what is left empty; only edits have a strength", () => {
    const empty = { ...fields, size: "", num_steps: "" }
    const images = ["data:image/png;base64,AA=="]
    expect(imageBodies(empty, { looks: [looks[0]], images, seed: 0 })).toEqual([
      { model: "m", prompt: "it's red", seed: 0, images, strength: 0.5 },
    ])
  })

  it("have a random seed where none is written", () => {
    expect(seedOf("0")).toBe(0)
    expect(seedOf("", () => 0.999_999_999_999)).toBe(2 ** 31 - 1)
    expect(seedOf("", () => 0)).toBe(0)
  })

  it("come as base64", () => {
    expect([...bytesOf(Buffer.from([0, 137, 255]).toString("base64"))]).toEqual([0, 137, 255])
  })
})

/** What the shell passes to curl, call by call; what is behind the pipes is left out. */
const curlArguments = (program: string): readonly string[][] =>
  execFileSync(
    "sh",
    [
      "-c",
      `curl() { printf '%s\\0' "$@" >&3; printf '\\1' >&3; }; jq() { cat; }\nexec 3>&1\ncd /dev\n${program.replaceAll(/> picture\S*/g, "> /dev/null")}`,
    ],
    { encoding: "utf8", env: { ...process.env, RAKIT_API_KEY: "secret" } },
  )
    .split("\x01")
    .slice(0, -1)
    .map((call) => call.split("\0").slice(0, -1))

describe("the code", () => {
  it("calls once for each picture with curl", () => {
    const calls = curlArguments(imageCode(base, bodies, []).curl)
    expect(calls).toHaveLength(2)
    expect(calls[0]![0]).toBe(`${base}/images/generations`)
    expect(calls.map((call) => JSON.parse(call.at(-1)!))).toEqual(bodies)
  })

  it("sends an edit's images as a form, whatever their names", () => {
    const [call] = curlArguments(imageCode(base, [bodies[1]], names).curl)
    expect(call).toContain('image[]=@"a \\"b\\".png"')
    expect(call).toContain("prompt=it's red")
    expect(call).toContain("lora_strength=1")
    expect(call![0]).toBe(`${base}/images/edits`)
  })

  it.each([
    ["one picture", [bodies[1]], []],
    ["several pictures", bodies, []],
    ["an edit", [bodies[0]], names],
    ["several edits", bodies, names],
  ])("of %s is a program in JavaScript and in Python", (_, of, files) => {
    const { JavaScript, Python } = imageCode(base, of, files)
    expect(() => transformSync(JavaScript, { loader: "js", format: "esm" })).not.toThrow()
    execFileSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], {
      input: Python,
    })
    expect(JavaScript).toContain(files.length ? "client.images.edit(" : "client.images.generate(")
    expect(Python).toContain(files.length ? "client.images.edit(" : "client.images.generate(")
    if (of.length > 1) for (const code of [JavaScript, Python]) expect(code).toContain('"dark"')
  })
})
