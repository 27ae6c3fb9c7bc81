import type { Json } from "../../../core/json.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import { fromByteLevel } from "./byte-level.ts"
import { isLetter, isShown, pieceBytes, spaceMark } from "./pieces.ts"
import type { ChatLanguage } from "./vocabulary.ts"

export type FolderTokenizer = Pick<
  ChatLanguage,
  | "vocabulary"
  | "tokenizer"
  | "laterTokenizer"
  | "controlTokens"
  | "strippingTokens"
  | "strippingBefore"
  | "startsWithSpace"
>

type Objects = Readonly<Record<string, Json>>

const isObject = (value: Json | undefined): value is Objects =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns an object and the objects nested in it. */
const parts = (value: Json | undefined): readonly Objects[] => {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(parts)
  if (!isObject(value)) return []
  return [
    value,
    ...["normalizers", "pretokenizers", "decoders"].flatMap((key) => parts(value[key])),
  ]
}

interface AddedToken {
  readonly id: number
  readonly content: string
  readonly special: boolean
  readonly lstrip: boolean
  readonly rstrip: boolean
}

/** The added tokens as the file has them, but for letters, which are text. */
const addedItems = (value: Json | undefined): readonly Json[] =>
  (Array.isArray(value) ? (value as readonly Json[]) : []).map((item) =>
    isObject(item) && isLetter(String(item.content)) ? { ...item, special: false } : item,
  )

const addedTokens = (items: readonly Json[]): readonly AddedToken[] =>
  items.map((item) => {
    const { id, content, special, lstrip, rstrip } = isObject(item) ? item : {}
    if (typeof id !== "number" || typeof content !== "string")
      throw new Damaged("an entry of 'added_tokens' is not one")
    return {
      id,
      content,
      special: special === true,
      lstrip: lstrip === true,
      rstrip: rstrip === true,
    }
  })

const mergesIn = (merges: Json | undefined, hidden: ReadonlySet<string>): Json | undefined =>
  Array.isArray(merges)
    ? (merges as readonly Json[]).filter((merge) => {
        const [left, right] = Array.isArray(merge)
          ? (merge as readonly string[])
          : String(merge).split(" ")
        return isShown(hidden, left!, right!)
      })
    : merges

/** BPE and WordPiece list ids by token; Unigram lists pairs of a token and its score. */
const vocabIn = (model: Objects): readonly (readonly [string, number])[] => {
  const { vocab } = model
  if (Array.isArray(vocab))
    return vocab.map((item, id) => [String((item as readonly Json[])[0]), id])
  if (!isObject(vocab)) throw new Damaged("it has no vocabulary ('model.vocab')")
  return Object.entries(vocab).map(([token, id]) => {
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0)
      throw new Damaged(`the id of the token '${token}' is not one`)
    return [token, id]
  })
}

/**
 * The model with these tokens hidden and the added ones in its vocabulary: the library numbers
 * added tokens that it doesn't find there anew, whatever id their entry has.
 */
const withVocab = (
  model: Objects,
  without: ReadonlySet<string>,
  added: readonly AddedToken[],
): Objects =>
  isObject(model.vocab)
    ? {
        ...model,
        ...(model.merges !== undefined && { merges: mergesIn(model.merges, without)! }),
        vocab: Object.fromEntries([
          ...Object.entries(model.vocab).filter(([token]) => !without.has(token)),
          ...added.map(({ content, id }) => [content, id] as const),
        ]),
      }
    : model

/**
 * A tokenizer for later pieces of a prompt where `prepend_scheme` is "first": control tokens split
 * the prompt into pieces, of which only the first begins it.
 */
const laterTokenizer = (json: Objects): Json | undefined => {
  let changed = false
  const later = (value: Json): Json => {
    if (Array.isArray(value)) return (value as readonly Json[]).map(later)
    if (!isObject(value)) return value
    const marksFirst = value.type === "Metaspace" && value.prepend_scheme === "first"
    changed ||= marksFirst
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        marksFirst && key === "prepend_scheme" ? "never" : later(item),
      ]),
    )
  }
  const preTokenizer = later(json.pre_tokenizer ?? null)
  return changed ? { ...json, pre_tokenizer: preTokenizer } : undefined
}

const marksSpaces = (json: Objects): boolean =>
  [...parts(json.normalizer), ...parts(json.pre_tokenizer)].some(
    (part) => part.type === "Metaspace" || (part.type === "Replace" && part.content === spaceMark),
  )

const prependsSpace = (json: Objects): boolean =>
  [...parts(json.normalizer), ...parts(json.pre_tokenizer)].some(
    (part) =>
      (part.type === "Prepend" && part.prepend === spaceMark) ||
      (part.type === "Metaspace" &&
        part.prepend_scheme !== "never" &&
        part.add_prefix_space !== false),
  )

const spellingOf = (json: Objects, model: Objects): ((token: string) => Buffer) => {
  if (
    [...parts(json.pre_tokenizer), ...parts(json.decoder)].some((part) => part.type === "ByteLevel")
  )
    return fromByteLevel
  if (marksSpaces(json)) {
    if (model.byte_fallback !== true)
      throw new Unsupported("it has no byte fallback, so not every text has tokens")
    return pieceBytes
  }
  throw new Unsupported(
    "its tokens are neither byte-level nor SentencePiece's, so this backend can't turn them into text",
  )
}

/**
 * Removes control tokens from a tokenizer.json, so that no text can become one; `size`: rows of the
 * embedding table. Throws `Damaged`.
 */
export const readTokenizerJson = (json: Objects, size: number): FolderTokenizer => {
  const model = json.model
  if (!isObject(model)) throw new Damaged("it has no 'model'")
  const items = addedItems(json.added_tokens)
  const listed = addedTokens(items)
  // text models of Gemma 3 list a token of images, for which they have no row
  const isRowless = ({ id, special }: AddedToken) => special && id >= size
  const added = listed.filter((token) => !isRowless(token))
  const special = added.filter((token) => token.special)
  // the unknown token stays, as the model needs it and no text encodes to it directly
  const hidden = new Set(
    listed.flatMap(({ content, special }) =>
      special && content !== model.unk_token ? [content] : [],
    ),
  )
  const rowless = new Set(listed.filter(isRowless).map(({ content }) => content))
  const entries = vocabIn(model).filter(([token]) => !rowless.has(token))
  const last = [...entries.map(([, id]) => id), ...added.map(({ id }) => id)].reduce(
    (a, b) => Math.max(a, b),
    -1,
  )
  if (last >= size) throw new Damaged(`its token ${last} is not in the embedding table of ${size}`)
  const spell = spellingOf(json, model)
  const tokens = new Array<string>(last + 1).fill("")
  const verbatim = new Set(added.map(({ id }) => id))
  const controls = new Set(special.map(({ id }) => id))
  for (const [token, id] of entries) tokens[id] = token
  for (const { id, content } of added) tokens[id] = content
  const isControl = (id: number) => controls.has(id)
  const bytesOf = (id: number): Buffer => {
    const token = isControl(id) ? "" : (tokens[id] ?? "")
    if (!verbatim.has(id)) return spell(token)
    return Buffer.from(spell === pieceBytes ? token.replaceAll(spaceMark, " ") : token)
  }
  const tokenizer: Objects = {
    ...json,
    truncation: null,
    padding: null,
    post_processor: null,
    added_tokens: items.filter((item) => !(isObject(item) && item.special === true)),
    model: withVocab(
      model,
      hidden,
      added.filter(({ special }) => !special),
    ),
  }
  const later = laterTokenizer(tokenizer)
  return {
    vocabulary: { tokens, isControl, bytesOf },
    tokenizer,
    ...(later === undefined ? {} : { laterTokenizer: later }),
    controlTokens: Object.fromEntries(special.map(({ content, id }) => [content, id])),
    strippingTokens: special.flatMap(({ id, rstrip }) => (rstrip ? [id] : [])),
    strippingBefore: special.flatMap(({ id, lstrip }) => (lstrip ? [id] : [])),
    startsWithSpace: spell === pieceBytes && prependsSpace(json),
  }
}
