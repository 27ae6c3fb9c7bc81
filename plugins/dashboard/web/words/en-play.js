/** Words of the playground's tabs. */
export const play = {
  "play.tabs": "What to try",
  "play.none": "No model of this server can be tried here.",
  "play.tab.chat": "Chat",
}
