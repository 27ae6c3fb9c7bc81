import { countOr, type Metadata, numberOr, numbersIn, present } from "../weights/gguf-metadata.ts"
import { Damaged } from "../weights/model-file-error.ts"
import { type Architecture, limits } from "./decoder-config.ts"
import { type AttentionKind, families, isNth } from "./families.ts"
import { defaults, objectAt } from "./folder-json.ts"
import {
  longMagnitude,
  type Rotary,
  rotationsOf,
  scaledBy,
  scalingTypeIn,
  slowedBy,
} from "./rotary.ts"
import { yarnIn, yarnRotary, yarnWindow } from "./yarn.ts"

/** Where both are given, the older key counts, as in transformers. */
const scalingIn = (json: Metadata): Metadata => {
  const older = objectAt(json, "rope_scaling")
  return older.size ? older : objectAt(json, "rope_parameters")
}

const trainedKey = "original_max_position_embeddings"

const isYarn = (scaling: Metadata): boolean => scalingTypeIn(scaling) === "yarn"

/**
 * The scaling with its window of the original training, which is the whole one where none is named,
 * and YaRN's with its factor, which is the ratio of the two.
 */
const withTrained = (json: Metadata, scaling: Metadata): Metadata => {
  // the model's own counts before its scaling's
  const trained = (present(json, trainedKey) ? json : scaling).get(trainedKey)
  const whole = json.get("max_position_embeddings")
  const window = trained ?? whole
  if (window === undefined) return scaling
  const ratio = isYarn(scaling) && !present(scaling, "factor") ? Number(whole) / Number(window) : 0
  return new Map([
    ...scaling,
    [trainedKey, window],
    ...(ratio ? ([["factor", ratio]] as const) : []),
  ])
}

/** The model's window: its own, or what YaRN makes of the original one where that is more. */
export const windowIn = (json: Metadata, architecture: Architecture): number => {
  const own = countOr(
    json,
    "max_position_embeddings",
    limits.contextTokens,
    defaults[architecture].contextTokens,
  )
  const scaling = withTrained(json, scalingIn(json))
  if (architecture === "phi3" || !isYarn(scaling)) return own
  return Math.max(own, yarnWindow(yarnIn(scaling)))
}

const rotaryOf = (json: Metadata, scaling: Metadata, base: number, headSize: number): Rotary => {
  const theta = numberOr(scaling, "rope_theta", base)
  const whole = withTrained(json, scaling)
  return isYarn(whole)
    ? yarnRotary(theta, headSize, yarnIn(whole))
    : { rotations: scaledBy(rotationsOf(theta, headSize), whole) }
}

/** Rotations of layers of each kind, which newer files name, and older ones by keys of their own. */
const rotaryByKind = (
  json: Metadata,
  ropeBase: number,
  localBase: number,
  headSize: number,
): Readonly<Record<AttentionKind, Rotary>> => {
  const older = objectAt(json, "rope_scaling")
  const newer = objectAt(json, "rope_parameters")
  const byKind = [older, newer].find(
    (one) => one.has("full_attention") || one.has("sliding_attention"),
  )
  // newer ones that name no kind are ignored, as by transformers
  const all = byKind ? objectAt(byKind, "full_attention") : new Map()
  return {
    full_attention: rotaryOf(
      json,
      byKind === older ? all : new Map([...all, ...older]),
      numberOr(json, "rope_theta", ropeBase),
      headSize,
    ),
    sliding_attention: rotaryOf(
      json,
      byKind ? objectAt(byKind, "sliding_attention") : new Map(),
      numberOr(json, "rope_local_base_freq", localBase),
      headSize,
    ),
  }
}

/** Phi's: of a part of the dimensions, and by other factors for long sequences. */
const phiRotary = (json: Metadata, headSize: number): Rotary => {
  const scaling = scalingIn(json)
  const part = numberOr(
    scaling,
    "partial_rotary_factor",
    numberOr(json, "partial_rotary_factor", 1),
  )
  const dimensions = Math.floor(headSize * part)
  if (!(dimensions > 0 && dimensions <= headSize && dimensions % 2 === 0))
    throw new Damaged(`'partial_rotary_factor' is ${part}, of ${headSize} dimensions`)
  const base = numberOr(scaling, "rope_theta", numberOr(json, "rope_theta", 10_000))
  const plain = rotationsOf(base, dimensions)
  const longAfter = longAfterIn(json)
  if (longAfter === undefined) return { rotations: scaledBy(plain, withTrained(json, scaling)) }
  const { contextTokens } = defaults.phi3
  const extension =
    countOr(json, "max_position_embeddings", limits.contextTokens, contextTokens) / longAfter
  const by = (name: string) => slowedBy(plain, numbersIn(scaling, name), name)
  return {
    rotations: by("short_factor"),
    longRotations: by("long_factor"),
    magnitude: numberOr(
      scaling,
      "attention_factor",
      longMagnitude(numberOr(scaling, "factor", extension), longAfter),
    ),
  }
}

const longTypes: readonly unknown[] = ["longrope", "su", "yarn"]

/** The window of the original training, where long sequences are rotated in another way. */
export const longAfterIn = (json: Metadata): number | undefined => {
  const scaling = scalingIn(json)
  if (!longTypes.includes(scaling.get("rope_type") ?? scaling.get("type"))) return undefined
  // Phi's configuration always has one of its own, which counts before its scaling's
  return countOr(json, trainedKey, limits.contextTokens, defaults.phi3.contextTokens)
}

/** The pairs of a head that turn by time, by row and by column. */
export const sectionsIn = (json: Metadata, headSize: number): readonly number[] => {
  const scaling = scalingIn(json)
  const sections = present(scaling, "mrope_section")
    ? numbersIn(scaling, "mrope_section")
    : [16, 24, 24]
  const pairs = sections.reduce((sum, section) => sum + section, 0)
  const areCounts = sections.every((section) => Number.isInteger(section) && section > 0)
  if (sections.length !== 3 || !areCounts || pairs !== headSize / 2)
    throw new Damaged(
      `'mrope_section' is ${sections.join(", ")}, of ${headSize / 2} pairs of a head`,
    )
  return sections
}

/** Whether each layer has a rotary embedding. */
export const rotatedIn = (
  json: Metadata,
  architecture: Architecture,
  layers: number,
): readonly boolean[] => {
  const { unrotatedEvery } = families[architecture]
  if (unrotatedEvery === undefined) return new Array<boolean>(layers).fill(true)
  const every = countOr(json, "no_rope_layer_interval", limits.layers, unrotatedEvery)
  // ones and zeros: despite its name, a one is a layer with a rotary embedding
  const listed: unknown =
    json.get("no_rope_layers") ?? Array.from({ length: layers }, (_, i) => Number(!isNth(every, i)))
  if (!Array.isArray(listed) || listed.length !== layers)
    throw new Damaged(`'no_rope_layers' is not a list of ${layers}`)
  return listed.map(Boolean)
}

export const rotaryIn = (
  json: Metadata,
  architecture: Architecture,
  kinds: readonly AttentionKind[],
  headSize: number,
): readonly (Rotary | undefined)[] => {
  const { ropeBase = 10_000 } = defaults[architecture]
  const { localBase } = families[architecture]
  if (architecture === "phi3") {
    const rotary = phiRotary(json, headSize)
    return kinds.map(() => rotary)
  }
  if (localBase !== undefined) {
    const rotary = rotaryByKind(json, ropeBase, localBase, headSize)
    return kinds.map((kind) => rotary[kind])
  }
  const base = numberOr(json, "rope_theta", ropeBase)
  const rotary = rotaryOf(json, scalingIn(json), base, headSize)
  return rotatedIn(json, architecture, kinds.length).map((isRotated) =>
    isRotated ? rotary : undefined,
  )
}
