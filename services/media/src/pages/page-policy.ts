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
  const style = styleSource(css)
  return (clip, scriptUrl) => {
    const { urls, filesRedirectUrl } = clip
    const placeholder = placeholderCss(clip)
    return contentPolicy({
      styles: placeholder ? [style, styleSource(placeholder)] : [style],
      files: [urls.gif, urls.jpg, urls.mp4, urls.webm, filesRedirectUrl],
      inlineImages: placeholder !== undefined,
      script: scriptUrl,
      frameAncestors,
    })
  }
}

/** Of a page that shows nothing but text. */
export const textPolicy = ({ css, frameAncestors }: PagePolicy): string =>
  contentPolicy({ styles: [styleSource(css)], frameAncestors })

interface Content extends Pick<PagePolicy, 'frameAncestors'> {
  /** As `styleSource` makes them. */
  styles: readonly string[]
  /** Where pictures and videos are, and where their redirects lead: a policy looks at that too. */
  files?: readonly (string | undefined)[]
  /** Pictures that are written in the page itself. */
  inlineImages?: boolean
  script?: string | undefined
  /** Whom scripts may call. */
  connect?: "'self'"
}

/** What is not named is not allowed. */
export function contentPolicy({ styles, files = [], inlineImages, script, connect, frameAncestors }: Content): string {
  const origins = [...new Set(files.filter((url) => url !== undefined).map((url) => new URL(url).origin))].join(' ')
  return [
    "default-src 'none'",
    `style-src ${styles.join(' ')}`,
    ...(origins ? [`img-src ${origins}${inlineImages ? ' data:' : ''}`, `media-src ${origins}`] : []),
    ...(script ? [`script-src ${script}`] : []),
    ...(connect ? [`connect-src ${connect}`] : []),
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors}`,
  ].join('; ')
}

/** Allows exactly this inline stylesheet. */
export const styleSource = (css: string) => `'sha256-${createHash('sha256').update(css).digest('base64')}'`
