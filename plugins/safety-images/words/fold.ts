/**
 * Letters of other scripts, and of phonetic alphabets, that look like those of a to z: in pairs of
 * what is replaced and by what. What NFKD takes apart (full-width, mathematical, circled letters,
 * diacritics) needs no entry.
 */
const lookalikes: readonly (readonly [letters: string, instead: string])[] = [
  ["аɑαᎪᴀ∀ɐаꭺᗅ🅰", "a"],
  ["ьвβʙƀɓ฿вᏴᗷ", "b"],
  ["сϲᴄçƈɔ¢сↄⅽⅭ", "c"],
  ["дԁɗđᎠðᴅժⅾ", "d"],
  ["еєεᎬɛєᴇǝәёэ℮ҽ∃", "e"],
  ["ƒғꜰſϝ", "f"],
  ["ɡɢցǥɠ", "g"],
  ["ɥᕼһнʜᎻհħɦн", "h"],
  ["іιıɪɩїӏⅰі", "i"],
  ["јʝϳᴊ", "j"],
  ["кκᴋᏦķƙк", "k"],
  ["ʟłɭᏞⅼℓւ", "l"],
  ["мᴍᎷɱмⅿ", "m"],
  ["пηɴռոⴖŋпи", "n"],
  ["оοσᴏօøɵ๐໐о०○●◯⭕〇Ꮎ", "o"],
  ["рρᴘþᏢ", "p"],
  ["ԛգʠ", "q"],
  ["гʀɾᏒɍяᴦг", "r"],
  ["ѕꜱʂᏚƽ", "s"],
  ["тτᴛᎢŧʈт", "t"],
  ["υᴜսʊццμ", "u"],
  ["νѵᴠⅴ", "v"],
  ["ѡωᴡɯԝշ", "w"],
  ["хχ×ⅹҳ", "x"],
  ["уүʏγƴ", "y"],
  ["ᴢʐƶ", "z"],
  ["æӕ", "ae"],
  ["œ", "oe"],
  ["ß", "ss"],
]

/** Emoji that mean something else beside each other: as words, which the lists name. */
const emoji: readonly (readonly [string, string])[] = [
  ["🔞", " emojiadults "],
  ["🍆", " emojiaubergine "],
  ["🍑", " emojipeach "],
  ["💦", " emojidroplets "],
]

const instead: ReadonlyMap<string, string> = new Map([
  ...lookalikes.flatMap(([letters, by]) => [...letters].map((letter) => [letter, by] as const)),
  ...emoji,
])

/** The first code points of rows of A to Z that have no decomposition: flags, squares, circles. */
const rows = [0x1f1e6, 0x1f150, 0x1f170]

const fromRow = (letter: string): string | undefined => {
  const code = letter.codePointAt(0)!
  const row = rows.find((first) => code >= first && code < first + 26)
  if (row === undefined) return undefined
  const plain = String.fromCharCode(97 + code - row)
  return row === rows[0] ? ` ${plain} ` : plain
}

// combining marks, format characters (zero width, soft hyphens, tags), controls, fillers of Hangul
const unseen = /^(?:[\p{M}\p{Cf}\u{115f}\u{1160}\u{3164}\u{ffa0}]|(?!\s)\p{Cc})$/u

const plainOf = (letter: string): string => {
  if (unseen.test(letter)) return ""
  const lower = letter.toLowerCase()
  return instead.get(lower) ?? instead.get(letter) ?? fromRow(letter) ?? lower
}

const mostRemembered = 10_000
const remembered = new Map<string, string>()
const recall = (letter: string): string => {
  let plain = remembered.get(letter)
  if (plain === undefined) {
    plain = plainOf(letter)
    if (remembered.size < mostRemembered) remembered.set(letter, plain)
  }
  return plain
}

const isPlain = /^[ -@[-~]$/
const asciiOnly = /^[\t\n\r -~]*$/

/**
 * A text as a reader sees it, in lower case and in letters of a to z where they look like such:
 * tricks with characters undone, after NFKD (Unicode Standard Annex 15).
 */
export const fold = (text: string): string => {
  if (asciiOnly.test(text)) return text.toLowerCase()
  let folded = ""
  for (const letter of text.normalize("NFKD"))
    folded += isPlain.test(letter) ? letter : recall(letter)
  return folded
}
