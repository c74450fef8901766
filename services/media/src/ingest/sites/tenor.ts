import { changed, requireAnswer } from './failures.ts'
import { at, listAt, numberAt, parseJson, textAt } from './json.ts'
import { addressIn, metaOf, type Page } from './page.ts'
import { defineSite, type Found, fileAt, pathOf } from './site.ts'

/** The address of the page of a view in any language, an embed, or a short link, which looks like a gif. */
export function readTenor(url: URL): string | undefined {
  if (!/^(www\.)?tenor\.com$/.test(url.hostname)) return undefined
  const path = pathOf(url)
  const [kind = '', name = ''] = /^[a-z]{2}(-[A-Za-z]{2,4})?$/.test(path[0] ?? '') ? path.slice(1) : path
  if (kind === 'view' && /(^|-)\d+$/.test(name)) return `https://tenor.com/view/${name}`
  if (kind === 'embed' && /^\d+$/.test(name)) return `https://tenor.com/view/${name}`
  return path.length === 1 && /^\w{3,12}\.gif$/.test(kind) ? `https://tenor.com/${kind}` : undefined
}

const FORMATS = ['mp4', 'webm', 'gif', 'mediumgif']

/** Reads the initial data of the page's own script: the API was switched off in 2026. */
export const tenor = defineSite<string>({
  name: 'tenor',
  hosts: ['tenor.com'],
  read: readTenor,
  find: async (address, visit) => {
    const answer = await visit.get(address)
    requireAnswer('tenor', answer)
    const page = await answer.page()
    const found = readStore(page) ?? readMetas(page)
    if (!found) throw changed('tenor')
    const { href: url } = answer.url
    return { ...found, attribution: { ...found.attribution, site: 'https://tenor.com/', url } }
  },
})

function readStore({ data, url }: Page): Found | undefined {
  const store = parseJson(data.find(({ id }) => id === 'store-cache')?.text ?? '')
  const gifs = at(store, 'gifs', 'byId')
  const id = /(?<!\d)(\d+)$/.exec(url.pathname)?.[1] ?? ''
  const entry = at(gifs, id) ?? Object.values(gifs ?? {})[0]
  const [gif] = listAt(entry, 'results')
  const sources = FORMATS.flatMap((format) => {
    const file = at(gif, 'media_formats', format)
    return fileAt(textAt(file, 'url'), numberAt(file, 'size'))
  })
  if (sources.length === 0) return undefined
  return {
    sources,
    title: textAt(gif, 'title') ?? textAt(gif, 'content_description'),
    durationSeconds: numberAt(gif, 'media_formats', 'mp4', 'duration') || undefined,
    attribution: { site: '', user: textAt(gif, 'user', 'username') },
  }
}

function readMetas(page: Page): Found | undefined {
  const url = addressIn(page, metaOf(page, 'og:video:secure_url', 'og:video'))
  return url && { sources: fileAt(url.href), title: metaOf(page, 'og:title') }
}
