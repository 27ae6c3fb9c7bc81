// The pictures of a served image model: do they show what was asked? `node --import tsx
// bench/pictures.ts --url http://localhost:8080 --key KEY --out FOLDER [--only match,composed,loras,sheet]
// [--data FOLDER] [--sheet docs/pictures.webp] [--size 256x256] [--seed 1] [--at-once 2]`; FOLDER of
// --data is what plugins/model-iris/train/composed.py writes: with it the checker and the tower are
// measured, too. Pictures in --out are not asked for again.
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import sharp from "sharp"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { printTable } from "./measure/table.ts"
import { judged, type Wanted } from "./pictures/judge.ts"
import { lookOf, meanLook } from "./pictures/looks.ts"
import { cosine, nearestOf, recalls } from "./pictures/matches.ts"
import { type Picture, seenIn } from "./pictures/pieces.ts"
import { Service } from "./pictures/service.ts"
import { shown, writeSheet } from "./pictures/sheet.ts"

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://localhost:8080" },
    key: { type: "string", default: process.env.RAKIT_API_KEY ?? "" },
    out: { type: "string" },
    data: { type: "string" },
    sheet: { type: "string" },
    only: { type: "string", default: "match,composed,loras,sheet" },
    model: { type: "string", default: "svc-iris" },
    embed: { type: "string", default: "svc-embed" },
    size: { type: "string", default: "256x256" },
    seed: { type: "string", default: "1" },
    "at-once": { type: "string", default: "2" },
  },
})
if (!values.out) throw new Error("name a folder for the pictures: --out FOLDER")
const startedMs = performance.now()
const service = new Service({
  url: values.url,
  key: values.key,
  images: values.model,
  embeddings: values.embed,
  size: values.size,
  seed: Number(values.seed),
  folder: values.out,
  atOnce: Number(values["at-once"]),
})

interface Bare {
  readonly prompt: string
  readonly thing: number
}
type Composed = Wanted & { readonly prompt: string; readonly unseen: boolean }
const { bare, composed } = JSON.parse(
  readFileSync(join(import.meta.dirname, "pictures", "prompts.json"), "utf8"),
) as { readonly bare: readonly Bare[]; readonly composed: readonly Composed[] }

// the checker looks at every picture in this size
const side = 192
const lorasOf = { names: ["dark", "anime"], strengths: [0.5, 1, 1.5], prompts: 16 }
const figures: Record<string, unknown> = {}
const percent = (part: number): string => `${(100 * part).toFixed(1)} %`

/** The bytes of a PNG file differ by its parameters alone. */
const pixels = (file: Buffer): Promise<Buffer> => sharp(file).raw().toBuffer()

const pictureOf = async (file: Buffer): Promise<Picture> => ({
  data: await sharp(file).removeAlpha().resize(side, side, { fit: "fill" }).raw().toBuffer(),
  width: side,
  height: side,
})

/** Vectors of the drawings of all things; they are kept beside them. */
const vectorsOfThings = async (folder: string, count: number): Promise<number[][]> => {
  const kept = join(folder, "vectors.json")
  if (existsSync(kept)) return JSON.parse(readFileSync(kept, "utf8")) as number[][]
  const files = Array.from({ length: count }, (_, at) => readFileSync(join(folder, `${at}.png`)))
  const vectors = await service.images(files)
  writeFileSync(kept, JSON.stringify(vectors))
  return vectors
}

const matches = async () => {
  const texts = await service.texts(bare.map(({ prompt }) => prompt))
  const images = await service.images(await service.pictures(bare.map(({ prompt }) => prompt)))
  const own = bare.map((_, at) => at)
  const rows: Record<string, ReturnType<typeof recalls>> = {
    "picture to prompt": recalls(images, texts, own),
    "prompt to picture": recalls(texts, images, own),
  }
  if (values.data) {
    const folder = join(values.data, "sprites")
    const names = JSON.parse(readFileSync(join(folder, "index.json"), "utf8")) as string[][]
    const things = await vectorsOfThings(folder, names.length)
    const drawn = bare.map(({ thing }) => things[thing]!)
    rows["true drawing to prompt"] = recalls(drawn, texts, own)
    rows["prompt to true drawing"] = recalls(texts, drawn, own)
    rows[`picture to drawing, of ${things.length}`] = recalls(
      images,
      things,
      bare.map(({ thing }) => thing),
    )
    figures.taken = bare.flatMap(({ prompt, thing }, at) => {
      const [nearest] = nearestOf(images[at]!, things, 1)
      return nearest === thing ? [] : [`${prompt}: ${names[nearest!]![0]}`]
    })
  }
  figures.match = rows
  printTable(
    `${bare.length} things, by the vision tower of ${values.embed}`,
    ["", "R@1", "R@5"],
    Object.entries(rows).map(([name, { first, five }]) => [name, percent(first), percent(five)]),
  )
}

const tallied = (verdicts: readonly boolean[]): string =>
  `${verdicts.filter(Boolean).length} of ${verdicts.length}`

const shareOf = (verdicts: readonly boolean[]): string =>
  percent(verdicts.filter(Boolean).length / verdicts.length)

const groups = { colours: ["colour"], counts: ["count"], positions: ["pair", "corner"] }

/** Prints how many of the pictures are judged right, and gives the judgements. */
const judgedAll = async (title: string, files: readonly Buffer[]) => {
  const verdicts = await Promise.all(
    files.map(async (file, at) => judged(seenIn(await pictureOf(file)), composed[at]!)),
  )
  const part = (kinds: readonly string[], keep: (one: Composed) => boolean): boolean[] =>
    verdicts.flatMap(({ right }, at) =>
      kinds.includes(composed[at]!.kind) && keep(composed[at]!) ? [right] : [],
    )
  const rows = Object.entries(groups).map(([name, kinds]) => {
    const all = part(kinds, () => true)
    const trained = part(kinds, ({ unseen }) => !unseen)
    return [name, shareOf(all), tallied(trained), tallied(part(kinds, ({ unseen }) => unseen))]
  })
  printTable(title, ["", "right", "trained compositions", "unseen compositions"], rows)
  return { rows, verdicts }
}

const compositions = async () => {
  const { data } = values
  if (data)
    for (const name of ["right", "wrong"]) {
      const files = composed.map((_, at) => readFileSync(join(data, name, `${at}.png`)))
      const { rows } = await judgedAll(`the checker on ${name} drawings`, files)
      figures[`checker on ${name} drawings`] = rows
    }
  const files = await service.pictures(composed.map(({ prompt }) => prompt))
  const { rows, verdicts } = await judgedAll(`${composed.length} composed prompts`, files)
  figures.composed = rows
  figures.missed = verdicts.flatMap(({ right, found }, at) =>
    right ? [] : [`${composed[at]!.prompt}: ${found}`],
  )
}

/** What a LoRA does to the look, and whether the things stay. */
const loras = async () => {
  const some = bare.filter((_, at) => at % Math.floor(bare.length / lorasOf.prompts) === 0)
  const prompts = some.slice(0, lorasOf.prompts).map(({ prompt }) => prompt)
  const texts = await service.texts(bare.map(({ prompt }) => prompt))
  const own = prompts.map((prompt) => bare.findIndex((one) => one.prompt === prompt))
  const plain = await service.pictures(prompts)
  const plainVectors = await service.images(plain)
  const looksOf = (files: readonly Buffer[]) =>
    Promise.all(files.map(async (file) => lookOf(await pictureOf(file))))
  const plainLooks = await looksOf(plain)
  const rows: string[][] = []
  const measure = async (title: string, files: readonly Buffer[]) => {
    const [looks, vectors] = [await looksOf(files), await service.images(files)]
    const { lightness, edgeLightness, chroma, ink } = meanLook(looks)
    const near = vectors.reduce((sum, one, at) => sum + cosine(one, plainVectors[at]!), 0)
    const darker = looks.map((look, at) => look.lightness < plainLooks[at]!.lightness - 1)
    rows.push([
      title,
      ...[lightness, edgeLightness, chroma].map((value) => value.toFixed(1)),
      percent(ink),
      shareOf(darker),
      (near / files.length).toFixed(3),
      percent(recalls(vectors, texts, own).first),
    ])
  }
  await measure("none", plain)
  for (const name of lorasOf.names) {
    const [first] = await service.pictures(prompts.slice(0, 1), { name, strength: 0 })
    const [changed, same] = await Promise.all([pixels(first!), pixels(plain[0]!)])
    if (!changed.equals(same)) console.log(`${name} of strength 0 changes the picture`)
    for (const strength of lorasOf.strengths)
      await measure(`${name} ${strength}`, await service.pictures(prompts, { name, strength }))
  }
  figures.loras = rows
  printTable(
    `LoRAs, means of ${prompts.length} things (CIELAB)`,
    ["", "lightness", "of edges", "chroma", "ink", "darker", "cosine to none", "R@1 of 100"],
    rows,
  )
}

const sheet = async () => {
  if (!values.sheet) return
  const files: Buffer[] = []
  for (const { prompt, lora } of shown) files.push(...(await service.pictures([prompt], lora)))
  await writeSheet(values.sheet, files)
  console.log(`\n${values.sheet}: ${shown.length} prompts`)
}

printMachine("Pictures of a served model", `${values.url}, ${values.model}, ${values.size}`)
const parts = { match: matches, composed: compositions, loras, sheet }
for (const name of values.only.split(",")) await parts[name as keyof typeof parts]()
writeFileSync(join(values.out, "figures.json"), `${JSON.stringify(figures, undefined, 2)}\n`)
printLoadAfter(startedMs)
