import { Parser } from 'htmlparser2'
import type { Page } from './page.ts'

/** Ten times a real page. Each end tag searches all open elements, so a deep page costs the square of its length. */
const MAX_OPEN_ELEMENTS = 512
/** Length of each list of a `Page`; no honest page has more. */
const MAX_OF_A_KIND = 200
const CHUNK = 64 * 1024

export function readPage(html: string, url: URL): Page {
  const page: Page = { url, base: url, title: '', metas: [], links: [], videos: [], frames: [], data: [] }
  let open = 0
  let isOver = false
  let isInVideo = false
  let into: 'title' | 'data' | undefined

  const parser = new Parser({
    onopentag: (name, attributes) => {
      if (++open > MAX_OPEN_ELEMENTS) stop()
      if (name === 'video') isInVideo = true
      if (name === 'title' && page.title === '') into = 'title'
      if (name === 'script' && isData(attributes)) into = startData(page, attributes)
      collect(page, name, attributes, isInVideo)
    },
    ontext: (text) => {
      const last = page.data.at(-1)
      if (into === 'title') page.title += text
      else if (into === 'data' && last) last.text += text
    },
    onclosetag: (name) => {
      open--
      into = undefined
      if (name === 'video') isInVideo = false
      if (name === 'head' && hasVideo(page)) stop()
    },
  })
  const stop = () => {
    isOver = true
    parser.pause()
  }
  for (let start = 0; start < html.length && !isOver; start += CHUNK) parser.write(html.slice(start, start + CHUNK))
  if (!isOver) parser.end()
  return page
}

type Attributes = Record<string, string>

const isData = ({ type = '', id = '' }: Attributes) =>
  /^application\/ld\+json/i.test(type) || (id !== '' && /json|cache/i.test(type))

function startData({ data }: Page, { type = '', id = '' }: Attributes): 'data' | undefined {
  if (data.length >= MAX_OF_A_KIND) return undefined
  data.push({ type: type.toLowerCase(), id, text: '' })
  return 'data'
}

function collect(page: Page, tag: string, attributes: Attributes, isInVideo: boolean): void {
  const { src = '', type = '', height = '', href = '', rel = '' } = attributes
  const add = <Item>(list: Item[], item: Item) => {
    if (list.length < MAX_OF_A_KIND) list.push(item)
  }
  if (tag === 'meta') {
    const name = (attributes.property ?? attributes.name ?? '').trim().toLowerCase()
    if (name && attributes.content) add(page.metas, { name, content: attributes.content.trim() })
  }
  if (tag === 'link' && href) add(page.links, { rel: rel.toLowerCase(), type: type.toLowerCase(), href })
  if (src && (tag === 'video' || (tag === 'source' && isInVideo))) {
    add(page.videos, { src, type: type.toLowerCase(), height: Number.parseInt(height, 10) || 0 })
  }
  if (tag === 'iframe' && src) add(page.frames, src)
  // Only the first `<base>` applies (HTML 4.2.3).
  if (tag === 'base' && href && page.base === page.url) page.base = URL.parse(href, page.url.href) ?? page.url
}

const hasVideo = ({ metas }: Page) =>
  metas.some(({ name }) => /^og:video(:url|:secure_url)?$|^twitter:player:stream$/.test(name))
