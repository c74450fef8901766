import { createHash } from 'node:crypto'
import type { ClipView } from '../../core/clips/clip-view.ts'
import { iconUrl } from './icon.ts'
import { placeholderCss } from './placeholder.ts'

export interface PagePolicy {
  /** The inline stylesheet of the page; only this text, and the clip's placeholder, may style. */
  css: string
  /**
   * Absent if any page may frame this one. `*` would allow less: it excludes the file:, app: and capacitor: pages of
   * desktop and mobile applications (CSP 3, 6.7.2.8).
   */
  frameAncestors?: "'none'"
}

/**
 * Makes the Content-Security-Policy of a page: our stylesheet, and pictures and videos from the hosts of the files.
 * Injected markup could not run, load, submit or restyle anything.
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

/** The same for a page of text only. */
export function textPolicy({ css, frameAncestors }: PagePolicy): (siteUrl: string) => string {
  const styles = [styleSource(css)]
  return (siteUrl) => contentPolicy({ styles, icon: iconUrl(siteUrl), frameAncestors })
}

interface Content extends Pick<PagePolicy, 'frameAncestors'> {
  styles: readonly string[]
  /** URLs of pictures and videos, and of their redirects, which the policy covers, too. */
  files?: readonly (string | undefined)[]
  /** Allows data: URLs of pictures. */
  inlineImages?: boolean
  icon: string
  /** URL without a query, which a policy cannot have. */
  script?: string | undefined
  connect?: "'self'"
}

/** Allows nothing but the given sources. */
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

export const styleSource = (css: string) => `'sha256-${createHash('sha256').update(css).digest('base64')}'`
