/** `gif, mp4 or webm`. Not by `Intl`, which takes some 40 ms at its first use. */
export const inWords = (words: readonly string[], last: string): string =>
  words.length > 1 ? `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}` : words.join()
