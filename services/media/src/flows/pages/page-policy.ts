import { createHash } from 'node:crypto'
import type { ClipView } from '../../core/clips/clip-view.ts'
import { iconUrl } from './icon.ts'
import { placeholderCss } from './placeholder.ts'

export interface PagePolicy {
  /** The page's inline stylesheet; only exactly this text, and that of the clip's placeholder, is allowed to style. */
  css: string
  /**
   * Left out where anything may put the page into a frame. `*` would say less: it matches http and https alone, not the
   * file:, app: and capacitor: pages of desktop and mobile applications (CSP 3, 6.7.2.8).
   */
  frameAncestors?: "'none'"
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
      icon: iconUrl(clip.siteUrl),
      script: scriptUrl,
      frameAncestors,
    })
  }
}

/** The same of a page that shows nothing but text. */
export function textPolicy({ css, frameAncestors }: PagePolicy): (siteUrl: string) => string {
  const styles = [styleSource(css)]
  return (siteUrl) => contentPolicy({ styles, icon: iconUrl(siteUrl), frameAncestors })
}

interface Content extends Pick<PagePolicy, 'frameAncestors'> {
  /** As `styleSource` makes them. */
  styles: readonly string[]
  /** Where pictures and videos are, and where their redirects lead: a policy looks at that too. */
  files?: readonly (string | undefined)[]
  /** Pictures that are written in the page itself. */
  inlineImages?: boolean
  /** Address of the page's icon. */
  icon: string
  /** Address without a query, which a policy may not have. */
  script?: string | undefined
  /** Whom scripts may call. */
  connect?: "'self'"
}

/** What is not named is not allowed. */
export function contentPolicy(content: Content): string {
  const { styles, files = [], inlineImages, icon, script, connect, frameAncestors } = content
  const origins = [...new Set(files.filter((url) => url !== undefined).map((url) => new URL(url).origin))]
  return [
    "default-src 'none'",
    `style-src ${styles.join(' ')}`,
    ['img-src', icon, ...origins, ...(inlineImages ? ['data:'] : [])].join(' '),
    ...(origins.length > 0 ? [['media-src', ...origins].join(' ')] : []),
    ...(script ? [`script-src ${script}`] : []),
    ...(connect ? [`connect-src ${connect}`] : []),
    "base-uri 'none'",
    "form-action 'none'",
    ...(frameAncestors ? [`frame-ancestors ${frameAncestors}`] : []),
  ].join('; ')
}

/** Allows exactly this inline stylesheet. */
export const styleSource = (css: string) => `'sha256-${createHash('sha256').update(css).digest('base64')}'`
