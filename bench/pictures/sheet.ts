import { writeFileSync } from "node:fs"
import sharp from "sharp"
import type { Lora } from "./service.ts"

export interface Shown {
  readonly prompt: string
  readonly lora?: Lora
}

const dark = { name: "dark", strength: 0.8 }
const anime = { name: "anime", strength: 0.8 }

/** What the contact sheet shows, row by row: things, colours, counts, positions, places, looks. */
export const shown: readonly Shown[] = [
  ..."a cat|a lion|a penguin|an owl|a butterfly|a crab|a turtle|a whale".split("|"),
  ..."a strawberry|a hamburger|pizza|a doughnut|a car|a bicycle|a rocket|a castle".split("|"),
  ..."a guitar|a trophy|a balloon|a gift|a red heart|a snowflake|grinning face|a robot".split("|"),
  ..."a blue apple|a green cat|a purple elephant|a pink car|a turquoise dinosaur".split("|"),
  ..."a black umbrella|kucing merah|bunga matahari".split("|"),
  ..."two red apples|three stars|four blue fish|five red balloons|a banana and a strawberry".split(
    "|",
  ),
  ..."a yellow star above a blue moon|a red car to the left of a green tree".split("|"),
  "a yellow banana to the right of a red apple",
  ..."a penguin in the snow|a rocket in space|a crab on a beach|a cat on a blue background".split(
    "|",
  ),
]
  .map((prompt): Shown => ({ prompt }))
  .concat([
    { prompt: "a fox", lora: dark },
    { prompt: "a castle", lora: dark },
    { prompt: "a fox", lora: anime },
    { prompt: "a rocket", lora: anime },
  ])

const [cell, gap, label, columns] = [156, 6, 22, 8]

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const labelOf = (text: string): Buffer =>
  Buffer.from(
    `<svg width="${cell}" height="${label}" xmlns="http://www.w3.org/2000/svg"><text x="50%" y="15" text-anchor="middle" font-family="DejaVu Sans, sans-serif" font-size="11" fill="#333" textLength="${text.length > 24 ? cell - 2 : text.length * 6.2}" lengthAdjust="spacingAndGlyphs">${escaped(text)}</text></svg>`,
  )

/** Writes pictures with their prompts below, eight in a row, as WebP. */
export const writeSheet = async (file: string, pictures: readonly Buffer[]): Promise<void> => {
  const rows = Math.ceil(pictures.length / columns)
  const parts = pictures.map(async (picture, at) => {
    const left = gap + (at % columns) * (cell + gap)
    const top = gap + Math.floor(at / columns) * (cell + label + gap)
    const { prompt, lora } = shown[at]!
    const text = lora ? `${prompt} (${lora.name} ${lora.strength})` : prompt
    return [
      { input: await sharp(picture).resize(cell, cell).png().toBuffer(), left, top },
      { input: labelOf(text), left, top: top + cell + 2 },
    ]
  })
  const page = sharp({
    create: {
      width: gap + columns * (cell + gap),
      height: gap + rows * (cell + label + gap),
      channels: 3,
      background: "#f4f4f6",
    },
  })
  const composed = page.composite((await Promise.all(parts)).flat())
  writeFileSync(file, await composed.webp({ quality: 88 }).toBuffer())
}
