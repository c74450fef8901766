import { type Html, html, jsonLd } from '@services/common/html'
import { type ClipView, describe, titleOf } from '../../core/clip-views/clip-view.ts'
import { embedSize } from '../../core/clip-views/embed-snippet.ts'

/**
 * Head of a clip's page for crawlers, chats and players (contract/media.md 2.17). Until the files exist there are no
 * links to them: a chat would keep a broken preview for days. A sensitive clip has text only; a private one nothing,
 * because a chat would keep it after the link has ended.
 */
export function headTags(clip: ClipView): Html {
  const isHidden = clip.nsfw || !clip.isShowable
  return html`<link rel="canonical" href="${clip.urls.page}">
<meta name="description" content="${describe(clip)}">
${(isHidden || !clip.isListed) && html`<meta name="robots" content="noindex">\n`}${clip.nsfw && html`<meta name="rating" content="adult">\n`}${clip.isListed && oembedLinks(clip)}
${!clip.isLinked && openGraph(clip)}
${!clip.isLinked && clip.isShowable && twitterCard(clip)}${clip.isListed && isPreviewed(clip) && html`\n${videoObject(clip)}\n`}`
}

const isPreviewed = ({ isShowable, nsfw }: ClipView) => isShowable && !nsfw

/** The URL holds only page and format, as oembed.com section 4 requires. */
function oembedLinks(clip: ClipView): Html {
  const address = (format: string) =>
    `${clip.oembedEndpoint}?url=${encodeURIComponent(clip.urls.page)}&format=${format}`
  return html`<link rel="alternate" type="application/json+oembed" href="${address('json')}" title="${titleOf(clip)}">
<link rel="alternate" type="text/xml+oembed" href="${address('xml')}" title="${titleOf(clip)}">`
}

/** Order matters: a structured property (`og:video:width`) belongs to the last root tag before it (ogp.me). */
function openGraph(clip: ClipView): Html {
  const { urls } = clip
  const properties: Property[] = [
    ['og:type', 'video.other'],
    ['og:site_name', clip.siteName],
    ['og:title', titleOf(clip)],
    ['og:description', describe(clip)],
    ['og:url', urls.page],
  ]
  if (isPreviewed(clip)) {
    properties.push(
      ...mediaOf(clip),
      ['video:duration', Math.max(1, Math.round(clip.durationSeconds))],
      ['video:release_date', clip.createdAt.toISOString()],
      ...clip.tags.map((tag): Property => ['video:tag', tag]),
    )
  }
  return metaOf(properties)
}

export type Property = [name: string, value: string | number]

export const metaOf = (properties: Property[]): Html =>
  html`${properties.map(([name, value]) => html`<meta property="${name}" content="${value}">\n`)}`

/** Picture and videos of a clip. */
export function mediaOf(clip: ClipView): Property[] {
  const { urls, width, height } = clip
  const size = { width, height }
  return [
    ...media('og:image', urls.jpg, { type: 'image/jpeg', ...size, alt: titleOf(clip) }),
    // The file, not the player: chats do not play a page.
    ...media('og:video', urls.mp4, { type: 'video/mp4', ...size }),
    ...(clip.state === 'ready' ? media('og:video', urls.webm, { type: 'video/webm', ...size }) : []),
  ]
}

/** Omits `og:image:url`, an alias of the root: readers that collect both pair the wrong types. */
function media(root: string, url: string, rest: Record<string, string | number>): [string, string | number][] {
  const secure: [string, string][] = url.startsWith('https:') ? [[`${root}:secure_url`, url]] : []
  const details = Object.entries(rest).map(([name, value]): [string, string | number] => [`${root}:${name}`, value])
  return [[root, url], ...secure, ...details]
}

/**
 * `player` and no second card: a `summary_large_image` beside it stops some chats from playing the video. A card
 * without a picture has no player either, which needs one.
 */
function twitterCard(clip: ClipView): Html {
  const size = embedSize(clip)
  const tags: [string, string | number][] = [
    ['twitter:card', isPreviewed(clip) ? 'player' : 'summary'],
    ['twitter:title', titleOf(clip)],
    ['twitter:description', describe(clip)],
  ]
  if (isPreviewed(clip)) {
    tags.push(
      ['twitter:image', clip.urls.jpg],
      ['twitter:player', clip.urls.embed],
      ['twitter:player:width', size.width],
      ['twitter:player:height', size.height],
      ['twitter:player:stream', clip.urls.mp4],
      ['twitter:player:stream:content_type', 'video/mp4'],
    )
  }
  return html`${tags.map(([name, value]) => html`<meta name="${name}" content="${value}">\n`)}`
}

const videoObject = (clip: ClipView): Html => jsonLd({ '@context': 'https://schema.org', ...videoData(clip) })

/** https://schema.org/VideoObject, as search engines document it. */
export function videoData(clip: ClipView) {
  return {
    '@type': 'VideoObject',
    name: titleOf(clip),
    description: describe(clip),
    thumbnailUrl: [clip.urls.jpg],
    uploadDate: clip.createdAt.toISOString(),
    duration: `PT${Math.round(clip.durationSeconds * 1000) / 1000}S`,
    contentUrl: clip.urls.mp4,
    embedUrl: clip.urls.embed,
    width: clip.width,
    height: clip.height,
    keywords: clip.tags.length > 0 ? clip.tags.join(', ') : undefined,
    isFamilyFriendly: true,
  }
}
