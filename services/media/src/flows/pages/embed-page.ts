import { html } from '@services/common/html'
import { type ClipView, titleOf } from '../../core/clip-views/clip-view.ts'
import type { Missing } from './clip-page.ts'
import { mediaDocument, type Page, styleOf } from './document.ts'
import { player, playerSources, refreshTag } from './player.ts'
import { embedPageCss } from './styles.ts'

const style = styleOf(embedPageCss)

/**
 * The page at /embed/{id}: the clip fills its frame. A link to a private player leads to neither page nor report.
 * `scriptUrl` serves assets/embed.js, which is optional.
 */
export const embedPage = (clip: ClipView, { scriptUrl }: { scriptUrl?: string } = {}): Page =>
  mediaDocument({
    title: `${titleOf(clip)} · ${clip.siteName}`,
    siteUrl: clip.siteUrl,
    isFramed: true,
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
  mediaDocument({
    title: `${message} · ${siteName}`,
    siteUrl,
    isFramed: true,
    style,
    body: html`<main><div class="placeholder"><div class="notice"><strong>${message}</strong><a href="${siteUrl}" target="_blank" rel="noopener">${siteName}</a></div></div></main>`,
  })
