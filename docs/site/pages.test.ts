import { expect, test } from "vitest"
import { forSite, pages } from "./pages.ts"
import { sidebar } from "./sidebar.ts"

test("links lead to pages of the site, images to copies, and what is no page is only named", () => {
  const images: string[] = []
  const text = [
    "See [files](../../runtime/services/model-files/README.md#the-lock-file), [chat](../endpoint-chat),",
    "[errors](../../docs/errors.md) and [`errors.ts`](../../core/errors.ts), [config](../../config).",
    "![drawn](../../docs/pictures.webp) [out](https://example.com) [here](#settings)",
    "`[code](../../docs/errors.md)` stays",
    "```md\n[code](../../docs/errors.md)\n```",
  ].join("\n")
  expect(forSite("plugins/model-iris/README.md", text, (path) => images.push(path))).toBe(
    [
      "See [files](/model-files#the-lock-file), [chat](/plugins/endpoint-chat),",
      "[errors](/errors) and `errors.ts`, `config`.",
      "![drawn](/docs/pictures.webp) [out](https://example.com) [here](#settings)",
      "`[code](../../docs/errors.md)` stays",
      "```md\n[code](../../docs/errors.md)\n```",
    ].join("\n"),
  )
  expect(images).toEqual(["docs/pictures.webp"])
})

test("every page stands in the table of contents once, and nothing else does", () => {
  const listed = sidebar.flatMap(({ items }) => items.map(({ link }) => `${link.slice(1)}.md`))
  expect(listed.toSorted()).toEqual([...pages.values()].toSorted())
})
