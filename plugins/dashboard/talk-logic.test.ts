import { lexer } from "marked"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { requestOf, snippets } = await webModule("chat-request.js")
const { nodesOf, parsed } = await webModule("parts/markdown.js")
const { makeTalks } = await webModule("talks.js")

interface Node {
  readonly type: string
  readonly props: Readonly<Record<string, unknown>>
}
/** The nodes as HTML, for reading. */
const shown = (node: unknown): string => {
  if (Array.isArray(node)) return node.map(shown).join("")
  if (typeof node !== "object" || node === null) return node ? String(node) : ""
  const { type, props } = node as Node
  const href = props.href ? ` href=${props.href}` : ""
  return `<${type}${href}>${shown(props.children)}</${type}>`
}
const rendered = (text: string) => shown(nodesOf(lexer(text)))

describe("an answer in markdown", () => {
  it.each([
    ["**bold** and `a < b`", "<p><strong>bold</strong> and <code>a < b</code></p>"],
    ["`&lt;b&gt;` &lt;b&gt;", "<p><code>&lt;b&gt;</code> <b></p>"],
    ["# Title", "<h3>Title</h3>"],
    ["1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"],
    ["[x](https://example.com)", "<p><a href=https://example.com>x</a></p>"],
    [
      "|a|\n|-|\n|1|",
      "<div><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table></div>",
    ],
    ["Tom & Jerry's", "<p>Tom & Jerry's</p>"],
  ])("%j is %s", (text, html) => expect(rendered(text)).toBe(html))

  it.each([
    ["3,000 quotes in one another", `${">".repeat(3_000)}a`],
    ["3,000 lists in one another", `${"- ".repeat(3_000)}a`],
    ["60 quotes", `${">".repeat(60)}a`],
    ["a paragraph that takes the parser seconds", "_a".repeat(20_000)],
  ])("with %s stays text", (_, text) => {
    const before = performance.now()
    expect(parsed(lexer, text)).toBeUndefined()
    expect(performance.now() - before).toBeLessThan(5_000)
  })

  it("is parsed where it is long", () => {
    const paragraph = "A sentence of **some** words. ".repeat(30)
    expect(parsed(lexer, `${paragraph}\n\n> > - quoted\n\n`.repeat(100))).toHaveLength(400)
  })

  it("never becomes markup, a script's address, or a request for a picture", () => {
    expect(rendered("<img src=x onerror=alert(1)>")).toContain("<img src=x onerror=alert(1)>")
    expect(
      nodesOf(lexer("<b>x</b>"))
        .flat()
        .every((node: unknown) => typeof node !== "object" || (node as Node).type === "p"),
    ).toBe(true)
    expect(rendered("[x](javascript:alert(1))")).toBe("<p>x</p>")
    expect(rendered("![alt](https://example.com/a.png)")).toBe(
      "<p><a href=https://example.com/a.png>alt</a></p>",
    )
  })
})

describe("a conversation as code", () => {
  const settings = {
    model: "m",
    system: "be brief",
    temperature: "0.2",
    maxTokens: "",
    schema: '{"type":"object"}',
  }
  const body = requestOf(settings, [{ role: "user", content: 'it\'s "5"?' }])

  it("is the request that is sent", () => {
    expect(body).toEqual({
      model: "m",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: 'it\'s "5"?' },
      ],
      temperature: 0.2,
      response_format: {
        type: "json_schema",
        json_schema: { name: "answer", strict: true, schema: { type: "object" } },
      },
    })
    expect(() => requestOf({ ...settings, schema: "{" }, [])).toThrow(SyntaxError)
  })

  it("is quoted for a shell, and has Python's words", () => {
    const curl = snippets.curl("http://x/v1", body)
    expect(curl).toContain("it'\\''s")
    const python = snippets.Python("http://x/v1", body)
    expect(python).toContain('"strict": True,')
    expect(python).toMatch(/^ {4}model="m",$/m)
    expect(snippets.JavaScript("http://x/v1", body)).toContain('"temperature": 0.2')
  })
})

it("conversations are kept without files and errors, the newest first, at most 30", () => {
  let kept: unknown
  const persisted = {
    read: () => kept,
    write: (value: unknown) => {
      kept = value
    },
  }
  const talks = makeTalks({ persisted, makeId: () => "x" })
  talks.keep("empty", [{ role: "user", content: "" }])
  for (let n = 0; n < 35; n++)
    talks.keep(`t${n}`, [
      { role: "user", content: `question ${n}`, files: [{ preview: "blob:" }] },
      { role: "assistant", content: "", problem: {} },
    ])
  talks.keep("t34", [{ role: "user", content: "asked again" }])
  expect(talks.all()).toHaveLength(30)
  expect(talks.all()[0]).toEqual({
    id: "t34",
    title: "asked again",
    messages: [{ role: "user", content: "asked again" }],
  })
  expect(JSON.stringify(talks.all())).not.toContain("blob:")
  talks.forget("t34")
  expect(talks.all()[0].id).toBe("t33")
  kept = "broken"
  expect(talks.all()).toEqual([])
})
