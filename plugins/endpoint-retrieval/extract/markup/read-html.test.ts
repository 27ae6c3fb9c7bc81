import { expect, it } from "vitest"
import { textOf } from "../../testing/read-parts.ts"

const page = (body: string) => textOf("html", `<!doctype html><html><body>${body}</body></html>`)

it("gives what is shown of a page, with its title", async () => {
  const source = `<!doctype html><html><head><title>On  cats</title><style>p { x: "y" }</style>
    <script>const a = "<p>no</p>"</script></head>
    <body><nav><ul><li>One<li>Two</ul></nav>
    <h1>Cats</h1><p>They   <b>pur</b>r,
    and &quot;meow&quot; &amp; hiss.<p hidden>Not this<br>nor this.</p>
    <div>A line<br>and another</div><div>a third</div>
    <pre>  kept
    as it is</pre><template>no</template><noscript>no</noscript></body></html>`
  expect(await textOf("htm", source)).toBe(
    `On cats

One
Two

Cats

They purr, and "meow" & hiss.

A line
and another
a third

  kept
    as it is`,
  )
})

it("gives each row of a table a line", async () => {
  expect(
    await page(
      "Before<table><tr><th>Name<th>Age</tr>\n<tr> <td><p>Ann</p><p>Lee</p></td> <td>30</td></tr></table>After",
    ),
  ).toBe("Before\n\nName | Age\nAnn Lee | 30\n\nAfter")
})

it("reads the encoding that a page names, and refuses what is in none", async () => {
  const text = "<p>Gr\u00fc\u00dfe</p>"
  const named = Buffer.from(`<meta charset="iso-8859-1">${text}`, "latin1")
  expect(await textOf("html", named)).toBe("Gr\u00fc\u00dfe")
  expect(await textOf("html", `<meta charset=utf-8>${text}`)).toBe("Gr\u00fc\u00dfe")
  await expect(textOf("html", Buffer.from(text, "latin1"))).rejects.toMatchObject({
    message: "The file is not a text in UTF-8. Save it as UTF-8, then upload it again.",
  })
  await expect(textOf("html", "<meta charset=klingon>")).rejects.toMatchObject({
    message: "The file names an encoding that is not known: klingon.",
  })
})

it("reads what is not well-formed", async () => {
  expect(await page("<p>One<div><b>Two</p></i></td></div>Three<<<&bogus; <")).toContain("Three")
  expect(await page(`${"<div>".repeat(5000)}Deep`)).toBe("Deep")
})
