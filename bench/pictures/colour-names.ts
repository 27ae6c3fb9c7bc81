/** Names of colours, of the look of a surface, as people use them in plain prompts. */
export const colourNames = [
  "red",
  "orange",
  "yellow",
  "green",
  "turquoise",
  "blue",
  "purple",
  "pink",
  "brown",
  "black",
  "gray",
  "white",
] as const

export type ColourName = (typeof colourNames)[number]

export type Lab = readonly [light: number, a: number, b: number]

const linear = (value: number): number =>
  value <= 10.31475 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4

const cube = (value: number): number =>
  value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116

/** CIELAB (D65) of 8-bit sRGB. */
export const labOf = (red: number, green: number, blue: number): Lab => {
  const [r, g, b] = [linear(red), linear(green), linear(blue)]
  const x = cube((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047)
  const y = cube(0.2126729 * r + 0.7151522 * g + 0.072175 * b)
  const z = cube((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883)
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

/** Where a hue begins, in degrees of CIELAB; the last one goes on over 360. */
const hues: readonly (readonly [number, ColourName])[] = [
  [335, "pink"],
  [304, "purple"],
  [228, "blue"],
  [172, "turquoise"],
  [106, "green"],
  [76, "yellow"],
  [47, "orange"],
  [14, "red"],
]

/** The name of a colour, by lightness, chroma and hue alone. */
export const colourName = ([light, a, b]: Lab): ColourName => {
  const chroma = Math.hypot(a, b)
  if (chroma < 11 || light < 14) return light < 38 ? "black" : light > 90 ? "white" : "gray"
  const hue = ((Math.atan2(b, a) * 180) / Math.PI + 360) % 360
  if (hue > 38 && hue < 95 && light < 54 && chroma < 62) return "brown"
  if (hue < 42 && hue > 14 && light > 66 && chroma < 52) return "pink"
  return hues.find(([from]) => hue >= from)?.[1] ?? "pink"
}
