import { createHash } from 'node:crypto'
import type { ClipView } from './clip-view.ts'
import { placeholderCss } from './placeholder.ts'

export interface PagePolicy {
  /** The page's inline stylesheet; only exactly this text, and that of the clip's placeholder, is allowed to style. */
  css: string
  /** Who may put the page into a frame: `'none'` or `*`. */
  frameAncestors: "'none'" | '*'
}

/**
 * A function that makes the Content-Security-Policy of a page: our stylesheet, pictures and videos from where the clip's
 * files are, and nothing else, so that markup that slipped in could not run, load, submit or restyle anything.
 */
export function pagePolicy({ css, frameAncestors }: PagePolicy): (clip: ClipView, scriptUrl?: string) => string {
  const styleHash = hashOf(css)
  return (clip, scriptUrl) => {
    const { gif, jpg, mp4, webm } = clip.urls
    const placeholder = placeholderCss(clip)
    // A policy looks at where a redirect leads too.
    const fileUrls = [gif, jpg, mp4, webm, ...(clip.filesRedirectUrl ? [clip.filesRedirectUrl] : [])]
    const fileOrigins = [...new Set(fileUrls.map((url) => new URL(url).origin))].join(' ')
    return [
      "default-src 'none'",
      `style-src ${styleHash}${placeholder ? ` ${hashOf(placeholder)}` : ''}`,
      `img-src ${fileOrigins}${placeholder ? ' data:' : ''}`,
      `media-src ${fileOrigins}`,
      ...(scriptUrl ? [`script-src ${scriptUrl}`] : []),
      "base-uri 'none'",
      "form-action 'none'",
      `frame-ancestors ${frameAncestors}`,
    ].join('; ')
  }
}

/** Of a page that shows nothing but text. */
export const textPolicy = ({ css, frameAncestors }: PagePolicy): string =>
  `default-src 'none'; style-src ${hashOf(css)}; base-uri 'none'; form-action 'none'; frame-ancestors ${frameAncestors}`

const hashOf = (css: string) => `'sha256-${createHash('sha256').update(css).digest('base64')}'`
