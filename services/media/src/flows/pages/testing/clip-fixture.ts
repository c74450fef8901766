// Clips and markup for tests of pages, which need no browser.
import type { ClipView } from '../../../core/clip-views/clip-view.ts'

/** A complete clip for tests. */
export function clipWith(changes: Partial<ClipView> = {}): ClipView {
  return {
    id: 'aB3dE9xK',
    state: 'ready',
    isShowable: (changes.state ?? 'ready') === 'ready',
    failure: undefined,
    title: 'A cat jumps',
    tags: ['cat', 'jump'],
    nsfw: false,
    isListed: true,
    isLinked: false,
    opensPage: true,
    endsAt: undefined,
    attribution: undefined,
    width: 640,
    height: 360,
    durationSeconds: 4.104,
    hasAudio: false,
    createdAt: new Date('2026-05-12T10:00:00Z'),
    placeholder: undefined,
    urls: {
      page: 'https://clips.example/gif/aB3dE9xK',
      embed: 'https://clips.example/embed/aB3dE9xK',
      oembed: 'https://clips.example/oembed/aB3dE9xK',
      report: 'https://clips.example/gif/aB3dE9xK/report',
      gif: 'https://files.example/f/aB3dE9xK.gif',
      jpg: 'https://files.example/f/aB3dE9xK.jpg',
      mp4: 'https://files.example/f/aB3dE9xK.mp4',
      webm: 'https://files.example/f/aB3dE9xK.webm',
      av1: undefined,
      webp: undefined,
    },
    filesRedirectUrl: undefined,
    siteName: 'Clips',
    siteUrl: 'https://clips.example/',
    oembedEndpoint: 'https://clips.example/oembed',
    ...changes,
  }
}

/** Breaks out of text, attributes, scripts, styles, comments and URLs unless it is escaped. */
export const HOSTILE = `</script></style></title></textarea>--><img src=x onerror=alert(1)>"'><svg/onload=alert(2)>&lt;{{7*7}}\u2028`
