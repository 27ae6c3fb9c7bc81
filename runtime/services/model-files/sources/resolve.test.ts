import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import type { Env } from "../context.ts"
import { setUp } from "../testing/fixture.ts"
import { artifactOf } from "./artifact.ts"
import { pipIndex } from "./pypi.ts"
import { resolveSource } from "./resolve.ts"
import { parseSourceUrl } from "./source-url.ts"

const { dir, server, context } = setUp()
const hex = (digit: string) => digit.repeat(64)

const resolveUrl = (url: string, env: Env, sha256?: string) => {
  const source = Result.getOrThrow(parseSourceUrl(url))
  if (source.scheme === "file") throw new Error("not remote")
  return resolveSource(
    context({ env: { HOME: dir(), PIP_CONFIG_FILE: "/dev/null", ...env } }),
    artifactOf(source, sha256),
    new AbortController().signal,
  )
}

describe("pypi", () => {
  const wheel = (name: string, sha256?: string) => ({
    filename: name,
    url: `../../files/${name}`,
    hashes: sha256 ? { sha256 } : {},
  })

  it("prefers the pure wheel of the JSON index, whose digest is used where none is pinned", async () => {
    const files = [
      wheel("my_model-1.0-cp312-cp312-linux_x86_64.whl", hex("a")),
      wheel("my_model-1.0-py3-none-any.whl", hex("b")),
      wheel("my_model-1.0.1-py3-none-any.whl", hex("c")),
    ]
    server().json(
      "/simple/my-model/",
      { meta: { "api-version": "1.1" }, name: "my-model", files },
      { "content-type": "application/vnd.pypi.simple.v1+json" },
    )
    const env = { PIP_INDEX_URL: `${server().url}/simple/` }
    const origin = await resolveUrl("pypi:My.Model==1.0/x", env)
    expect(origin).toMatchObject({
      form: "zip",
      files: [{ url: `${server().url}/files/my_model-1.0-py3-none-any.whl`, sha256: hex("b") }],
    })
    expect(server().seen[0]?.headers.accept).toMatch(/vnd\.pypi\.simple\.v1\+json.*text\/html/)
    const pinned = await resolveUrl("pypi:my-model==1.0/x", env, hex("a"))
    expect(pinned.files[0]?.url).toContain("linux_x86_64")
    await expect(resolveUrl("pypi:my-model==1.0/x", env, hex("d"))).rejects.toThrow(
      /no wheel of this version with sha256 dddd/,
    )
    await expect(resolveUrl("pypi:my-model==2.0/x", env)).rejects.toThrow(
      /has no wheel of version 2\.0/,
    )
    await expect(resolveUrl("pypi:other==2.0/x", env)).rejects.toThrow(/other\/ answered 404/)
  })

  it("reads an HTML index, with its user and password", async () => {
    const html = `<!DOCTYPE html><body><a href="/files/a%2Db-1.0.tar.gz#sha256=${hex("1")}">x</a>
      <A data-x="1" HREF='../../files/a_b-1.0-py3-none-any.whl?x=1&amp;y=2#sha256=${hex("2")}'>a</A></body>`
    server().handle("/root/simple/a-b/", (_, response) =>
      response.writeHead(200, { "content-type": "text/html" }).end(html),
    )
    const index = `${server().url.replace("//", "//user:word@")}/root/simple`
    const origin = await resolveUrl("pypi:a-b==1.0/x", { PIP_INDEX_URL: index })
    expect(server().seen[0]?.headers.authorization).toMatch(/^Basic /)
    expect(origin.files[0]).toMatchObject({
      url: `${server().url.replace("//", "//user:word@")}/root/files/a_b-1.0-py3-none-any.whl?x=1&y=2`,
      sha256: hex("2"),
    })
  })

  it("asks the index that pip is configured with", async () => {
    const home = dir()
    expect(await pipIndex({ HOME: home, PIP_CONFIG_FILE: "/dev/null" })).toBe(
      "https://pypi.org/simple",
    )
    await mkdir(join(home, ".pip"))
    await writeFile(join(home, ".pip/pip.conf"), "[global]\nindex-url = https://old/simple/\n")
    expect(await pipIndex({ HOME: home })).toBe("https://old/simple")
    await mkdir(join(home, ".config/pip"), { recursive: true })
    await writeFile(
      join(home, ".config/pip/pip.conf"),
      "# mine\n[global]\nindex-url=https://user/simple\n[install]\nindex-url: nothing\n",
    )
    expect(await pipIndex({ HOME: home })).toBe("https://user/simple")
    await writeFile(join(home, "named.conf"), "[install]\nindex-url = https://named/simple\n")
    expect(await pipIndex({ HOME: home, PIP_CONFIG_FILE: join(home, "named.conf") })).toBe(
      "https://named/simple",
    )
    expect(await pipIndex({ HOME: home, PIP_INDEX_URL: "https://env/simple" })).toBe(
      "https://env/simple",
    )
  })
})

describe("npm", () => {
  it("asks the configured registry of a scope with its token, and takes the public address out of the tarball's", async () => {
    const host = server().url.replace("http:", "")
    await writeFile(
      join(dir(), ".npmrc"),
      `@acme:registry=${server().url}/npm/\n${host}/npm/:_authToken=\${TOKEN}\n`,
    )
    server().json("/npm/@acme%2Fmodel/1.0.0", {
      dist: { tarball: "https://registry.npmjs.org/@acme/model/-/model-1.0.0.tgz" },
    })
    const origin = await resolveUrl("npm:@acme/model@1.0.0/x", {
      TOKEN: "t0ken",
      npm_config_registry: "https://other.example",
    })
    expect(server().seen[0]?.headers.authorization).toBe("Bearer t0ken")
    expect(origin).toMatchObject({
      form: "tgz",
      files: [
        {
          url: `${server().url}/npm/@acme/model/-/model-1.0.0.tgz`,
          headers: { authorization: "Bearer t0ken" },
        },
      ],
    })
  })

  it("falls back to the whole package's page, and sends no token to another host", async () => {
    const host = server().url.replace("http:", "")
    await writeFile(join(dir(), ".npmrc"), `registry=${server().url}\n${host}/:_authToken="t"\n`)
    server().json("/model", {
      versions: { "1.0.0": { dist: { tarball: "https://cdn.example/model.tgz" } } },
    })
    expect(await resolveUrl("npm:model@1.0.0/x", {})).toMatchObject({
      files: [{ url: "https://cdn.example/model.tgz", headers: {} }],
    })
    expect(server().seen.map(({ path }) => path)).toEqual(["/model/1.0.0", "/model"])
    await expect(resolveUrl("npm:model@2.0.0/x", {})).rejects.toThrow(/has no version 2\.0\.0/)
  })
})

describe("hub", () => {
  it("names one file, with the token", async () => {
    server().file("/owner/repo/resolve/main/onnx/a%20b.onnx", { body: Buffer.from("x") })
    const origin = await resolveUrl(
      "hf:owner/repo@main/onnx/a b.onnx",
      { HF_ENDPOINT: `${server().url}/`, HF_TOKEN: "t" },
      hex("e"),
    )
    expect(origin).toEqual({
      form: "plain",
      files: [
        {
          url: `${server().url}/owner/repo/resolve/main/onnx/a%20b.onnx`,
          headers: { authorization: "Bearer t" },
          path: "a b.onnx",
          sha256: hex("e"),
          refusal: expect.any(Function),
        },
      ],
    })
  })

  it("takes the files of a folder that are asked for", async () => {
    const names = ["config.json", "onnx/config.json", "a+b.json", "x.safetensors", "x.bin", "p/c"]
    server().json(
      "/api/models/owner/repo/tree/main/m?recursive=true",
      names.map((name) => ({ type: "file", path: `m/${name}` })),
    )
    const pathsOf = async (url: string) =>
      (await resolveUrl(url, { HF_ENDPOINT: server().url })).files.map(({ path }) => path)
    expect(await pathsOf("hf:owner/repo@main/m/{*.json,p/*,x.*s}")).toEqual(
      ["config.json", "a+b.json", "x.safetensors", "p/c"].map((name) => `m/${name}`),
    )
    expect(await pathsOf("hf:owner/repo@main/m/{a+*.json}")).toEqual(["m/a+b.json"])
    await expect(pathsOf("hf:owner/repo@main/m/{*.gguf}")).rejects.toThrow(
      /the folder has no file \*\.gguf/,
    )
  })

  it("lists a folder over its pages, and refuses what leaves it", async () => {
    const tree = "/api/models/owner/repo/tree/main/onnx?recursive=true"
    server().json(
      tree,
      [
        { type: "directory", path: "onnx/x" },
        { type: "file", path: "onnx/config.json", oid: "1" },
      ],
      { link: `<${server().url}/page2>; rel="next"` },
    )
    server().json("/page2", [
      { type: "file", path: "onnx/x/model.onnx", lfs: { oid: hex("f"), size: 1 } },
    ])
    const env = { HF_ENDPOINT: server().url }
    const origin = await resolveUrl("hf:owner/repo@main/onnx/", env)
    expect(origin.files.map(({ path, sha256 }) => [path, sha256])).toEqual([
      ["onnx/config.json", undefined],
      ["onnx/x/model.onnx", hex("f")],
    ])
    server().json(tree, [{ type: "file", path: "../x" }])
    await expect(resolveUrl("hf:owner/repo@main/onnx/", env)).rejects.toThrow(/unsafe path/)
    server().json(tree, [], { link: '<https://elsewhere.example/page2>; rel="next"' })
    await expect(resolveUrl("hf:owner/repo@main/onnx/", env)).rejects.toThrow(/on another host/)
    server().json(tree, { error: "no" })
    await expect(resolveUrl("hf:owner/repo@main/onnx/", env)).rejects.toThrow(/not a listing/)
  })
})
