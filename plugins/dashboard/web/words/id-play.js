/** Words of the playground's tabs. */
export const play = {
  "play.tabs": "Yang bisa dicoba",
  "play.none": "Tidak ada model di server ini yang bisa dicoba di sini.",
  "play.tab.chat": "Obrolan",
}
