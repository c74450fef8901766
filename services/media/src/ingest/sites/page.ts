/** The parts of a page that may lead to a clip, in page order. Addresses are as written: see `addressIn`. */
export interface Page {
  url: URL
  base: URL
  title: string
  /** Names in lower case, `property` and `name` alike. */
  metas: { name: string; content: string }[]
  links: { rel: string; type: string; href: string }[]
  videos: { src: string; type: string; height: number }[]
  frames: string[]
  /** JSON-LD, and scripts of data with an id. */
  data: { type: string; id: string; text: string }[]
}

export const metaOf = ({ metas }: Page, ...names: string[]): string | undefined => {
  for (const name of names) {
    const found = metas.find((meta) => meta.name === name)
    if (found) return found.content
  }
  return undefined
}

export function addressIn({ base }: Page, text: string | undefined): URL | undefined {
  const url = text?.trim() && text.length <= 2048 ? URL.parse(text.trim(), base.href) : null
  return url && /^https?:$/.test(url.protocol) ? url : undefined
}
