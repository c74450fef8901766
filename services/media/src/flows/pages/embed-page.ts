import { html } from '@services/common/html'
import { type ClipView, titleOf } from '../../core/clip-views/clip-view.ts'
import type { Missing } from './clip-page.ts'
import { htmlDocument, type Page, readScript, styleOf } from './document.ts'
import { player, playerSources, refreshTag } from './player.ts'
import { embedPageCss } from './styles.ts'

/** Pauses the clip off screen, and defines `<media-clip>` for other pages. Its path stays: pages of others name it. */
export const EMBED_SCRIPT = readScript('embed.js')

const style = styleOf(embedPageCss)

/**
 * The page at /embed/{id}: the clip fills its frame. A link to a private player leads to neither page nor report.
 * `scriptUrl` serves `EMBED_SCRIPT`, which is optional.
 */
export const embedPage = (clip: ClipView, { scriptUrl }: { scriptUrl?: string } = {}): Page =>
  htmlDocument({
    title: `${titleOf(clip)} · ${clip.siteName}`,
    siteUrl: clip.siteUrl,
    isFramed: true,
    noindex: true,
    head: html`<link rel="canonical" href="${clip.urls.page}">
${refreshTag(clip)}${scriptUrl && html`<script src="${scriptUrl}" defer></script>\n`}`,
    style,
    ...playerSources(clip),
    scripts: scriptUrl ? [scriptUrl] : [],
    body: html`<main>${player(clip, clip)}
${clip.opensPage && html`<a class="home" href="${clip.urls.page}" target="_blank" rel="noopener" dir="auto">${titleOf(clip)}</a>`}
${clip.isShowable && clip.urls.report && html`<a class="home report" href="${clip.urls.report}" target="_blank" rel="noopener nofollow">Report</a>`}</main>`,
  })

/** The page in the frame of an unknown or deleted clip. */
export const missingEmbed = ({ message, siteName, siteUrl }: Missing): Page =>
  htmlDocument({
    title: `${message} · ${siteName}`,
    siteUrl,
    isFramed: true,
    noindex: true,
    style,
    body: html`<main><div class="placeholder"><div class="notice"><strong>${message}</strong><a href="${siteUrl}" target="_blank" rel="noopener">${siteName}</a></div></div></main>`,
  })
