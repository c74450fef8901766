import { html, toText } from '@services/common/html'
import { type ClipView, describe, titleOf } from '../../../core/clip-views/clip-view.ts'
import { escapeXml } from '../oembed.ts'
import type { AlbumView } from './album-view.ts'

/** A clip of a feed. */
export interface FeedItem {
  clip: ClipView
  addedAt: Date
}

/** The newest clips of a public album as Atom (RFC 4287). `updatedAt`: last change of the album itself. */
export function albumFeed(album: AlbumView, items: readonly FeedItem[], updatedAt: Date): string {
  const { title, description, urls, siteName } = album
  const newest = Math.max(updatedAt.getTime(), ...items.map(({ addedAt }) => addedAt.getTime()))
  const members = [
    element('id', urls.page),
    element('title', title),
    ...(description ? [element('subtitle', description)] : []),
    element('updated', new Date(newest).toISOString()),
    `<author>${element('name', siteName)}</author>`,
    link({ rel: 'self', type: 'application/atom+xml', href: urls.feed ?? '' }),
    link({ rel: 'alternate', type: 'text/html', href: urls.page }),
    ...items.map(entry),
  ]
  return `<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n${members.join('\n')}\n</feed>\n`
}

/** Readers show pictures unasked, so a sensitive clip has text alone. */
function entry({ clip, addedAt }: FeedItem): string {
  const { urls, nsfw, width, height, createdAt } = clip
  const picture = html`<a href="${urls.page}"><img src="${urls.jpg}" width="${width}" height="${height}" alt="${titleOf(clip)}"></a>`
  const members = [
    element('id', urls.page),
    element('title', titleOf(clip)),
    element('published', createdAt.toISOString()),
    element('updated', addedAt.toISOString()),
    link({ rel: 'alternate', type: 'text/html', href: urls.page }),
    element('summary', describe(clip)),
    ...(nsfw
      ? []
      : [
          link({ rel: 'enclosure', type: 'video/mp4', href: urls.mp4 }),
          `<content type="html">${escapeXml(toText(picture))}</content>`,
        ]),
  ]
  return `<entry>\n${members.join('\n')}\n</entry>`
}

const element = (name: string, text: string): string => `<${name}>${escapeXml(text)}</${name}>`

const link = ({ rel, type, href }: Record<'rel' | 'type' | 'href', string>): string =>
  `<link rel="${rel}" type="${type}" href="${escapeXml(href)}"/>`
