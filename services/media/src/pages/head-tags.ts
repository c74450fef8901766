import { type ClipView, describe, titleOf } from './clip-view.ts'
import { type Html, html, jsonLd } from './html.ts'

/**
 * What crawlers, chats and players read from the page's head (contract/media.md 2.17). Until the files exist nothing
 * points at them: a chat would keep the broken preview for days.
 */
export function headTags(clip: ClipView): Html {
  const isReady = clip.state === 'ready'
  const isHidden = clip.nsfw || !isReady
  return html`<link rel="canonical" href="${clip.urls.page}">
<meta name="description" content="${describe(clip)}">
${isHidden && html`<meta name="robots" content="noindex">\n`}${clip.nsfw && html`<meta name="rating" content="adult">\n`}${oembedLinks(clip)}
${openGraph(clip)}
${isReady && html`${twitterCard(clip)}\n${videoObject(clip)}\n`}`
}

/** The address holds the page and the format and nothing else, as oembed.com section 4 wants it. */
function oembedLinks(clip: ClipView): Html {
  const address = (format: string) =>
    `${clip.oembedEndpoint}?url=${encodeURIComponent(clip.urls.page)}&format=${format}`
  return html`<link rel="alternate" type="application/json+oembed" href="${address('json')}" title="${titleOf(clip)}">
<link rel="alternate" type="text/xml+oembed" href="${address('xml')}" title="${titleOf(clip)}">`
}

/** Order matters: a structured property (`og:video:width`) belongs to the last root tag before it (ogp.me). */
function openGraph(clip: ClipView): Html {
  const { urls, state, served: size } = clip
  const properties: [string, string | number][] = [
    ['og:type', 'video.other'],
    ['og:site_name', clip.siteName],
    ['og:title', titleOf(clip)],
    ['og:description', describe(clip)],
    ['og:url', urls.page],
  ]
  if (state === 'ready') {
    properties.push(
      ...media('og:image', urls.jpg, { type: 'image/jpeg', ...size, alt: titleOf(clip) }),
      // The file itself: chats do not play a page.
      ...media('og:video', urls.mp4, { type: 'video/mp4', ...size }),
      ...media('og:video', urls.webm, { type: 'video/webm', ...size }),
      ['video:duration', Math.max(1, Math.round(clip.durationSeconds))],
      ['video:release_date', clip.createdAt.toISOString()],
      ...clip.tags.map((tag): [string, string] => ['video:tag', tag]),
    )
  }
  return html`${properties.map(([name, value]) => html`<meta property="${name}" content="${value}">\n`)}`
}

/** Without `og:image:url`, which is the root by another name: readers that collect both pair the wrong types. */
function media(root: string, url: string, rest: Record<string, string | number>): [string, string | number][] {
  const secure: [string, string][] = url.startsWith('https:') ? [[`${root}:secure_url`, url]] : []
  const details = Object.entries(rest).map(([name, value]): [string, string | number] => [`${root}:${name}`, value])
  return [[root, url], ...secure, ...details]
}

/** `player` and no second card: a `summary_large_image` beside it stops some chats from playing the video. */
function twitterCard(clip: ClipView): Html {
  const names: [string, string | number][] = [
    ['twitter:card', 'player'],
    ['twitter:title', titleOf(clip)],
    ['twitter:description', describe(clip)],
    ['twitter:image', clip.urls.jpg],
    ['twitter:player', clip.urls.embed],
    ['twitter:player:width', clip.width],
    ['twitter:player:height', clip.height],
    ['twitter:player:stream', clip.urls.mp4],
    ['twitter:player:stream:content_type', 'video/mp4'],
  ]
  return html`${names.map(([name, value]) => html`<meta name="${name}" content="${value}">\n`)}`
}

/** https://schema.org/VideoObject, in the form search engines ask for. */
function videoObject(clip: ClipView): Html {
  return jsonLd({
    '@context': 'https://schema.org',
    '@type': 'VideoObject',
    name: titleOf(clip),
    description: describe(clip),
    thumbnailUrl: [clip.urls.jpg],
    uploadDate: clip.createdAt.toISOString(),
    duration: `PT${Math.round(clip.durationSeconds * 1000) / 1000}S`,
    contentUrl: clip.urls.mp4,
    embedUrl: clip.urls.embed,
    ...clip.served,
    keywords: clip.tags.length > 0 ? clip.tags.join(', ') : undefined,
    isFamilyFriendly: !clip.nsfw,
  })
}
