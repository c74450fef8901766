import { changed, noClip, notReady, requireAnswer } from './failures.ts'
import { at, numberAt, textAt } from './json.ts'
import { defineSite, pathOf } from './site.ts'

export function readStreamable(url: URL): string | undefined {
  if (!/^(www\.)?streamable\.com$/.test(url.hostname)) return undefined
  const [first = '', second = '', ...rest] = pathOf(url)
  const id = /^[eos]$/.test(first) && second ? second : second === '' ? first : ''
  const isPage =
    /^(about|api|blog|careers|contact|documentation|explore|faq|login|pricing|privacy|signup|terms|upload)$/
  return rest.length <= 1 && /^[a-z0-9]{3,12}$/i.test(id) && !isPage.test(id) ? id : undefined
}

const READY = 2
const FAILED = 3

/**
 * Sends the request of the site's own player. The addresses of files are signed and expire, so they are fetched at
 * once.
 */
export const streamable = defineSite<string>({
  name: 'streamable',
  hosts: ['streamable.com'],
  read: readStreamable,
  find: async (id, visit) => {
    const answer = await visit.get(`https://ajax.streamable.com/videos/${id}`)
    requireAnswer('streamable', answer)
    const video = answer.json()
    const status = numberAt(video, 'status')
    if (status === undefined) throw changed('streamable')
    if (status === FAILED) throw noClip('streamable')
    if (status !== READY) throw notReady('streamable')
    const files = readFiles(video)
    if (files.length === 0) throw noClip('streamable')
    return {
      sources: files.map(({ url, bytes }) => ({ kind: 'file', url, bytes })),
      title: textAt(video, 'title') ?? textAt(video, 'reddit_title'),
      durationSeconds: numberAt(video, 'duration') ?? files[0]?.seconds,
      attribution: { site: 'https://streamable.com/', url: `https://streamable.com/${id}` },
    }
  },
})

function readFiles(video: unknown) {
  const files = Object.values(at(video, 'files') ?? {}).flatMap((file: unknown) => {
    const url = textAt(file, 'url')
    if (!url) return []
    const pixels = (numberAt(file, 'width') ?? 0) * (numberAt(file, 'height') ?? 0)
    const [bits, seconds] = [numberAt(file, 'bitrate') ?? 0, numberAt(file, 'duration')]
    return [{ url: url.startsWith('//') ? `https:${url}` : url, pixels, bits, seconds, bytes: numberAt(file, 'size') }]
  })
  return files.toSorted((a, b) => b.pixels - a.pixels || b.bits - a.bits)
}
