import { execFileSync } from "node:child_process"
import { transformSync } from "esbuild"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const {
  embeddingsBody,
  embeddingsCode,
  linesOf,
  rerankBody,
  rerankCode,
  transcriptionCode,
  transcriptionFields,
} = await webModule("play-request.js")
const { clock, fixed } = await webModule("format.js")
const { offeredTabs } = await webModule("views/play.js")
const { partOf } = await webModule("route.js")

const base = "https://example.com/v1"
const image = { uri: "data:image/png;base64,AA==" }

/** What the shell passes to curl. */
const curlArguments = (program: string): readonly string[] =>
  execFileSync("sh", ["-c", `curl() { printf '%s\\0' "$@"; }\n${program}`], {
    encoding: "utf8",
    env: { RAKIT_API_KEY: "secret" },
  })
    .split("\0")
    .slice(0, -1)

describe("a tab", () => {
  const names = (...capabilities: string[]) =>
    offeredTabs([{ capabilities }]).map(({ name }: { name: string }) => name)

  it("is there where a model has its capability", () => {
    expect(names("chat", "vision")).toEqual(["chat"])
    expect(names("rerank")).toEqual(["rerank"])
    expect(names("transcription", "embeddings")).toEqual(["embeddings", "transcribe"])
    expect(names("image_editing")).not.toContain("chat")
    expect(offeredTabs([])).toEqual([])
  })

  it("has an address", () => {
    expect(partOf("#playground/rerank")).toBe("rerank")
    for (const hash of ["", "#playground", "#playground/", "#verify=a/b"])
      expect(partOf(hash)).toBe("")
  })
})

describe("a request", () => {
  it("has a text for each line that is one, and images behind them", () => {
    expect(linesOf(" a \r\n\n  \nb c")).toEqual(["a", "b c"])
    expect(embeddingsBody({ model: "m", input: "a\nb", dimensions: "" }, [image])).toEqual({
      model: "m",
      input: ["a", "b", { type: "image", image_url: image.uri }],
    })
    expect(rerankBody({ model: "m", query: "q", documents: "a\n", top_n: "2" })).toEqual({
      model: "m",
      query: "q",
      documents: ["a"],
      top_n: 2,
    })
  })

  it("asks for segments, and leaves empty fields out", () => {
    expect(transcriptionFields({ model: "m", language: "", prompt: "" })).toEqual({
      model: "m",
      response_format: "verbose_json",
    })
  })
})

describe("a request as code", () => {
  const nasty = `it's "5" $HOME \`x\` \\ é`
  const embeddings = embeddingsBody({ model: "m", input: nasty, dimensions: "8" }, [image])
  const rerank = rerankBody({ model: "m", query: nasty, documents: nasty, top_n: "" })
  const spoken = { name: `a;"b',c.wav`, ...transcriptionFields({ model: "m", prompt: nasty }) }

  it.each([
    ["embeddings", embeddingsCode(base, embeddings), embeddings],
    ["rerank", rerankCode(base, rerank), rerank],
  ])("for curl has the body of %s, whatever is in it", (path, { curl }, body) => {
    const given = curlArguments(curl)
    expect(given).toContain(`${base}/${path}`)
    expect(given).toContain("Authorization: Bearer secret")
    expect(JSON.parse(given.at(-1)!)).toEqual(body)
  })

  it("for curl sends the file and the fields as they are", () => {
    expect(curlArguments(transcriptionCode(base, spoken).curl).slice(3)).toEqual([
      "-F",
      `file=@"a;\\"b',c.wav"`,
      "--form-string",
      "model=m",
      "--form-string",
      `prompt=${nasty}`,
      "--form-string",
      "response_format=verbose_json",
    ])
  })

  it.each([
    ["embeddings", embeddingsCode(base, embeddings)],
    ["rerank", rerankCode(base, rerank)],
    ["a transcription", transcriptionCode(base, spoken)],
  ])("of %s is JavaScript, and reads the key from the environment", (_, programs) => {
    expect(() => transformSync(programs.JavaScript, { format: "esm" })).not.toThrow()
    for (const text of Object.values(programs)) expect(text).toContain("RAKIT_API_KEY")
    expect(programs.Python).toContain(JSON.stringify(nasty))
  })
})

it.each([
  [0, "0:00.0"],
  [2.55, "0:02.6"],
  [59.96, "1:00.0"],
  [3661.5, "61:01.5"],
])("%d seconds are %s", (seconds, text) => expect(clock(seconds, "en")).toBe(text))

it("what rounds to nothing has no sign", () => {
  expect(fixed(-0.001, "en")).toBe("0.00")
  expect(fixed(-0.126, "id")).toBe("-0,13")
})
