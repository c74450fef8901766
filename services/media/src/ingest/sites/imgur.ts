import { changed, noClip, notFound, requireAnswer } from './failures.ts'
import { at, listAt, numberAt, textAt } from './json.ts'
import { addressIn, metaOf } from './page.ts'
import { defineSite, type Found, fileAt, type MediaSource, pathOf } from './site.ts'
import type { Visit } from './visit.ts'

type Reference = { id: string; isAlbum: boolean }

/** Pages of the site whose names look like the id of an image. */
const PAGES =
  /^(about|apps|arcade|blog|emerald|inbox|jobs|login|memegen|privacy|random|register|rules|search|settings|signin|topics|tos|upload|vidgif)$/

export function readImgur(url: URL): Reference | undefined {
  const path = pathOf(url)
  if (url.hostname === 'i.imgur.com') {
    const [, id = ''] = /^(\w{5,8})\.(gifv?|jpe?g|png|webp)$/.exec(path.length === 1 ? (path[0] ?? '') : '') ?? []
    return id ? { id, isAlbum: false } : undefined
  }
  if (!/^((www|m)\.)?imgur\.com$/.test(url.hostname)) return undefined
  const [first = '', ...rest] = path
  const id = /^(?:.*-)?(\w{5,8})$/.exec(path.at(-1) ?? '')?.[1]
  if (!id) return undefined
  if (first === 'a' || first === 'gallery') return rest.length === 1 ? { id, isAlbum: true } : undefined
  if (first === 't' || first === 'r') return rest.length === 2 ? { id, isAlbum: true } : undefined
  return rest.length === 0 && !PAGES.test(first) ? { id, isAlbum: false } : undefined
}

/** Asks the API if the operator has a client id, otherwise the page of the file, which is made for links. */
export const imgur = defineSite<Reference>({
  name: 'imgur',
  hosts: ['imgur.com'],
  read: readImgur,
  find: (reference, visit) => {
    const clientId = visit.keys.imgurClientId
    return clientId ? findByApi(reference, clientId, visit) : findByPage(reference, visit)
  },
})

const ATTRIBUTION = 'https://imgur.com/'

/** Every animated image has an mp4 beside it, better and smaller than the original gif. */
const filesOf = (id: string): MediaSource[] =>
  ['mp4', 'gif'].map((ending) => ({ kind: 'file', url: `https://i.imgur.com/${id}.${ending}` }))

async function findByApi({ id, isAlbum }: Reference, clientId: string, visit: Visit): Promise<Found> {
  const query = new URLSearchParams({ client_id: clientId, include: 'media,account' })
  const getPost = (kind: 'albums' | 'media') => visit.get(`https://api.imgur.com/post/v1/${kind}/${id}?${query}`)
  // A gallery holds albums and single images under addresses of one form.
  const first = await getPost(isAlbum ? 'albums' : 'media')
  const answer = isAlbum && first.status === 404 ? await getPost('media') : first
  requireAnswer('imgur', answer)
  const post = answer.json()
  const media = listAt(post, 'media')
  if (media.length === 0) throw changed('imgur')
  const clip = media.find((item) => at(item, 'metadata', 'is_animated') === true || textAt(item, 'type') === 'video')
  if (!clip) throw noClip('imgur')
  const own = fileAt(textAt(clip, 'url'), numberAt(clip, 'size'))
  const beside = filesOf(textAt(clip, 'id') ?? id).slice(0, 1)
  return {
    sources: textAt(clip, 'ext') === 'mp4' ? [...own, ...beside] : [...beside, ...own],
    title: textAt(post, 'title') ?? textAt(clip, 'metadata', 'title'),
    nsfw: at(post, 'is_mature') === true,
    durationSeconds: numberAt(clip, 'metadata', 'duration') || undefined,
    attribution: { site: ATTRIBUTION, user: textAt(post, 'account', 'username'), url: pageOf(id, isAlbum) },
  }
}

async function findByPage({ id, isAlbum }: Reference, visit: Visit): Promise<Found> {
  const answer = await visit.get(isAlbum ? pageOf(id, true) : `https://i.imgur.com/${id}.gifv`)
  if (answer.url.pathname.startsWith('/removed')) throw notFound('imgur')
  requireAnswer('imgur', answer)
  const page = await answer.page()
  const named = [
    metaOf(page, 'og:video:secure_url', 'og:video', 'twitter:player:stream'),
    ...page.videos.map(({ src }) => src),
  ]
  const files = named.flatMap((text) => {
    const url = addressIn(page, text)
    return url && /\.mp4$/.test(url.pathname) ? fileAt(url.href) : []
  })
  if (isAlbum && files.length === 0) throw noClip('imgur')
  const title = metaOf(page, 'og:title', 'twitter:title')
  return {
    sources: [...files.slice(0, 1), ...(isAlbum ? [] : filesOf(id))],
    // The page of an untitled image has the slogan of the site as its title.
    title: title && !/^imgur\b/i.test(title) ? title.replace(/ - (Album on )?Imgur$/i, '') : undefined,
    attribution: { site: ATTRIBUTION, url: pageOf(id, isAlbum) },
  }
}

const pageOf = (id: string, isAlbum: boolean) => `https://imgur.com/${isAlbum ? 'a/' : ''}${id}`
