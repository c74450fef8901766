import { requireAnswer } from './failures.ts'
import { at, numberAt, textAt } from './json.ts'
import { addressIn, metaOf } from './page.ts'
import { defineSite, type Found, fileAt, type MediaSource, pathOf } from './site.ts'
import type { Visit } from './visit.ts'

type Reference = { id: string } | { short: string }

export function readGiphy(url: URL): Reference | undefined {
  const [first = '', second = '', ...rest] = pathOf(url)
  if (url.hostname === 'gph.is') return first ? { short: url.href } : undefined
  if (/^(www\.)?giphy\.com$/.test(url.hostname)) {
    if (!/^(gifs|clips|stickers|embed|media)$/.test(first)) return undefined
    return idIn(second.split('-').at(-1))
  }
  if (!/^(i|media\d*)\.giphy\.com$/.test(url.hostname)) return undefined
  // /media/ID/giphy.gif, with a signed part in between of late, and i.giphy.com/ID.gif.
  if (first === 'media') return idIn(second.startsWith('v1.') ? rest[0] : second)
  return second === '' ? idIn(/^(\w+)\.(gif|mp4|webp)$/.exec(first)?.[1]) : undefined
}

const idIn = (text = ''): { id: string } | undefined => (/^[A-Za-z0-9]{5,40}$/.test(text) ? { id: text } : undefined)

/** The id is enough for the files; the page, or the API with a key, adds user and title. */
export const giphy = defineSite<Reference>({
  name: 'giphy',
  hosts: ['giphy.com', 'gph.is'],
  read: readGiphy,
  find: async (reference, visit) => {
    if ('short' in reference) return findByPage(reference.short, visit)
    const { id } = reference
    const { giphyApiKey } = visit.keys
    return giphyApiKey ? findByApi(id, giphyApiKey, visit) : findByPage(pageOf(id), visit, id)
  },
})

const pageOf = (id: string) => `https://giphy.com/gifs/${id}`

/** Files that a clip may have; the original exists only if its author allows it. */
const filesOf = (id: string): MediaSource[] =>
  [
    `https://i.giphy.com/media/${id}/source.mp4`,
    `https://i.giphy.com/media/${id}/giphy-hd.mp4`,
    `https://i.giphy.com/media/${id}/giphy.mp4`,
    `https://media.giphy.com/media/${id}/giphy.mp4`,
  ].map((url) => ({ kind: 'file', url }))

async function findByPage(address: string, visit: Visit, known?: string): Promise<Found> {
  const answer = await visit.get(address)
  // The CDN may still serve callers that the pages refuse.
  if (!known || answer.status === 404 || answer.status === 410) requireAnswer('giphy', answer)
  const page = await answer.page()
  const reference = readGiphy(answer.url)
  const id = known ?? (reference && 'id' in reference ? reference.id : undefined)
  const shown = addressIn(page, metaOf(page, 'og:video:secure_url', 'og:video', 'twitter:player:stream'))
  return {
    sources: [...(id ? filesOf(id) : []), ...fileAt(shown?.href)],
    title: answer.status === 200 ? metaOf(page, 'og:title')?.replace(/ - Find & Share on GIPHY$/i, '') : undefined,
    attribution: { site: 'https://giphy.com/', url: id ? pageOf(id) : address },
  }
}

async function findByApi(id: string, key: string, visit: Visit): Promise<Found> {
  const query = new URLSearchParams({ api_key: key })
  const answer = await visit.get(`https://api.giphy.com/v1/gifs/${id}?${query}`)
  if (answer.status === 404) requireAnswer('giphy', answer)
  const gif = at(answer.json(), 'data')
  const sources = ['original_mp4', 'hd', 'original'].flatMap((name) => {
    const file = at(gif, 'images', name)
    return fileAt(textAt(file, 'mp4') ?? textAt(file, 'url'), numberAt(file, 'mp4_size'))
  })
  return {
    sources: [...filesOf(id).slice(0, 1), ...sources, ...filesOf(id).slice(2, 3)],
    title: textAt(gif, 'title'),
    nsfw: textAt(gif, 'rating') === 'r',
    attribution: { site: 'https://giphy.com/', user: textAt(gif, 'username'), url: pageOf(id) },
  }
}
