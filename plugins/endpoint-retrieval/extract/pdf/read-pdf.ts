import { createRequire } from "node:module"
import { dirname, join, sep } from "node:path"
import type { PDFDocumentProxy, PDFPageProxy, TextItem } from "pdfjs-dist/types/src/display/api.js"
import type { Bytes, ExtractLimits, Part } from "../extract-parts.ts"
import { ReadFailure } from "../read-failure.ts"
import { isVisible } from "../visible-text.ts"
import { wholeOf } from "../whole-of.ts"
import { PageText } from "./page-text.ts"

/** What the library uses for drawing alone, without which it does not load. */
const standInForDrawing = (): void => {
  const stand = globalThis as unknown as Record<string, unknown>
  for (const name of ["DOMMatrix", "ImageData", "Path2D"]) stand[name] ??= class {}
}

const loadLibrary = async () => {
  standInForDrawing()
  return import("pdfjs-dist/legacy/build/pdf.mjs")
}

const library = dirname(createRequire(import.meta.url).resolve("pdfjs-dist/package.json"))
const folderOf = (name: string) => join(library, name) + sep

const damaged = (where: string) =>
  new ReadFailure("broken", `${where} can't be read: the file is damaged.`)

const nameOf = (cause: unknown) => (cause instanceof Error ? cause.name : "")

const openPdf = async (data: Uint8Array): Promise<PDFDocumentProxy> => {
  if (data.byteLength === 0) throw new ReadFailure("empty", "The file is empty.")
  const { getDocument, VerbosityLevel } = await loadLibrary()
  const task = getDocument({
    data,
    cMapUrl: folderOf("cmaps"),
    standardFontDataUrl: folderOf("standard_fonts"),
    disableFontFace: true,
    useSystemFonts: false,
    enableXfa: false,
    isEvalSupported: false,
    useWasm: false,
    maxImageSize: 1,
    verbosity: VerbosityLevel.WARNINGS,
  })
  try {
    return await task.promise
  } catch (cause) {
    if (nameOf(cause) === "PasswordException")
      throw new ReadFailure(
        "encrypted",
        "The file is encrypted and opens with a password only. Remove the password, then upload the file again.",
      )
    throw damaged("The file's structure")
  }
}

const isText = (item: unknown): item is TextItem => typeof (item as TextItem).str === "string"

const textOf = async (page: PDFPageProxy): Promise<string> => {
  const text = new PageText()
  const reader = page.streamTextContent({ includeMarkedContent: false }).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text.toString()
    for (const item of value.items) if (isText(item)) text.add(item)
  }
}

/**
 * What the library skipped, as viewers do, that may have been text. A form that a page names, but
 * nobody made, is nothing that was there.
 */
const skipped =
  /^Warning: (getTextContent - ignoring (errors|XObject(?!.*should be a stream))|getContentStream - ignoring)/

/** Runs with the library's warnings noticed: it has no other way to say that it skipped a part. */
const noticing = async <A>(run: (hasSkipped: () => boolean) => Promise<A>): Promise<A> => {
  const { warn } = console
  let found = false
  console.warn = (message: unknown) => {
    found ||= skipped.test(String(message))
  }
  try {
    return await run(() => found)
  } finally {
    console.warn = warn
  }
}

const openQuietly = (data: Uint8Array) => noticing(() => openPdf(data))

interface Annotation {
  readonly subtype?: string
  readonly fieldValue?: unknown
  readonly contentsObj?: { readonly str: string }
}

/** What people filled into forms, or typed onto a page, which is no part of the page's content. */
const typed = ({ subtype, fieldValue, contentsObj }: Annotation): unknown => {
  if (subtype === "Widget") return fieldValue === "Off" ? "" : fieldValue
  return subtype === "FreeText" ? contentsObj?.str : ""
}

const typedOn = async (page: PDFPageProxy): Promise<string> => {
  // a page whose annotations are damaged is whole without them
  const annotations: readonly Annotation[] = await page.getAnnotations().catch(() => [])
  return annotations
    .flatMap(typed)
    .filter((text) => typeof text === "string" && text.trim() !== "")
    .join("\n")
}

const readPage = async (pdf: PDFDocumentProxy, number: number): Promise<Part> => {
  const where = `Page ${number} of ${pdf.numPages}`
  const text = await noticing(async (hasSkipped) => {
    const page = await pdf.getPage(number)
    const parts = [await textOf(page), await typedOn(page)]
    const found = parts.filter(Boolean).join("\n\n")
    page.cleanup()
    if (hasSkipped()) throw damaged(where)
    return found
  }).catch((cause: unknown) => {
    throw cause instanceof ReadFailure || cause instanceof RangeError ? cause : damaged(where)
  })
  return { page: number, text: `[Page ${number}]\n${text}\n\n`, isBlank: !isVisible(text) }
}

/** The text of a PDF, page by page, each after a mark with its number. */
export async function* readPdf(bytes: Bytes, limits: ExtractLimits): AsyncGenerator<Part> {
  const pdf = await openQuietly(await wholeOf(bytes))
  try {
    if (pdf.numPages > limits.maxPages)
      throw new ReadFailure(
        "too_large",
        `The file has ${pdf.numPages.toLocaleString("en")} pages, which is more than ${limits.maxPages.toLocaleString("en")}.`,
      )
    for (let number = 1; number <= pdf.numPages; number++) yield await readPage(pdf, number)
  } finally {
    await pdf.loadingTask.destroy()
  }
}
